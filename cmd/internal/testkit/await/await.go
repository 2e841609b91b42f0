// Package await waits in tests for a condition that another process or server brings about, and that nothing
// tells.
package await

import (
	"testing"
	"time"

	"hamlet/cmd/internal/process/clock"
)

// Until asks until is reports true, for a minute at most. The test fails then with what missing returns.
func Until(t testing.TB, is func() bool, missing func() string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(deadline) || !clock.Sleep(t.Context(), 10*time.Millisecond) {
			t.Fatal(missing())
		}
	}
}
