package redis

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

func TestSaveLoad(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		if _, _, err := s.Load(t.Context(), state.Head); !errors.Is(err, state.ErrNone) {
			t.Errorf("load before the first save: error %v, want ErrNone", err)
		}
		if _, err := s.Heading(t.Context(), state.Served); !errors.Is(err, state.ErrNone) {
			t.Errorf("heading before the first save: error %v, want ErrNone", err)
		}
		if _, err := s.Versions(t.Context()); !errors.Is(err, state.ErrNone) {
			t.Errorf("versions before the first save: error %v, want ErrNone", err)
		}
		epoch := take(t, s)
		identities := map[string]bool{"": true}
		for i, letters := range []string{"ab", "ac", "ac", "", "aaa"} {
			want := checkpoint(epoch, int64(i), letters)
			want.Position.Next = int64(i) * (1 << 55) // beyond a Lua number
			saved := save(t, s, want)
			seen := maps.Clone(identities)
			for _, which := range []state.Pointer{state.Head, state.Served} {
				got, version, err := srv.open(t, nil).Load(t.Context(), which)
				if err != nil {
					t.Fatal(err)
				}
				if version != saved {
					t.Errorf("loaded version %d, saved %d", version, saved)
				}
				heading, err := s.Heading(t.Context(), which)
				if err != nil || heading.Version != saved || heading.Next != want.Position.Next || seen[heading.Identity] {
					t.Errorf("%s names %+v, %v; want version %d, next %d and an identity of its own", which, heading, err, saved, want.Position.Next)
				}
				identities[heading.Identity] = true
				if !bytes.Equal(got.Model, want.Model) {
					t.Errorf("loaded %s: the model has other bytes", which)
				}
				rest := *want
				got.Model, rest.Model = nil, nil // compared above; cmp takes seconds for megabytes
				if diff := cmp.Diff(&rest, got); diff != "" {
					t.Errorf("loaded %s (-saved +loaded):\n%s", which, diff)
				}
			}
		}
	})
}

// A model of hamlet 0.1.0 that is one for each partition is refused, with the way out.
func TestLayout(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		for _, member := range []any{"", "0", "-1", "01"} { // no more than damage
			if err := s.Layout(t.Context()); err != nil {
				t.Errorf("a model of one partition: %v", err)
			}
			srv.plain.SAdd(t.Context(), s.key("partitions"), member)
		}
		save(t, s, checkpoint(take(t, s), 1, ""))
		srv.plain.SAdd(t.Context(), s.key("partitions"), "3")
		err := s.Layout(t.Context())
		if !errors.Is(err, state.ErrPartitions) {
			t.Fatalf("a model for each partition: error %v, want ErrPartitions", err)
		}
		mustContain(t, err.Error(), "partitions [0 3]", srv.model)
	})
}

// A zombie, and a writer that is behind the head, change nothing.
func TestStale(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		zombie, owner := srv.open(t, nil), srv.open(t, nil)
		old := take(t, zombie)
		save(t, zombie, checkpoint(old, 10, "a"))
		epoch := take(t, owner)
		if _, err := zombie.Save(t.Context(), checkpoint(old, 11, "b")); !errors.Is(err, state.ErrStale) || errors.Is(err, state.ErrLost) {
			t.Errorf("a zombie's save: error %v, want ErrStale alone", err)
		}
		if _, err := owner.Save(t.Context(), checkpoint(epoch+1, 11, "b")); !errors.Is(err, state.ErrStale) || !errors.Is(err, state.ErrLost) {
			t.Errorf("a save under an epoch that redis has lost: error %v, want ErrStale and ErrLost", err)
		}
		if _, err := owner.Save(t.Context(), checkpoint(epoch, 9, "b")); !errors.Is(err, state.ErrStale) {
			t.Errorf("save behind the head: error %v, want ErrStale", err)
		}
		if got := srv.keys(t, "0:chunk:*"); len(got) != 2 {
			t.Errorf("chunks after stale saves: %d, want the 2 of the first save", len(got))
		}
		version := save(t, owner, checkpoint(epoch, 10, "c")) // as far as the head is far enough
		if got, err := owner.Heading(t.Context(), state.Head); err != nil || got.Version != version {
			t.Errorf("head is %+v, %v; want version %d", got, err, version)
		}
	})
}

