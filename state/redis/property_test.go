package redis

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"pgregory.net/rapid"

	"hamlet/state"
)

func mustSplit(c *state.Checkpoint) []state.Chunk {
	_, chunks := state.Split(c)
	return chunks
}

// cut returns the chunks of c, which Redis may hold.
func cut(c *state.Checkpoint) (chunks []chunk) {
	if _, err := state.Cut(c, unlisted(&chunks, nil)); err != nil {
		panic(err) // it has no Source
	}
	return chunks
}

func benchServer(b *testing.B, kind string) (server, bool) {
	if kind == "embedded" {
		m := miniredis.RunT(b)
		m.ClockTTL(true)
		return connect(b, m.Addr(), nil), true
	}
	addr := os.Getenv("HAMLET_REDIS")
	if addr == "" {
		return server{}, false
	}
	return connect(b, addr, nil), true
}

// fataler is what *testing.T and *rapid.T share here.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkInvariants compares everything that Redis holds of the model: chunks
// without a time to live are exactly those that kept versions name, references
// count these, and the pointers name whole versions.
func checkInvariants(t fataler, srv server) {
	t.Helper()
	ctx := context.Background()
	prefix := "hamlet:{" + srv.model + "}:0:"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("look into redis: %v", err)
		}
	}

	kept, err := srv.plain.ZRange(ctx, prefix+"versions", 0, -1).Result()
	must(err)
	named := map[string]int{}
	for _, version := range kept {
		b, err := srv.plain.HGet(ctx, prefix+"version:"+version, "manifest").Bytes()
		must(err)
		var m state.Manifest
		must(m.UnmarshalBinary(b))
		unique := map[string]bool{}
		for _, name := range m.Chunks {
			unique[hex.EncodeToString(name[:])] = true
		}
		for name := range unique {
			named[name]++
		}
		if ttl := srv.plain.PTTL(ctx, prefix+"version:"+version).Val(); ttl >= 0 {
			t.Fatalf("kept version %s expires in %v", version, ttl)
		}
	}

	permanent := map[string]bool{}
	scan := srv.plain.Scan(ctx, 0, prefix+"chunk:*", 1000).Iterator()
	for scan.Next(ctx) {
		ttl, err := srv.plain.PTTL(ctx, scan.Val()).Result()
		must(err)
		if ttl == -1 {
			permanent[strings.TrimPrefix(scan.Val(), prefix+"chunk:")] = true
		}
	}
	must(scan.Err())
	for name := range named {
		if !permanent[name] {
			t.Fatalf("chunk %s is named by a kept version and missing or about to expire", name)
		}
	}
	for name := range permanent {
		if named[name] == 0 {
			t.Fatalf("chunk %s has leaked: it never expires and no kept version names it", name)
		}
	}
	for _, pointer := range []string{"head", "served", "pinned"} {
		if version := srv.plain.Get(ctx, prefix+pointer).Val(); version != "" && !slices.Contains(kept, version) {
			t.Fatalf("%s names version %s, kept are %v", pointer, version, kept)
		}
	}
}

// A writer is one learner in the property below: it takes, learns, and saves.
type writer struct {
	store *Store
	epoch int64
	next  int64
	model string
}

