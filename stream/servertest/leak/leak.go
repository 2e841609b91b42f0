// Package leak fails tests that leave goroutines running. It waits longer than goleak
// does, because on a busy machine a closed connection needs time to end.
package leak

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// timeout bounds the wait for goroutines to end. goleak itself waits for .4 s.
const timeout = 30 * time.Second

// Main runs the tests of a package, and fails if goroutines are left after half a
// minute. It is for TestMain and does not return.
func Main(m *testing.M) { goleak.VerifyTestMain(waiting{m}) }

// A waiting runs tests and waits until their goroutines have ended.
type waiting struct{ m goleak.TestingM }

func (w waiting) Run() int {
	code := w.m.Run()
	for end := time.Now().Add(timeout); code == 0 && goleak.Find() != nil && time.Now().Before(end); {
		continue // Find has waited
	}
	return code
}
