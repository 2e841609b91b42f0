package eval_test

import (
	"fmt"

	"hamlet/algos/eval"
)

// Four messages, each scored before its label was known.
func Example() {
	m := eval.New()
	m.Add(true, 2.5) // spam, called spam
	m.Add(false, -4)
	m.Add(true, -1) // missed
	m.Add(false, -0.5)

	s := m.Summary()
	fmt.Printf("%d events, error %.2f, 1-ROCA%% %.1f, log loss %.3f nats\n", s.Events, s.Error, s.ROCA, s.LogLoss)
	// Output: 4 events, error 0.25, 1-ROCA% 25.0, log loss 0.471 nats
}
