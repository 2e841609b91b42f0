package faults

import (
	"os"
	"path/filepath"
	"testing"
)

// A process that ended because Kafka does not take its clock is told by its last line, if its clock was set.
func TestRefusedClock(t *testing.T) {
	const refused = "learner: append: [32] Invalid Timestamp; see to the clock of this machine, or to x\n"
	log := filepath.Join(t.TempDir(), "log")
	for said, want := range map[string]bool{
		"level=INFO begins\n" + refused:  true,
		refused + "level=INFO goes on\n": false,
		"":                               false,
	} {
		if err := os.WriteFile(log, []byte(said), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := (&process{log: log, clock: "clock"}).refusedClock(); got != want {
			t.Errorf("%q: %v", said, got)
		}
		if (&process{log: log}).refusedClock() {
			t.Errorf("%q, and no clock was set", said)
		}
	}
}
