package redis

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hamlet/state"
)

// offsets returns the next offsets of the kept versions, newest first.
func offsets(t *testing.T, s *Store) (kept []int64) {
	t.Helper()
	infos, err := s.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		kept = append(kept, info.Position.Next)
	}
	return kept
}

// A restart saves the same bytes under a new epoch, and a log of duplicates moves the position
// alone. Neither is another version, and neither pushes one out.
func TestARestartIsNoVersion(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, func(cfg *Config) { cfg.Daily = new(0) })
		epoch := take(t, s)
		var head int64
		for next := int64(1); next <= 5; next++ {
			head = save(t, s, learnt(epoch, next))
		}
		before := offsets(t, s)
		for range 3 {
			c := learnt(take(t, s), 5)
			if got := save(t, s, c); got != head {
				t.Errorf("a restart made version %d of %d", got, head)
			}
		}
		if diff := cmp.Diff(before, offsets(t, s)); diff != "" {
			t.Errorf("after three restarts (-want +got):\n%s", diff)
		}
		t.Logf("kept %v before three restarts and %v after", before, offsets(t, s))
		epoch = take(t, s)
		c := learnt(epoch, 5)
		for c.Position.Next = 6; c.Position.Next < 12; c.Position.Next++ {
			if got := save(t, s, c); got != head {
				t.Errorf("the position made version %d of %d", got, head)
			}
			checkInvariants(t, srv)
		}
		if diff := cmp.Diff([]int64{11, 4, 3}, offsets(t, s)); diff != "" {
			t.Errorf("kept after six saves of the same bytes (-want +got):\n%s", diff)
		}
		checkInvariants(t, srv)
	})
}

// While versions are rewritten in place, a reader sees one checkpoint or the other.
func TestInPlaceIsWhole(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		epoch := take(t, s)
		save(t, s, checkpoint(epoch, 1, "a"))
		stop := make(chan struct{})
		done := make(chan error)
		go func() {
			reader := srv.open(t, nil)
			for next := int64(0); ; {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				c, version, err := reader.Load(t.Context(), state.Head)
				if err != nil || version != 1 || c.Position.Next < next || c.Events != uint64(c.Position.Next) {
					done <- fmt.Errorf("version %d: %+v, %v", version, c.Position, err)
					return
				}
				next = c.Position.Next
			}
		}()
		for next := int64(2); next < 100; next++ {
			save(t, s, checkpoint(epoch, next, "a"))
		}
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A clock that is five years ahead for a save, or for many, drops no version.
func TestTheClockDropsNoVersion(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		for _, saves := range []int{1, 50} {
			srv.clear(t)
			s := srv.open(t, nil)
			epoch := take(t, s)
			next := int64(0)
			at := func(saved time.Time) {
				next++
				c := learnt(epoch, next)
				c.Saved = saved
				save(t, s, c)
			}
			for day := range 28 {
				at(noon.AddDate(0, 0, day))
			}
			before := offsets(t, s)
			for i := range saves {
				at(noon.AddDate(5, 0, 28).Add(time.Duration(i) * time.Second))
			}
			for hour := range 5 {
				at(noon.AddDate(0, 0, 28).Add(time.Duration(hour) * time.Hour))
			}
			after := offsets(t, s)
			left := 0
			for _, n := range before {
				if slices.Contains(after, n) {
					left++
				} else {
					t.Errorf("after %d saves by a clock five years ahead version %d of day %d is gone", saves, n, n)
				}
			}
			t.Logf("%d versions before %d saves by a clock five years ahead, %d of them after these and five more", len(before), saves, left)
			checkInvariants(t, srv)
		}
	})
}

// What hamlet 0.1.0 kept is read as it is. The same bytes several times, from its restarts, are
// one version.
func TestVersionsOfAnOlderProgram(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		epoch := take(t, s)
		for next := int64(1); next <= 6; next++ {
			c := learnt(epoch, next)
			c.Saved = noon.AddDate(0, 0, int(next))
			save(t, s, c)
		}
		// Its restarts: versions 6 and 5 have the bytes of version 4, under identities of their own.
		four := srv.plain.HGetAll(t.Context(), s.versionKey(4)).Val()
		for _, v := range []int64{5, 6} {
			m, _, err := s.Manifest(t.Context(), state.Head)
			if err != nil {
				t.Fatal(err)
			}
			old := learnt(epoch, 4)
			old.Position.Next = m.Position.Next
			split, _ := state.Split(old)
			b, err := split.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			srv.plain.HSet(t.Context(), s.versionKey(v), "sha256", four["sha256"], "chunks", four["chunks"], "manifest", b, "identity", fmt.Sprint("of ", v))
			srv.plain.HDel(t.Context(), s.versionKey(v), "writer")
		}
		c := learnt(take(t, s), 4)
		c.Position.Next = 6
		if got := save(t, s, c); got != 6 {
			t.Errorf("a restart made version %d, want 6 again", got)
		}
		var kept []int64
		infos, err := s.Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			kept = append(kept, info.Version)
		}
		// Versions 6, 3 and 2 are the last distinct ones, and version 1 is of a day before.
		if diff := cmp.Diff([]int64{6, 3, 2, 1}, kept); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
	})
}