// A save whose reply was lost is tried again and is one version.
func TestSaveAgain(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		epoch := take(t, s)
		first := save(t, s, checkpoint(epoch, 10, "a"))
		again := checkpoint(epoch, 10, "a")
		again.Saved = again.Saved.Add(time.Second)
		if second := save(t, s, again); second != first {
			t.Errorf("the same save twice made versions %d and %d", first, second)
		}
		other := checkpoint(epoch, 10, "a")
		other.Config = []byte(`{"adopted":true}`)
		if third := save(t, s, other); third != first {
			t.Errorf("the same bytes made versions %d and %d", first, third)
		}
		if m, _, err := s.Manifest(t.Context(), state.Head); err != nil || string(m.Config) != string(other.Config) {
			t.Errorf("the manifest says %s, %v; want what was saved last", m.Config, err)
		}
		checkInvariants(t, srv)
	})
}

// The head saved again brings back the model that Redis does not list any more.
func TestSaveAgainListsTheModel(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		c := checkpoint(take(t, s), 10, "a")
		first := save(t, s, c)
		srv.plain.Del(t.Context(), s.key("partitions"))
		if again := save(t, s, c); again != first {
			t.Errorf("the same save twice made versions %d and %d", first, again)
		}
		if got := srv.plain.SMembers(t.Context(), s.key("partitions")).Val(); !slices.Equal(got, []string{"0"}) {
			t.Errorf("partitions %q, want 0", got)
		}
		checkInvariants(t, srv)
	})
}

// The head saved again brings back a chunk that Redis lost, for good.
func TestSaveAgainAfterALoss(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		epoch := take(t, s)
		c := checkpoint(epoch, 10, "ab")
		first := save(t, s, c)
		srv.plain.Del(t.Context(), s.chunkKey(mustSplit(c)[1].Name))
		if again := save(t, s, c); again != first {
			t.Errorf("the same save twice made versions %d and %d", first, again)
		}
		checkInvariants(t, srv)
		srv.pass(time.Hour)
		if _, _, err := srv.open(t, nil).Load(t.Context(), state.Head); err != nil {
			t.Errorf("load, long after: %v", err)
		}
	})
}

// Saving uploads only what changed.
func TestSaveUploadsWhatChanged(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		epoch := take(t, s)
		save(t, s, checkpoint(epoch, 1, "abcd"))
		before := map[string]bool{}
		for _, key := range srv.keys(t, "0:chunk:*") {
			before[key] = true
			// Writing the chunk again would remove this time to live.
			if err := srv.plain.Expire(t.Context(), key, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
		}
		second := checkpoint(epoch, 2, "abxd")
		if err := s.upload(t.Context(), second, cut(second)); err != nil {
			t.Fatal(err)
		}
		for _, key := range srv.keys(t, "0:chunk:*") {
			ttl := srv.plain.TTL(t.Context(), key).Val()
			if was := before[key]; was != (ttl > 30*time.Minute) {
				t.Errorf("%s: was there before: %v, time to live %v", key, was, ttl)
			}
		}
	})
}

func TestKeepAndDaily(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, func(cfg *Config) { cfg.Keep, cfg.Daily = 2, new(3) })
		epoch := take(t, s)
		at := func(day, hour int) *state.Checkpoint {
			c := learnt(epoch, int64(100*day+hour))
			c.Saved = time.Date(2026, 1, day, hour, 0, 0, 0, time.UTC)
			return c
		}
		var kept []int64
		for day := 1; day <= 6; day++ {
			for hour := range 5 {
				save(t, s, at(day, hour))
			}
		}
		infos, err := s.Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			kept = append(kept, info.Position.Next)
		}
		// The last two, and the first of each of the last three days.
		if diff := cmp.Diff([]int64{604, 603, 600, 500, 400}, kept); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
		checkInvariants(t, srv)
	})
}

