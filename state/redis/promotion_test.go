package redis

import (
	"errors"
	"testing"

	"hamlet/state"
)

// The store of another model shares the connections, and closing it closes none.
func TestBeside(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		other, err := s.Beside("other")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Beside("No Name"); err == nil {
			t.Error("a store of no model's name")
		}
		if err := other.Promote(t.Context(), state.Promotion{Model: "third"}); err != nil {
			t.Fatal(err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		if p, err := s.Promotion(t.Context()); !errors.Is(err, state.ErrNone) {
			t.Errorf("the promotion of another model: %+v, %v", p, err)
		}
		if p, err := other.Promotion(t.Context()); err != nil || p.Model != "third" {
			t.Errorf("%+v, %v", p, err)
		}
		if err := s.client.Del(t.Context(), other.(*Store).key("promotion")).Err(); err != nil {
			t.Fatal(err)
		}
	})
}

// A key that is no promotion is corrupt, and promoting again repairs it.
func TestDamagedPromotion(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		key := s.key("promotion")
		for _, damage := range []func() error{
			func() error { return s.client.Set(t.Context(), key, "cand", 0).Err() },
			func() error {
				return errors.Join(s.client.Del(t.Context(), key).Err(), s.client.HSet(t.Context(), key, "model", "cand").Err())
			},
		} {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			if p, err := s.Promotion(t.Context()); !errors.Is(err, state.ErrCorrupt) {
				t.Errorf("%+v, %v; want ErrCorrupt", p, err)
			}
			if err := s.Promote(t.Context(), state.Promotion{Model: "cand"}); err != nil {
				t.Fatal(err)
			}
			if p, err := s.Promotion(t.Context()); err != nil || p.Model != "cand" {
				t.Errorf("%+v, %v", p, err)
			}
		}
	})
}
