package gateway

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"hamlet/stream"
	"hamlet/stream/questions"
)

// checkAnswer returns an error for what is no answer about a body of that type. Whoever
// may join the scorers' queue group can answer, and what is answered goes into header
// fields. A scorer of before margins were told has none, which reads as spam.
func checkAnswer(verdicts []stream.Verdict, contentType string) error {
	if contentType != questions.JSON && len(verdicts) != 1 {
		return fmt.Errorf("%d verdicts for one message", len(verdicts))
	}
	for i := range verdicts {
		if err := checkVerdict(&verdicts[i]); err != nil {
			return fmt.Errorf("the answer is no verdict: %w", err)
		}
	}
	return nil
}

func checkVerdict(v *stream.Verdict) error {
	lo, hi := v.Interval[0], v.Interval[1]
	switch {
	case v.Decision != stream.DecideSpam && v.Decision != stream.DecideHam && v.Decision != stream.DecideUnsure:
		return errors.New("its verdict is none of spam, ham and unsure")
	case !(lo >= 0 && lo <= v.P && v.P <= hi && hi <= 1):
		return fmt.Errorf("p is %v in %v", v.P, v.Interval)
	case math.IsNaN(v.Margin) || (v.Margin >= 0) != (v.Decision == stream.DecideSpam):
		return fmt.Errorf("it is %s with a margin of %v: is the scorer older than the gateway?", v.Decision, v.Margin)
	}
	unfit := func(r rune) bool { return r <= ' ' || r > '~' || r == ';' }
	for _, text := range []string{v.Model.Name, v.Model.SHA256, v.Identity} {
		if len(text) > maxAnswered || strings.ContainsFunc(text, unfit) {
			return errors.New("a name in it does not fit into a header field")
		}
	}
	return nil
}

// maxAnswered bounds a name in an answer, in bytes: a SHA-256 in hex has 64.
const maxAnswered = 64