// A damaged day of an old version is no day. It stops no save.
func TestTrimmingADamagedDay(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, func(cfg *Config) { cfg.Keep = 1 })
		epoch := take(t, s)
		first := save(t, s, checkpoint(epoch, 1, "a"))
		if err := srv.plain.HSet(t.Context(), s.versionKey(first), "day", "?").Err(); err != nil {
			t.Fatal(err)
		}
		save(t, s, checkpoint(epoch, 2, "b"))
		save(t, s, checkpoint(epoch, 3, "c"))
		checkInvariants(t, srv)
	})
}

func TestPin(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, func(cfg *Config) { cfg.Keep, cfg.Daily = 1, new(0) })
		epoch := take(t, s)
		pinned := save(t, s, learnt(epoch, 1))
		if err := s.Pin(t.Context(), pinned); err != nil {
			t.Fatal(err)
		}
		var head int64
		for next := int64(2); next < 6; next++ {
			head = save(t, s, learnt(epoch, next))
		}
		c, version, err := s.Load(t.Context(), state.Served)
		if err != nil || version != pinned || c.Position.Next != 1 {
			t.Fatalf("served is version %d at %v, error %v; want the pinned %d", version, c.Position, err, pinned)
		}
		infos, err := s.Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []state.VersionInfo{
			{Version: head, Epoch: epoch, Events: 5, Saved: noon,
				Position: learnt(epoch, 5).Position, SHA256: learnt(epoch, 5).ModelSHA256, Head: true},
			{Version: pinned, Epoch: epoch, Events: 1, Saved: noon,
				Position: learnt(epoch, 1).Position, SHA256: learnt(epoch, 1).ModelSHA256, Pinned: true, Served: true},
		}
		for i, c := range []*state.Checkpoint{learnt(epoch, 5), learnt(epoch, 1)} {
			want[i].Bytes, want[i].Numerics, want[i].Config = int64(len(c.Model)), c.Numerics, c.Config
		}
		if diff := cmp.Diff(want, infos); diff != "" {
			t.Errorf("versions (-want +got):\n%s", diff)
		}
		if err := s.Pin(t.Context(), pinned+1); !errors.Is(err, state.ErrNone) {
			t.Errorf("pin a version that was trimmed: error %v, want ErrNone", err)
		}
		if err := s.Unpin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Heading(t.Context(), state.Served); err != nil || got.Version != head || got.Next != 5 {
			t.Errorf("served after unpinning is %+v, %v; want the head %d", got, err, head)
		}
		save(t, s, learnt(epoch, 6))
		if infos, err := s.Versions(t.Context()); err != nil || len(infos) != 1 {
			t.Errorf("after unpinning and a save, %d versions are kept, %v; want 1", len(infos), err)
		}
		checkInvariants(t, srv)
	})
}

// If the pinned version is lost, the head is served from the next save on. The pin stays
// visible until an operator ends it.
func TestLostPin(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		epoch := take(t, s)
		version := save(t, s, checkpoint(epoch, 1, "a"))
		save(t, s, checkpoint(epoch, 2, "b"))
		if err := s.Pin(t.Context(), version); err != nil {
			t.Fatal(err)
		}
		srv.plain.Del(t.Context(), s.versionKey(version))
		if err := s.Pin(t.Context(), version); !errors.Is(err, state.ErrNone) {
			t.Errorf("pin a version that is lost: error %v, want ErrNone", err)
		}
		for next := int64(3); next < 5; next++ {
			head := save(t, s, checkpoint(epoch, next, "c"))
			h, err := s.Heading(t.Context(), state.Served)
			if err != nil || h.Version != head || h.Pinned != version {
				t.Errorf("served is %+v, %v; want the head %d and the lost pin of %d", h, err, head, version)
			}
			if pinned, err := s.Pinned(t.Context()); err != nil || pinned != version {
				t.Errorf("pinned is %d, %v; want %d", pinned, err, version)
			}
		}
		if err := s.Unpin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if h, err := s.Heading(t.Context(), state.Served); err != nil || h.Pinned != 0 {
			t.Errorf("after unpinning served is %+v, %v; want no pin", h, err)
		}
	})
}

