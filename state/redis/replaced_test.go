package redis

import (
	"errors"
	"testing"
	"time"

	"hamlet/state"
)

// A version that another model replaced stays for 30 days, however few are kept.
func TestReplacedVersionsStay(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, func(cfg *Config) { cfg.Keep, cfg.Daily = 1, -1 })
		epoch := take(t, s)
		noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
		next := int64(0)
		at := func(day int) int64 {
			next++
			c := checkpoint(epoch, next, "a")
			c.Saved = noon.AddDate(0, 0, day)
			return save(t, s, c)
		}
		kept := func(version int64) bool {
			list, err := s.Versions(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range list {
				if v.Version == version {
					return v.Replaced
				}
			}
			return false
		}
		replaced := at(0)
		if err := s.MarkReplaced(t.Context(), replaced); err != nil {
			t.Fatal(err)
		}
		for _, day := range []int{0, 0, 0, 29} {
			if at(day); !kept(replaced) {
				t.Errorf("on day %d the version that was replaced is gone", day)
			}
		}
		if at(30); kept(replaced) {
			t.Error("the version is kept for more than 30 days")
		}
		if err := s.MarkReplaced(t.Context(), replaced); !errors.Is(err, state.ErrNone) {
			t.Errorf("a version that is gone: %v, want ErrNone", err)
		}
		checkInvariants(t, srv)
	})
}
