package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/service/machine"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream/servertest"
)

// A clock that was ahead does not cost the backup that was just taken.
func TestABackupOfTheFuture(t *testing.T) {
	r := newRig(t)
	r.save("default", 10)
	r.backup()
	f := folder{r.dir}
	x, err := f.choose("")
	if err != nil {
		t.Fatal(err)
	}
	x.Taken = x.Taken.Add(time.Hour)
	if err := f.finish(x); err != nil {
		t.Fatal(err)
	}
	r.save("default", 20)
	for _, keep := range []string{"0", "1"} {
		last := r.backup("--keep", keep)
		if x, err := f.choose(""); err != nil || x.name != last.Backup {
			t.Errorf("--keep %s: the newest is %v, %v; want %s", keep, x, err, last.Backup)
		}
	}
	// Without the one that was just taken nothing is deleted.
	if _, err := f.prune(1, x.name); err == nil {
		t.Error("a backup that is not there is taken for the newest")
	}
	if out, err := r.run("verify", r.dir); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Root leaves no file in the directory of another user.
func TestADirectoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can write to the directory of another user")
	}
	r := newRig(t)
	r.save("default", 10)
	r.backup()
	data := t.TempDir()
	for _, dir := range []string{r.dir, data} {
		if err := os.Chown(dir, 65534, -1); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"backup", r.dir, "--redis", r.server.Addr()}, {"restore", r.dir, "--data", data}} {
		if _, err := r.run(args...); err == nil || !strings.Contains(err.Error(), "as its owner") {
			t.Errorf("%v: %v", args, err)
		}
	}
	if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// What a restore replaces pushes no version out.