// A model of more chunks than fit in one pipeline, the same one twice and one lost,
// comes back in order or not at all. No window asks for more than its share.
func TestLoadInWindows(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		epoch := take(t, s)
		want := checkpoint(epoch, 10, "abcdefghaijklmnopqb")
		save(t, s, want)
		largest := &widest{}
		s.client.AddHook(largest)
		got, _, err := s.Load(t.Context(), state.Head)
		if err != nil || !bytes.Equal(got.Model, want.Model) {
			t.Fatalf("load: %v, or other bytes", err)
		}
		if largest.commands > pipelined || largest.commands == 0 {
			t.Errorf("a pipeline had %d commands, want at most %d", largest.commands, pipelined)
		}
		srv.plain.Del(t.Context(), s.chunkKey(mustSplit(want)[12].Name))
		if _, _, err := s.Load(t.Context(), state.Head); !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("load without a chunk of the second window: error %v, want ErrCorrupt", err)
		}
	})
}

// A widest is a client's hook that records the largest pipeline.
type widest struct{ commands int }

func (w *widest) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (w *widest) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (w *widest) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		w.commands = max(w.commands, len(commands))
		return next(ctx, commands)
	}
}

// After damage in Redis, Load returns an older version and logs that. The writer goes
// on from there and repairs what it can.
func TestLoadFallsBack(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, srv server, s *Store){
		"chunk lost": func(t *testing.T, srv server, s *Store) {
			srv.plain.Del(t.Context(), s.chunkKey(mustSplit(checkpoint(1, 30, "ac"))[1].Name))
		},
		"chunk decayed": func(t *testing.T, srv server, s *Store) {
			srv.plain.SetRange(t.Context(), s.chunkKey(mustSplit(checkpoint(1, 30, "ac"))[1].Name), 7, "?")
		},
		"manifest decayed": func(t *testing.T, srv server, s *Store) {
			srv.plain.HSet(t.Context(), s.versionKey(3), "manifest", "hamletMF?")
		},
		"version lost": func(t *testing.T, srv server, s *Store) {
			srv.plain.Del(t.Context(), s.versionKey(3))
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, srv server) {
				var log bytes.Buffer
				s := srv.open(t, nil)
				epoch := take(t, s)
				save(t, s, checkpoint(epoch, 10, "a"))
				save(t, s, checkpoint(epoch, 20, "ab"))
				save(t, s, checkpoint(epoch, 30, "ac"))
				damage(t, srv, s)
				m, version, err := s.Manifest(t.Context(), state.Head)
				if want := map[bool]int64{true: 3, false: 2}[strings.HasPrefix(name, "chunk")]; err != nil || version != want || m.Position.Next != 10*want {
					t.Errorf("manifest of version %d, error %v; want version %d", version, err, want)
				}

				// The next learner.
				s = srv.open(t, func(cfg *Config) { cfg.Log = logTo(&log) })
				epoch = take(t, s)
				c, version, err := s.Load(t.Context(), state.Head)
				if err != nil || version != 2 || c.Position.Next != 20 {
					t.Fatalf("loaded version %d, error %v; want version 2 at 20", version, err)
				}
				mustContain(t, log.String(), "level=WARN", "version=3", "before=2", "corrupt")

				// It begins before the head and makes the same bytes again.
				save(t, s, checkpoint(epoch, 25, "a"))
				save(t, s, checkpoint(epoch, 30, "ac"))
				fresh := srv.open(t, nil)
				c, _, err = fresh.Load(t.Context(), state.Head)
				if err != nil || c.Position.Next != 30 || c.ModelSHA256 != checkpoint(1, 30, "ac").ModelSHA256 {
					t.Errorf("after replay the head does not load: %v", err)
				}
			})
		})
	}
}

