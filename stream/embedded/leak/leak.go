// Package leak fails tests that leave goroutines behind, and is patient: on a busy
// machine a connection that was closed takes its time to end.
package leak

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds the wait for goroutines to end. goleak itself looks for .4 s.
const patience = 30 * time.Second

// Main runs the tests of a package, and fails if goroutines are left that do not end
// within half a minute. It is for TestMain and does not return.
func Main(m *testing.M) { goleak.VerifyTestMain(patient{m}) }

// A patient runs tests and waits until what they started has ended.
type patient struct{ m goleak.TestingM }

func (p patient) Run() int {
	code := p.m.Run()
	for end := time.Now().Add(patience); code == 0 && goleak.Find() != nil && time.Now().Before(end); {
		continue // Find has waited
	}
	return code
}