// Any interleaving of two writers, with crashes between upload and flip, pins and
// the passing of time, keeps the invariants, and the head never goes back.
func TestInterleavings(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		rapid.Check(t, func(rt *rapid.T) {
			srv.clear(t)
			cfg := srv.config()
			cfg.Grace = time.Minute
			cfg.Keep = rapid.IntRange(1, 3).Draw(rt, "keep")
			cfg.Daily = new(rapid.SampledFrom([]int{0, 1, 2}).Draw(rt, "daily"))
			var writers [2]*writer
			for i := range writers {
				s, err := New(cfg)
				if err != nil {
					rt.Fatal(err)
				}
				defer s.Close()
				writers[i] = &writer{store: s}
			}
			ctx := context.Background()
			now := noon
			var owner int64 // the newest epoch
			var headNext int64 = -1

			built := func(w *writer) *state.Checkpoint {
				c := checkpoint(w.epoch, w.next, w.model)
				c.Saved = now
				return c
			}
			either := rapid.SampledFrom(writers[:])
			rt.Repeat(map[string]func(*rapid.T){
				"take": func(rt *rapid.T) {
					w := either.Draw(rt, "writer")
					lease, err := w.store.Seize(ctx, "w")
					if err != nil {
						rt.Fatal(err)
					}
					if lease.Epoch <= owner {
						rt.Fatalf("took epoch %d after %d", lease.Epoch, owner)
					}
					owner, w.epoch = lease.Epoch, lease.Epoch
					c, _, err := w.store.Load(ctx, state.Head)
					switch {
					case errors.Is(err, state.ErrNone) && headNext < 0:
						w.next, w.model = 0, ""
					case err != nil:
						rt.Fatalf("load after taking: %v", err)
					case c.Position.Next != headNext:
						rt.Fatalf("loaded offset %d, the head is at %d", c.Position.Next, headNext)
					default:
						w.next = c.Position.Next
						w.model = strings.TrimPrefix(string(c.Model[len(c.Model)/state.ChunkSize*state.ChunkSize:]), "the end of ")
					}
				},
				"learn": func(rt *rapid.T) {
					w := either.Draw(rt, "writer")
					w.next += rapid.Int64Range(0, 3).Draw(rt, "records")
					w.model = rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "model")
				},
				"save": func(rt *rapid.T) {
					w := either.Draw(rt, "writer")
					_, err := w.store.Save(ctx, built(w))
					stale := w.epoch != owner || w.epoch == 0 || w.next < headNext
					if stale != errors.Is(err, state.ErrStale) || !stale && err != nil {
						rt.Fatalf("save with epoch %d of %d, offset %d, head's %d: error %v",
							w.epoch, owner, w.next, headNext, err)
					}
					if !stale {
						headNext = w.next
					}
				},
				"step back": func(rt *rapid.T) {
					w := either.Draw(rt, "writer")
					kept, err := w.store.Versions(ctx)
					kept = slices.DeleteFunc(kept, func(v state.VersionInfo) bool { return v.Lost })
					if errors.Is(err, state.ErrNone) || len(kept) == 0 {
						return
					}
					if err != nil {
						rt.Fatal(err)
					}
					to := rapid.SampledFrom(kept).Draw(rt, "version")
					err = w.store.StepBack(ctx, state.Lease{Epoch: w.epoch}, to.Version)
					stale := w.epoch != owner || w.epoch == 0
					if stale != errors.Is(err, state.ErrStale) || !stale && err != nil {
						rt.Fatalf("step back with epoch %d of %d: %v", w.epoch, owner, err)
					}
					if !stale {
						headNext = to.Position.Next
					}
				},
				"crash after upload": func(rt *rapid.T) {
					w := either.Draw(rt, "writer")
					c := built(w)
					if err := w.store.upload(ctx, c, cut(c)); err != nil {
						rt.Fatal(err)
					}
				},
				"pin": func(rt *rapid.T) {
					s := writers[0].store
					infos, err := s.Versions(ctx)
					if errors.Is(err, state.ErrNone) {
						return
					}
					if err != nil {
						rt.Fatal(err)
					}
					version := rapid.SampledFrom(infos).Draw(rt, "version").Version
					if err := s.Pin(ctx, version); err != nil {
						rt.Fatal(err)
					}
				},
				"unpin": func(rt *rapid.T) {
					if err := writers[1].store.Unpin(ctx); err != nil {
						rt.Fatal(err)
					}
				},
				"next day": func(*rapid.T) { now = now.Add(24 * time.Hour) },
				"time passes": func(*rapid.T) {
					srv.pass(40 * time.Second)
				},
				"": func(rt *rapid.T) {
					checkInvariants(rt, srv)
					c, _, err := writers[0].store.Load(ctx, state.Head)
					if errors.Is(err, state.ErrNone) && headNext < 0 {
						return
					}
					if err != nil {
						rt.Fatalf("load the head: %v", err)
					}
					if c.Position.Next != headNext {
						rt.Fatalf("the head is at offset %d, saved was %d", c.Position.Next, headNext)
					}
				},
			})
		})
	})
}