// The next save that names a damaged chunk writes it again.
func TestSaveMends(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		epoch := take(t, s)
		save(t, s, checkpoint(epoch, 10, "ab"))
		key := s.chunkKey(mustSplit(checkpoint(epoch, 10, "ab"))[0].Name)
		if err := srv.plain.SetRange(t.Context(), key, 0, "decay").Err(); err != nil {
			t.Fatal(err)
		}
		s = srv.open(t, nil)
		if _, _, err := s.Load(t.Context(), state.Head); !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("load of the only version, corrupt: error %v, want ErrCorrupt", err)
		}
		epoch = take(t, s)
		save(t, s, checkpoint(epoch, 11, "ac"))
		if _, _, err := s.Load(t.Context(), state.Head); err != nil {
			t.Errorf("load after a save over a decayed chunk: %v", err)
		}
		checkInvariants(t, srv)
	})
}

// A chunk that never changes, and that is damaged while its writer runs, is written
// again within compareEvery saves.
func TestSaveMendsInTime(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		epoch := take(t, s)
		save(t, s, checkpoint(epoch, 10, "ab"))
		key := s.chunkKey(mustSplit(checkpoint(epoch, 10, "ab"))[0].Name)
		if err := srv.plain.SetRange(t.Context(), key, 0, "decay").Err(); err != nil {
			t.Fatal(err)
		}
		for next := int64(11); next < 11+compareEvery; next++ {
			save(t, s, checkpoint(epoch, next, "ac"))
		}
		if _, _, err := s.Load(t.Context(), state.Head); err != nil {
			t.Errorf("after %d saves: %v", compareEvery, err)
		}
		checkInvariants(t, srv)
	})
}

// Where nothing can be loaded, the error says which key is to blame and what to do.
func TestLoadSaysWhatToDo(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		version := save(t, s, checkpoint(take(t, s), 10, "ab"))
		for _, text := range []string{"abc", "99999999999999999999", ""} {
			srv.plain.Set(t.Context(), s.key("head"), text, 0)
			_, _, err := s.Load(t.Context(), state.Head)
			if !errors.Is(err, state.ErrCorrupt) {
				t.Fatalf("a head of %q: %v, want ErrCorrupt", text, err)
			}
			mustContain(t, err.Error(), s.key("head"), strconv.Quote(text), "delete the key")
		}
		srv.plain.Del(t.Context(), s.key("head"))
		if _, got, err := s.Load(t.Context(), state.Head); err != nil || got != version {
			t.Errorf("without the key: version %d, %v", got, err)
		}
		srv.plain.HSet(t.Context(), s.versionKey(version), "manifest", "?")
		_, _, err := s.Load(t.Context(), state.Head)
		if !errors.Is(err, state.ErrCorrupt) {
			t.Fatalf("a manifest of ?: %v, want ErrCorrupt", err)
		}
		mustContain(t, err.Error(), "no version is whole", "with the learners stopped put a backup of redis back, or, ", "delete its keys "+s.key("[^p]*")+" and "+s.key("pinned"))
	})
}

