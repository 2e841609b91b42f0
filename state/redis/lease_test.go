package redis

import (
	"testing"

	"hamlet/state"
)

// A program before 0.2.0 raises the epoch and saves, and knows no lease. Who watches sees that
// nobody beats, and each of its saves once. Whoever saw that may acquire the lease.
func TestLeaseOfAnOlderProgram(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s, other := srv.open(t, nil), srv.open(t, nil)
		ctx := t.Context()
		if _, err := s.Seize(ctx, "new"); err != nil {
			t.Fatal(err)
		}
		if err := s.client.Incr(ctx, s.key("epoch")).Err(); err != nil {
			t.Fatal(err)
		}
		look := func(s *Store, saved bool) (l state.Lease) {
			t.Helper()
			l, err := s.Lease(ctx)
			if want := (state.Lease{Epoch: 2, Beats: state.Unbeaten, Saved: saved}); err != nil || l != want {
				t.Errorf("the lease is %+v, %v; want %+v", l, err, want)
			}
			if h, err := s.Holder(ctx); err != nil || h != (state.Lease{Epoch: 2, Beats: state.Unbeaten}) {
				t.Errorf("who only reads sees %+v, %v", h, err)
			}
			return l
		}
		for range 2 {
			look(s, true)
			before := look(s, false)
			if !look(s, false).Same(before) {
				t.Error("a look has changed the lease")
			}
			look(other, true)
			if err := s.client.Del(ctx, s.key("refs")).Err(); err != nil { // what its save does
				t.Fatal(err)
			}
		}
		seen := look(other, true)
		mine, err := other.Acquire(ctx, seen, "new")
		if err != nil || mine != (state.Lease{Epoch: 3, Beats: 1, Writer: "new"}) {
			t.Errorf("acquired %+v, %v", mine, err)
		}
	})
}
