package redis

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hamlet/state"
)

// Whatever happens to keys between saves (lost, garbage, set back, of another type), a
// writer that goes on, and takes the model again where it is told that its epoch is
// lost, has its checkpoint back in Redis after compareEvery saves at most.
func TestAWriterHealsAnyDamage(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, srv server) {
		random := rand.New(rand.NewPCG(13, 4))
		s := srv.open(t, func(cfg *Config) { cfg.Keep = 2 })
		epoch := take(t, s)
		next := int64(0)
		saveHealing := func(letters string) error {
			next++
			_, err := s.Save(t.Context(), checkpoint(epoch, next, letters))
			if errors.Is(err, state.ErrLost) {
				epoch = take(t, s)
				_, err = s.Save(t.Context(), checkpoint(epoch, next, letters))
			}
			return err
		}
		for range 3 {
			if err := saveHealing("ab"); err != nil {
				t.Fatal(err)
			}
		}
		older := map[string]string{}
		for _, key := range srv.keys(t, "*") {
			dump, err := srv.plain.Dump(t.Context(), key).Result()
			if err != nil {
				dump = "" // this server cannot
			}
			older[key] = dump
		}
		names := []string{"epoch", "last", "head", "served", "versions", "partitions", ""}
		for round := range 15 {
			keys := srv.keys(t, "*")
			var done []string
			for range 1 + random.IntN(3) {
				key := keys[random.IntN(len(keys))]
				if of := names[random.IntN(len(names))]; of != "" { // or most would be old versions
					key = "hamlet:{" + srv.model + "}:0:" + of
				}
				kind := random.IntN(4)
				done = append(done, fmt.Sprintf("%d %s", kind, key))
				var err error
				switch _, name, _ := strings.Cut(key, "}:0:"); {
				case kind == 0:
					err = srv.plain.Del(t.Context(), key).Err()
				case kind == 1 && older[key] != "":
					err = srv.plain.RestoreReplace(t.Context(), key, 0, older[key]).Err()
				case kind == 2: // another type, whatever it was
					if err = srv.plain.Del(t.Context(), key).Err(); err == nil {
						err = srv.plain.RPush(t.Context(), key, "?").Err()
					}
				case strings.HasPrefix(name, "version:"):
					_ = srv.plain.Del(t.Context(), key).Err()
					err = srv.plain.HSet(t.Context(), key, "manifest", "garbage", "next", "7", "identity", "?").Err()
				default: // garbage, which is another type for sets
					err = srv.plain.Set(t.Context(), key, "garbage", 0).Err()
				}
				if err != nil {
					t.Fatal(done, err)
				}
			}
			letters := "ab"
			for range compareEvery {
				if err := saveHealing(letters); err != nil {
					t.Fatalf("round %d, after %q: %v", round, done, err)
				}
			}
			reader := srv.open(t, nil)
			if got := srv.plain.SMembers(t.Context(), reader.key("partitions")).Val(); !slices.Equal(got, []string{"0"}) {
				t.Fatalf("round %d, after %q: partitions %q, want 0", round, done, got)
			}
			for _, which := range []state.Pointer{state.Head, state.Served} {
				c, _, err := reader.Load(t.Context(), which)
				if err != nil {
					t.Fatalf("round %d, after %q: load %v: %v", round, done, which, err)
				}
				if c.Position.Next != next || !bytes.Equal(c.Model, model(letters)) {
					t.Fatalf("round %d, after %q: %v is at %d, want %d, or another model", round, done, which, c.Position.Next, next)
				}
			}
		}
	})
}
