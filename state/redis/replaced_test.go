package redis

import (
	"errors"
	"testing"
	"time"

	"hamlet/state"
)

// A version that another model replaced stays for 30 days on which the model is saved, however
// few are kept, and wherever the clock jumps in between.
func TestReplacedVersionsStay(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, func(cfg *Config) { cfg.Keep, cfg.Daily = 1, new(0) })
		epoch := take(t, s)
		next := int64(0)
		at := func(day int) int64 {
			next++
			c := learnt(epoch, next)
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
		for _, day := range []int{0, 5 * 365, 5 * 365, -365, 3, 3, 60} { // four days more
			if at(day); !kept(replaced) {
				t.Fatalf("on day %d the version that was replaced is gone", day)
			}
		}
		for day := 61; day <= 85; day++ {
			if at(day); !kept(replaced) {
				t.Fatalf("on day %d the version that was replaced is gone", day)
			}
		}
		if at(86); kept(replaced) {
			t.Error("the version is kept for more than 30 days")
		}
		if err := s.MarkReplaced(t.Context(), replaced); !errors.Is(err, state.ErrNone) {
			t.Errorf("a version that is gone: %v, want ErrNone", err)
		}
		checkInvariants(t, srv)
	})
}

// A version that hamlet 0.1.0 has marked stays too.
func TestReplacedByAnOlderProgram(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, func(cfg *Config) { cfg.Keep, cfg.Daily = 1, new(0) })
		epoch := take(t, s)
		first := save(t, s, learnt(epoch, 1))
		srv.plain.HSet(t.Context(), s.versionKey(first), "replaced", "1")
		late := learnt(epoch, 2)
		late.Saved = noon.Add(100 * 24 * time.Hour)
		save(t, s, late)
		if kept, err := s.Versions(t.Context()); err != nil || len(kept) != 2 || !kept[1].Replaced {
			t.Errorf("kept %+v, %v; want the marked version too", kept, err)
		}
	})
}