// Load's advice deletes all that the log does not give back.
func TestMadeAnewAsAdvised(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		version := save(t, s, checkpoint(take(t, s), 10, "a"))
		if err := s.Pin(t.Context(), version); err != nil {
			t.Fatal(err)
		}
		srv.plain.HSet(t.Context(), s.versionKey(version), "manifest", "?")
		_, _, err := s.Load(t.Context(), state.Head)
		if !errors.Is(err, state.ErrCorrupt) {
			t.Fatalf("a manifest of ?: %v, want ErrCorrupt", err)
		}
		_, deleted, _ := strings.Cut(err.Error(), "delete its keys ")
		for pattern := range strings.SplitSeq(deleted, " and ") {
			for _, key := range srv.keys(t, strings.TrimPrefix(pattern, "hamlet:{"+srv.model+"}:")) {
				srv.plain.Del(t.Context(), key)
			}
		}
		left := srv.keys(t, "0:*")
		if want := []string{s.key("partitions")}; !slices.Equal(left, want) {
			t.Errorf("the keys %q are left, want %q", left, want)
		}
		if _, _, err := s.Load(t.Context(), state.Head); !errors.Is(err, state.ErrNone) {
			t.Errorf("load after the deletion: %v, want ErrNone", err)
		}
		again := save(t, s, checkpoint(take(t, s), 3, "c"))
		if _, served, err := s.Load(t.Context(), state.Served); err != nil || served != again {
			t.Errorf("version %d is served, %v; want what was made anew, %d", served, err, again)
		}
	})
}

// A trimmed version can still be read until the grace ends.
func TestTrimmingSparesReaders(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, func(cfg *Config) { cfg.Keep, cfg.Daily = 1, new(0) })
		epoch := take(t, s)
		first := save(t, s, checkpoint(epoch, 1, "a"))
		for next := int64(2); next < 5; next++ {
			save(t, s, checkpoint(epoch, next, "b"))
		}
		if _, err := s.loadVersion(t.Context(), first); err != nil {
			t.Errorf("a reader of a version trimmed just now: %v", err)
		}
		srv.pass(31 * time.Second)
		if _, err := s.loadVersion(t.Context(), first); !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("a version trimmed before the grace: error %v, want ErrCorrupt", err)
		}
		if got := len(srv.keys(t, "0:chunk:*")); got != 2 {
			t.Errorf("%d chunks are left, want the head's 2", got)
		}
		if got := len(srv.keys(t, "0:version:*")); got != 1 {
			t.Errorf("%d manifests are left, want the head's", got)
		}
	})
}

// A lost pointer is not a lost model.
func TestLostPointer(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		var log bytes.Buffer
		s := srv.open(t, func(cfg *Config) { cfg.Log = logTo(&log) })
		version := save(t, s, checkpoint(take(t, s), 1, "a"))
		srv.plain.Del(t.Context(), s.key("head"))
		if _, got, err := s.Load(t.Context(), state.Head); err != nil || got != version {
			t.Errorf("load without a head: version %d, %v; want %d", got, err, version)
		}
		mustContain(t, log.String(), "lost a pointer", "pointer=head")
	})
}

func TestSaveEndsWithItsContext(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		s := srv.open(t, nil)
		epoch := take(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Save(ctx, checkpoint(epoch, 1, "a")); !errors.Is(err, context.Canceled) || errors.Is(err, state.ErrTransient) {
			t.Errorf("save under a cancelled context: error %v, transient %v", err, errors.Is(err, state.ErrTransient))
		}
	})
}

// One save of 8 MiB and one load, as the learner makes them every few seconds.
func BenchmarkSave(b *testing.B) {
	for _, kind := range []string{"embedded", "real"} {
		b.Run(kind, func(b *testing.B) {
			srv, ok := benchServer(b, kind)
			if !ok {
				b.Skip("HAMLET_REDIS names no server")
			}
			s := srv.open(b, func(cfg *Config) { cfg.Grace = time.Second })
			epoch := take(b, s)
			c := checkpoint(epoch, 0, "abcdefgh")
			b.SetBytes(int64(len(c.Model)))
			for b.Loop() {
				c.Position.Next++
				for i := 0; i < len(c.Model); i += state.ChunkSize {
					c.Model[i] = byte(c.Position.Next)
					c.Model[i+1] = byte(c.Position.Next >> 8)
				}
				save(b, s, c)
			}
		})
	}
}
