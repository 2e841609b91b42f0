package settings

import "hamlet/cmd/internal/cli"

// The rates that make sense, in events a second: one in a quarter of an hour, and
// more than any machine sends.
const minRate, maxRate = 1e-3, 1e9

// CheckRate reports a value of --rate that is no number of events a second; 0 is
// without a bound.
func CheckRate(rate float64) error {
	if rate == 0 || rate >= minRate && rate <= maxRate {
		return nil
	}
	return cli.Usagef("--rate: %v is neither 0, as fast as it goes, nor in %v…%v events a second", rate, minRate, maxRate)
}
