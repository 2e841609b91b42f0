package redis

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hamlet/state"
)

// lease takes the model and returns what StepBack needs.
func lease(t testing.TB, s *Store) state.Lease { return state.Lease{Epoch: take(t, s)} }

// numbers returns the kept versions in the order of Versions, the lost ones negative.
func numbers(t *testing.T, s *Store) (all []int64) {
	t.Helper()
	infos, err := s.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		if info.Lost {
			info.Version = -info.Version
		}
		all = append(all, info.Version)
	}
	return all
}

func wantNumbers(t *testing.T, s *Store, want ...int64) {
	t.Helper()
	if diff := cmp.Diff(want, numbers(t, s)); diff != "" {
		t.Errorf("versions, lost ones negative (-want +got):\n%s", diff)
	}
}

// A reader that finds a pointer lost takes the newest version that the log has, and a writer
// that finds the counter lost numbers its next version above the lost ones too.
func TestLostKeysAfterAStepBack(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		mine := lease(t, s)
		for next := int64(1); next <= 4; next++ {
			save(t, s, learnt(mine.Epoch, next))
		}
		if err := s.StepBack(t.Context(), mine, 2); err != nil {
			t.Fatal(err)
		}
		wantNumbers(t, s, 2, 1, -3, -4)
		checkInvariants(t, srv)
		for _, name := range []string{"head", "served", "last"} {
			srv.plain.Del(t.Context(), s.key(name))
		}
		for _, which := range []state.Pointer{state.Head, state.Served} {
			if c, version, err := srv.open(t, nil).Load(t.Context(), which); err != nil || version != 2 || c.Position.Next != 2 {
				t.Errorf("%v without its pointer: version %d, %v; want 2", which, version, err)
			}
		}
		srv.plain.Set(t.Context(), s.key("head"), 2, 0)
		c := learnt(mine.Epoch, 3)
		c.Model = []byte("of other records")
		if got := save(t, s, c); got != 5 {
			t.Errorf("the next version is %d, want 5", got)
		}
		wantNumbers(t, s, 5, 2, 1, -3, -4)
		checkInvariants(t, srv)

		// Where all others are corrupt, a lost one is better than none.
		for _, v := range []int64{5, 2, 1} {
			srv.plain.HSet(t.Context(), s.versionKey(v), "manifest", "?")
		}
		if _, version, err := srv.open(t, nil).Load(t.Context(), state.Served); err != nil || version != 3 {
			t.Errorf("loaded version %d, %v; want 3", version, err)
		}
	})
}

// Lost versions are kept beside the others for 30 days on which the model is saved, and 30 of
// them at most.
func TestLostVersionsStay(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, func(cfg *Config) { cfg.Keep, cfg.Daily = 2, new(0) })
		mine := lease(t, s)
		day, next, saves := 0, int64(1), 0
		at := func(next int64) int64 {
			saves++
			c := learnt(mine.Epoch, next)
			c.Model, c.Saved = fmt.Appendf(nil, "the bytes of save %d", saves), noon.AddDate(0, 0, day)
			return save(t, s, c)
		}
		back := func(to int64) {
			t.Helper()
			if err := s.StepBack(t.Context(), mine, to); err != nil {
				t.Fatal(err)
			}
		}
		base := at(next)
		lost := at(next + 1)
		back(base)
		for day = 0; day < 30; day++ {
			next++
			at(next)
			if !slices.Contains(numbers(t, s), -lost) {
				t.Fatalf("on day %d the lost version is gone", day)
			}
		}
		if next++; at(next) > 0 && slices.Contains(numbers(t, s), -lost) {
			t.Error("the lost version is kept for more than 30 days")
		}
		for range 40 { // one day with many losses
			next++
			base := at(next)
			at(next + 1)
			back(base)
		}
		at(next)
		count := 0
		for _, n := range numbers(t, s) {
			if n < 0 {
				count++
			}
		}
		if count != 30 {
			t.Errorf("%d lost versions are kept, want 30", count)
		}
		checkInvariants(t, srv)
	})
}

// A pinned version stays pinned where it is lost, and answers.
func TestAPinnedVersionIsLost(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		mine := lease(t, s)
		for next := int64(1); next <= 3; next++ {
			save(t, s, learnt(mine.Epoch, next))
		}
		if err := s.Pin(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		if err := s.StepBack(t.Context(), mine, 1); err != nil {
			t.Fatal(err)
		}
		h, err := s.Heading(t.Context(), state.Served)
		if err != nil || h.Version != 3 || h.Pinned != 3 {
			t.Errorf("served is %+v, %v; want the pinned version 3", h, err)
		}
		c := learnt(mine.Epoch, 4)
		if got := save(t, s, c); got != 4 {
			t.Errorf("the next version is %d, want 4", got)
		}
		wantNumbers(t, s, 4, 1, -2, -3)
		if h, err := s.Heading(t.Context(), state.Served); err != nil || h.Version != 3 {
			t.Errorf("after a save served is %+v, %v; want 3", h, err)
		}
		checkInvariants(t, srv)
	})
}
