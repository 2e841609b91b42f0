package cli

import (
	"testing"
	"time"
)

func TestSince(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"": {}, "24h": now.AddDate(0, 0, -1), "0s": now, "2026-11-19T10:00:00Z": now.AddDate(0, 0, -1),
	} {
		if got, err := Since(value, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v", value, got, err, want)
		}
	}
	for _, value := range []string{"-1h", "yesterday", "2026-11-19"} {
		if got, err := Since(value, now); Status(err) != StatusUsage {
			t.Errorf("%q: %v, %v, want wrong usage", value, got, err)
		}
	}
}