func TestReplaceKeepsVersions(t *testing.T) {
	r := newRig(t)
	for n := range 6 {
		r.save("default", n+1)
	}
	r.backup()
	if out, err := r.restore("--replace"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if kept, err := r.store("default").Versions(t.Context()); err != nil || len(kept) < 6 {
		t.Errorf("%d versions are kept, %v", len(kept), err)
	}
}

// The version that a restore takes the place of can be pinned for 30 days, however few versions the
// learner keeps. The version in its place goes as all others do.
func TestAReplacedVersionStays(t *testing.T) {
	r := newRig(t)
	r.save("default", 20)
	r.backup()
	r.wipe()
	before := r.save("default", 10)
	want := r.sha256("default", state.Head)
	if out, err := r.restore("--replace"); err != nil || !strings.Contains(out, fmt.Sprintf("version %d, which it replaces", before)) {
		t.Fatalf("%v\n%s", err, out)
	}
	store, err := redis.New(redis.Config{Addr: r.server.Addr(), Model: "default", Keep: 1, Daily: new(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	lease, err := store.Seize(t.Context(), "learner")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{30, 40} {
		c := checkpointOf(t, n)
		c.Epoch, c.Writer = lease.Epoch, lease.Writer
		if _, err := store.Save(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := store.Versions(t.Context()); err != nil || len(kept) != 2 || kept[1].Version != before || !kept[1].Replaced {
		t.Errorf("kept are %+v, %v; want the newest, and version %d", kept, err, before)
	}
	if err := store.Pin(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if got := r.sha256("default", state.Served); got != want {
		t.Errorf("version %d has come back as another: %s, want %s", before, got, want)
	}
}

// A model of which no version is whole is refused before anything is written.
func TestADamagedModelInRedis(t *testing.T) {
	r := newRig(t)
	r.save("default", 10)
	r.backup()
	for _, key := range r.server.Keys() {
		if strings.Contains(key, ":chunk:") {
			r.server.Del(key)
		}
	}
	r.wantRefused("delete these keys, then run this command with --replace", "--replace")
}

// A learner that runs is seen in Redis, without Kafka too, and the help says so.
func TestARunningLearnerIsSeenWithoutKafka(t *testing.T) {
	r := newRig(t)
	r.save("default", 10)
	r.backup()
	store := r.store("default")
	mine, err := store.Seize(t.Context(), "web-1/4711")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if _, err := store.Beat(t.Context(), mine); err != nil {
				ended <- err
				return
			}
			select {
			case <-time.After(lookAgain / 3):
			case <-ctx.Done():
			}
		}
		ended <- nil
	}()
	_, err = r.restore("--replace")
	stop()
	if beats := <-ended; beats != nil || err == nil || !strings.Contains(err.Error(), "the learner web-1/4711 runs") {
		t.Errorf("%v, %v", err, beats)
	}
	if help := (Restore{}).Help(); !strings.Contains(help, "a learner of the model runs, which its lease says;") {
		t.Errorf("the help does not say it:\n%s", help)
	}
}

// A pin that is not restored is said.
func TestANewLogSaysThePin(t *testing.T) {
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	r := newRig(t)
	r.save("default", 10)
	r.save("default", 20)
	if err := r.store("default").Pin(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	r.backup()
	r.wipe()
	out, err := r.restore("--new-log", "--kafka", k.Addr())
	if err != nil || !strings.Contains(out, "version 1 was pinned in the backup and is not restored") || strings.Contains(out, "nobody has compared") {
		t.Errorf("%v\n%s", err, out)
	}
}

// In the place of a model a backup is restored without its older versions. What becomes of the pins is said.
func TestAReplacedModelSaysThePin(t *testing.T) {
	const not = "was pinned in the backup and is not restored"
	for name, c := range map[string]struct {
		backup, store int64 // what is pinned; 0: nothing
		answers       int64 // after the restore
		says, not     string
	}{
		"the backup's pin is gone":   {backup: 1, answers: 2, says: "version 1 " + not + "\n  answers come from the newest version"},
		"the store has another pin":  {backup: 2, store: 1, answers: 1, says: "version 2 " + not, not: "the newest version"},
		"the store has the same pin": {backup: 1, store: 1, answers: 1, says: "answers come from version 1", not: not},
		"the newest was pinned":      {backup: 2, answers: 2, says: "answers come from version 2", not: not},
		"only the store has one":     {store: 1, answers: 1, says: "answers come from version 1", not: not},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.save("default", 10)
			r.save("default", 20)
			store := r.store("default")
			pin := func(version int64) {
				t.Helper()
				err := store.Unpin(t.Context())
				if version != 0 {
					err = store.Pin(t.Context(), version)
				}
				if err != nil && !errors.Is(err, state.ErrNone) {
					t.Fatal(err)
				}
			}
			pin(c.backup)
			r.backup()
			pin(c.store)
			out, err := r.restore("--replace")
			if err != nil || !strings.Contains(out, c.says) || c.not != "" && strings.Contains(out, c.not) {
				t.Errorf("%v\n%s", err, out)
			}
			if answers, err := store.Heading(t.Context(), state.Served); err != nil || answers.Version != c.answers {
				t.Errorf("answers come from version %d, not %d; %v", answers.Version, c.answers, err)
			}
		})
	}
}

// A pin of a version that the store has lost is no pin.
func TestADeadPinIsNotKept(t *testing.T) {
	r := newRig(t)
	r.save("default", 10)
	r.save("default", 20)
	store := r.store("default")
	r.backup()
	if err := store.Pin(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, key := range r.server.Keys() {
		if strings.HasSuffix(key, ":version:1") || strings.Contains(key, ":manifest:1") {
			r.server.Del(key)
		}
	}
	if was, err := store.Heading(t.Context(), state.Served); err != nil || was.Pinned != 1 || was.Identity != "" {
		t.Fatalf("%+v, %v: version 1 is not lost", was, err)
	}
	out, err := r.restore("--replace")
	if err != nil || strings.Contains(out, "which was pinned") {
		t.Errorf("%v\n%s", err, out)
	}
	if pinned, err := store.Pinned(t.Context()); err != nil || pinned != 0 {
		t.Errorf("version %d is pinned, %v", pinned, err)
	}
}

// A restore and a verify lock the directory against a backup, which deletes.
func TestReadersLockTheDirectory(t *testing.T) {
	r := newRig(t)
	r.save("default", 10)
	r.backup()
	unlock, err := machine.Lock(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", r.dir}, {"restore", r.dir, "--redis", r.server.Addr(), "--replace"}} {
		if _, err := r.run(args...); err == nil || !strings.Contains(err.Error(), "another hamlet uses it") {
			t.Errorf("%v: %v", args, err)
		}
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(r.dir, ".lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.run("verify", r.dir); err != nil {
		t.Error(err)
	}
}

// An index that no backup can have is not read.
func TestImpossibleIndexes(t *testing.T) {
	version := func(n int64) Version { return Version{Version: n} }
	one := []Version{version(1)}
	for what, m := range map[string][]Model{
		"name":                  {{Name: "a\x1b[2J", Partitions: []Partition{{Versions: one}}}},
		"model twice":           {{Name: "a", Partitions: []Partition{{Versions: one}}}, {Name: "a", Partitions: []Partition{{Versions: one}}}},
		"negative partition":    {{Name: "a", Partitions: []Partition{{Partition: -1, Versions: one}}}},
		"partition twice":       {{Name: "a", Partitions: []Partition{{Versions: one}, {Versions: one}}}},
		"versions descend":      {{Name: "a", Partitions: []Partition{{Versions: []Version{version(2), version(1)}}}}},
		"version 0":             {{Name: "a", Partitions: []Partition{{Versions: []Version{version(0)}}}}},
		"no version":            {{Name: "a", Partitions: []Partition{{}}}},
		"pinned is not in it":   {{Name: "a", Partitions: []Partition{{Pinned: 2, Versions: one}}}},
		"no partition of model": {{Name: "a"}},
	} {
		if err := (&Index{Models: m}).possible(); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if err := (&Index{Models: []Model{{Name: "a", Partitions: []Partition{{Pinned: 1, Versions: one}}}}}).possible(); err != nil {
		t.Error(err)
	}
}
