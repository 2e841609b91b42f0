package redis

import (
	"errors"
	"slices"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"hamlet/state"
)

// Models finds every model that has a checkpoint, whatever else the database holds. A real
// server has models of other tests.
func TestModels(t *testing.T) {
	srv := connect(t, miniredis.RunT(t).Addr(), nil)
	s := srv.open(t, nil)
	if names, err := s.Models(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("of an empty database: %v, %v", names, err)
	}
	for _, name := range []string{"spam", "a-2", "default"} {
		other := srv.open(t, func(cfg *Config) { cfg.Model = name })
		save(t, other, checkpoint(take(t, other), 1, "a"))
	}
	for _, key := range []string{"hamlet:{No}:0:partitions", "hamlet:{x}:1:partitions", "x:hamlet:{y}:0:partitions"} {
		if err := s.client.SAdd(t.Context(), key, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	names, err := s.Models(t.Context())
	if want := []string{"a-2", "default", "spam"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("models %q, %v; want %q", names, err, want)
	}
}

// LoadVersion takes no other version in the place of one that is gone or damaged.
func TestLoadVersion(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		epoch := take(t, s)
		first := save(t, s, checkpoint(epoch, 1, "a"))
		second := save(t, s, checkpoint(epoch, 2, "b"))
		for version, next := range map[int64]int64{first: 1, second: 2} {
			if c, err := s.LoadVersion(t.Context(), version); err != nil || c.Position.Next != next {
				t.Errorf("version %d: %+v, %v", version, c, err)
			}
		}
		if _, err := s.LoadVersion(t.Context(), second+1); !errors.Is(err, state.ErrNone) {
			t.Errorf("a version that is not kept: %v", err)
		}
		if err := s.client.HSet(t.Context(), s.versionKey(second), "manifest", "x").Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.LoadVersion(t.Context(), second); !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("a damaged version: %v", err)
		}
	})
}
