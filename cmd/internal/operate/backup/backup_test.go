package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
)

// A rig is a Redis whose models are saved by hand, and a directory of backups.
type rig struct {
	t      *testing.T
	server *miniredis.Miniredis
	dir    string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{t: t, server: miniredis.RunT(t), dir: filepath.Join(t.TempDir(), "backups")}
}

// wipe puts an empty Redis in the place of this one.
func (r *rig) wipe() { r.server = miniredis.RunT(r.t) }

func (r *rig) store(name string) *redis.Store {
	r.t.Helper()
	store, err := redis.New(redis.Config{Addr: r.server.Addr(), Model: name, Keep: 9})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { store.Close() })
	return store
}

// save saves a model of n events as the newest version.
func (r *rig) save(name string, n int) int64 {
	r.t.Helper()
	return r.put(name, checkpointOf(r.t, n))
}

func (r *rig) put(name string, c *state.Checkpoint) int64 {
	r.t.Helper()
	store := r.store(name)
	lease, err := store.Seize(r.t.Context(), "learner")
	if err != nil {
		r.t.Fatal(err)
	}
	c.Epoch, c.Writer = lease.Epoch, lease.Writer
	version, err := store.Save(r.t.Context(), c)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := store.Release(r.t.Context(), lease); err != nil {
		r.t.Fatal(err)
	}
	return version
}

func (r *rig) sha256(name string, which state.Pointer) string {
	r.t.Helper()
	c, _, err := r.store(name).Load(r.t.Context(), which)
	if err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("%x", c.ModelSHA256)
}

// checkpointOf returns the checkpoint of a model of n texts, one record of the log each.
func checkpointOf(t *testing.T, n int) *state.Checkpoint {
	t.Helper()
	m, err := model.New(model.Config{TableBits: 8, DuplicateWindow: 100, TextExperts: []string{"header-words"}})
	if err != nil {
		t.Fatal(err)
	}
	c := &state.Checkpoint{Schema: 1, Numerics: m.Numerics(), Config: m.Config().JSON(), Events: uint64(n), Saved: time.Unix(int64(1e9+n), 0).UTC()}
	for i := range n {
		body := fmt.Sprintf("minutes of meeting %d", i%7)
		if i%2 == 0 {
			body = fmt.Sprintf("cheap pills %d", i%7)
		}
		ex := model.Example{ID: fmt.Sprint(i), Source: "desk", Spam: i%2 == 0,
			Body: model.Body{Tenant: "t", Message: &feature.Message{Body: []byte(body), BodyBytes: len(body)}}}
		if _, err := m.Apply(&ex); err != nil {
			t.Fatal(err)
		}
		c.Position = c.Position.Advance(int64(i), nil, record(i))
	}
	if c.Model, err = m.AppendBinary(nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// record is the value of the log's record at an offset.
func record(i int) []byte { return fmt.Append(nil, "record ", i) }

// run runs a command and returns what it prints.
func (r *rig) run(args ...string) (string, error) {
	r.t.Helper()
	var g struct {
		Backup  Command `cmd:""`
		Verify  Verify  `cmd:""`
		Restore Restore `cmd:""`
	}
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	command, err := settings.Parse("hamlet", "", &g, args, stdio)
	if err != nil {
		return "", err
	}
	switch verb, _, _ := strings.Cut(command.Command(), " "); verb {
	case "backup":
		err = g.Backup.Run(r.t.Context(), stdio)
	case "verify":
		err = g.Verify.Run(r.t.Context(), stdio)
	default:
		err = g.Restore.Run(r.t.Context(), stdio)
	}
	return out.String(), err
}

func (r *rig) backup(more ...string) (result Result) {
	r.t.Helper()
	out, err := r.run(append([]string{"backup", r.dir, "--json", "--redis", r.server.Addr()}, more...)...)
	if err == nil {
		err = json.Unmarshal([]byte(out), &result)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

func (r *rig) restore(more ...string) (string, error) {
	return r.run(append([]string{"restore", r.dir, "--redis", r.server.Addr()}, more...)...)
}

// wantRefused fails unless a restore says this, and writes nothing.
func (r *rig) wantRefused(want string, more ...string) {
	r.t.Helper()
	before := r.server.Dump()
	if out, err := r.restore(more...); err == nil || !strings.Contains(err.Error(), want) {
		r.t.Errorf("restore %v: %v, want %q\n%s", more, err, want, out)
	}
	if r.server.Dump() != before {
		r.t.Errorf("restore %v was refused and has changed Redis", more)
	}
}

// All models come back: bytes, positions, times, and the version that answers.
func TestRestoreIsWhatWasSaved(t *testing.T) {
	r := newRig(t)
	for _, n := range []int{10, 20, 30, 40} {
		r.save("spam", n)
	}
	r.save("news", 8)
	if err := r.store("spam").Pin(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, name := range []string{"spam", "news"} {
		for _, which := range []state.Pointer{state.Head, state.Served} {
			want[fmt.Sprint(name, which)] = r.sha256(name, which)
		}
	}
	result := r.backup()
	if result.Versions != 3 || result.New != result.Chunks || len(result.Models) != 2 || len(result.Missing) == 0 {
		t.Errorf("%+v", result)
	}
	if out, err := r.run("verify", r.dir); err != nil || strings.Count(out, ": whole") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
	r.wipe()
	out, err := r.restore()
	if err != nil || !strings.Contains(out, "spam, version ") || !strings.Contains(out, "Start the learners: they compare the log") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"spam", "news"} {
		for _, which := range []state.Pointer{state.Head, state.Served} {
			if got := r.sha256(name, which); got != want[fmt.Sprint(name, which)] {
				t.Errorf("%s: %s is %s", name, which, got)
			}
		}
	}
	c, _, err := r.store("spam").Load(t.Context(), state.Head)
	if err != nil {
		t.Fatal(err)
	}
	was := checkpointOf(t, 40)
	if c.Position != was.Position || !c.Saved.Equal(was.Saved) || string(c.Config) != string(was.Config) {
		t.Errorf("the checkpoint came back as another: %+v, %s", c.Position, c.Saved)
	}
	if p, err := r.store("spam").Pinned(t.Context()); err != nil || p == 0 {
		t.Errorf("the pin is lost: %d, %v", p, err)
	}
	// One model of several, into a Redis that has others.
	r.wipe()
	if _, err := r.restore("--model", "news"); err != nil {
		t.Error(err)
	}
	if names, err := r.store("news").Models(t.Context()); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
	r.wantRefused("has no model other", "--model", "other")
}

// A model that answers in the place of another one does so after a restore. Who answers in
// Redis already stays.
func TestPromotionIsRestored(t *testing.T) {
	r := newRig(t)
	r.save("default", 10)
	r.save("cand", 10)
	want := state.Promotion{Model: "cand", Since: time.Unix(1e9, 0).UTC(), By: "ann"}
	if err := r.store("default").Promote(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	r.backup()
	r.wipe()
	out, err := r.restore()
	if err != nil || !strings.Contains(out, "model cand answers in its place") {
		t.Errorf("%v\n%s", err, out)
	}
	if got, err := r.store("default").Promotion(t.Context()); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := r.store("cand").Promotion(t.Context()); !errors.Is(err, state.ErrNone) {
		t.Error(err)
	}
	back := state.Promotion{Model: "default", Since: want.Since}
	if err := r.store("default").Promote(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if out, err := r.restore("--replace"); err != nil || strings.Contains(out, "answers in its place") {
		t.Errorf("%v\n%s", err, out)
	}
	if got, err := r.store("default").Promotion(t.Context()); err != nil || got != back {
		t.Errorf("%+v, %v", got, err)
	}
}

// A second backup writes what has changed. --keep deletes the oldest, and what only they name.
// --all-versions has all.
func TestBackupsShareChunks(t *testing.T) {
	r := newRig(t)
	r.save("default", 10)
	first := r.backup()
	if again := r.backup(); again.New != 0 || again.Bytes != 0 || again.Chunks != first.Chunks {
		t.Errorf("a backup of the same wrote %+v", again)
	}
	r.save("default", 20)
	if third := r.backup("--all-versions"); third.Versions != 2 || third.New != 1 {
		t.Errorf("%+v", third)
	}
	out, err := r.run("verify", r.dir, "--json")
	var all Verified
	if err := errors.Join(err, json.Unmarshal([]byte(out), &all)); err != nil || len(all.Backups) != 3 || !all.Backups[0].Taken.After(all.Backups[1].Taken) {
		t.Fatalf("%v\n%s", err, out)
	}
	r.wipe()
	r.save("default", 30)
	if last := r.backup("--keep", "1"); last.Deleted != 3 {
		t.Errorf("%+v", last)
	}
	chunks := 0
	if err := (folder{r.dir}).sweep(func(string) error { chunks++; return nil }); err != nil || chunks != 1 {
		t.Errorf("%d chunks are left, %v", chunks, err)
	}
	// The earlier backup of the same names is restored by its name.
	r.wipe()
	if _, err := r.restore("--backup", strings.TrimSuffix(all.Backups[0].Backup, ".json")); err == nil {
		t.Error("a deleted backup is restored")
	}
}

// However many backups are kept, each of them is whole and can be restored, and no chunk is there that
// none of them names.
func TestPruningKeepsWhatABackupNames(t *testing.T) {
	for _, keep := range []int{0, 2} { // 0: all
		r := newRig(t)
		var want []string // the models' hashes, the newest first
		for _, n := range []int{10, 20, 30} {
			r.wipe()
			r.save("default", n)
			want = slices.Insert(want, 0, r.sha256("default", state.Head))
			r.backup("--keep", fmt.Sprint(keep))
		}
		if keep > 0 {
			want = want[:keep]
		}
		out, err := r.run("verify", r.dir, "--json")
		var all Verified
		if err := errors.Join(err, json.Unmarshal([]byte(out), &all)); err != nil || len(all.Backups) != len(want) || all.Unnamed != 0 {
			t.Fatalf("--keep %d: %v\n%s", keep, err, out)
		}
		for i := range all.Backups {
			r.wipe()
			name := strings.TrimSuffix(all.Backups[i].Backup, ".json")
			if out, err := r.restore("--backup", name); err != nil {
				t.Errorf("--keep %d: backup %d of %d: %v\n%s", keep, i+1, len(want), err, out)
			} else if got := r.sha256("default", state.Head); got != want[i] {
				t.Errorf("--keep %d: backup %d of %d is %s, want %s", keep, i+1, len(want), got, want[i])
			}
		}
	}
}

// An interrupted backup harms none, and the next one cleans up. Damage is found, by verify and
// by restore.
func TestDamage(t *testing.T) {
	r := newRig(t)
	r.save("default", 10)
	r.backup()
	f := folder{r.dir}
	stray := &state.Chunk{Data: []byte("a chunk that no index names")}
	_, chunks := state.Split(&state.Checkpoint{Model: stray.Data})
	if _, err := f.writeChunk(&chunks[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, unfinished+"1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := r.run("verify", r.dir); err != nil || !strings.Contains(out, "2 files are named by no backup") {
		t.Errorf("%v\n%s", err, out)
	}
	r.backup()
	if out, err := r.run("verify", r.dir); err != nil || strings.Contains(out, "named by no backup") {
		t.Errorf("%v\n%s", err, out)
	}

	names, err := f.list()
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	x, err := f.index(names[0])
	if err != nil {
		t.Fatal(err)
	}
	r.wipe()
	path := f.chunk(x.Models[0].Partitions[0].Versions[0].manifest.Chunks[0])
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(whole)
	bad[len(bad)/2] ^= 1
	for what, data := range map[string][]byte{"flipped": bad, "shortened": whole[:100], "missing": nil} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if data != nil {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := r.run("verify", r.dir); err == nil || !strings.Contains(out, "NOT WHOLE") {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
		r.wantRefused(state.ErrCorrupt.Error())
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A backup of the same model mends the chunk.
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	r.save("default", 10)
	if again := r.backup(); again.New != 1 {
		t.Errorf("a damaged chunk is taken for whole: %+v", again)
	}
	if out, err := r.run("verify", r.dir); err != nil {
		t.Errorf("%v\n%s", err, out)
	}

	index := filepath.Join(r.dir, names[0])
	b, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(index, bytes.Replace(b, []byte(`"events": 10`), []byte(`"events": 11`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	r.wipe()
	r.wantRefused("does not have the hash in its name", "--backup", strings.TrimSuffix(names[0], ".json"))
	if out, err := r.run("verify", r.dir); err == nil || !strings.Contains(out, "does not have the hash in its name") {
		t.Errorf("%v\n%s", err, out)
	}
	// No chunk is deleted that the damaged index may name.
	r.save("default", 20)
	if _, err := r.run("backup", r.dir, "--redis", r.server.Addr()); err == nil || !strings.Contains(err.Error(), "no chunk is deleted") {
		t.Error(err)
	}
}

// Another format, other numerics, and a Redis that holds the model.
func TestRefusals(t *testing.T) {
	r := newRig(t)
	r.save("default", 10)
	r.backup()
	r.wantRefused("redis keeps this model already")
	if out, err := r.restore("--replace"); err != nil || !strings.Contains(out, "version 1, which it replaces") {
		t.Errorf("%v\n%s", err, out)
	}
	r.wantRefused("must see that the log is empty", "--new-log")
	r.save("default", 20)
	r.wantRefused("redis is newer: it has learnt up to offset 20 there, and up to 10 in the backup", "--replace")
	if _, err := r.run("restore", r.dir); cli.Status(err) != cli.StatusUsage {
		t.Error(err)
	}
	if _, err := r.run("restore", t.TempDir(), "--redis", r.server.Addr()); err == nil || !strings.Contains(err.Error(), "has no backup") {
		t.Error(err)
	}

	other := checkpointOf(t, 10)
	other.Numerics = "13"
	r.wipe()
	r.put("default", other)
	r.backup()
	r.wipe()
	r.wantRefused("numerics 13")
	if out, err := r.run("verify", r.dir); err != nil || !strings.Contains(out, "whole, and not for this program") {
		t.Errorf("%v\n%s", err, out)
	}

	f := folder{r.dir}
	x, err := f.choose("")
	if err != nil {
		t.Fatal(err)
	}
	x.Format = format + 1
	if err := f.finish(x); err == nil {
		t.Error("an index that no restore reads is written")
	}
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	name := fmt.Sprintf("%s-%x.json", x.Taken.Add(time.Hour).Format(nameTime), sum[:16])
	if err := f.write(filepath.Join(r.dir, name), b); err != nil {
		t.Fatal(err)
	}
	r.wantRefused(fmt.Sprintf("format %d, this program reads %d", format+1, format))
	if entries, err := os.ReadDir(r.dir); err != nil {
		t.Error(err)
	} else {
		for _, e := range entries {
			if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: others may read it: %v, %v", e.Name(), info.Mode(), err)
			}
		}
	}
}

// The position is compared with Kafka: another log, one that ends before it, and one whose
// next records are deleted are refused. A log that was lost starts at offset 0.
func TestLogGoesOn(t *testing.T) {
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	cfg := kafka.Config{Brokers: []string{k.Addr()}}
	for name, records := range map[string]int{"whole": 30, "short": 5, "empty": 0, "other": 30} {
		topic := stream.EventsTopic(name)
		if err := cfg.Ensure(t.Context(), topic, 1, 48*time.Hour); err != nil {
			t.Fatal(err)
		}
		log, err := kafka.NewLog(cfg, topic)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		for i := range records {
			value := record(i)
			if name == "other" {
				value = append(value, '!')
			}
			if err := log.Append(t.Context(), stream.Record{Value: value}); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := newRig(t)
	r.save("whole", 10)
	result := r.backup("--kafka", k.Addr())
	l := result.Models[0].Logs[0]
	if l.From != 10 || l.End != 30 || l.Problem != "" || l.Until == nil || time.Until(*l.Until) < 47*time.Hour || time.Until(*l.Until) > 49*time.Hour {
		t.Errorf("%+v", l)
	}
	r.wipe()
	for name, want := range map[string]string{"short": "the log ends at offset 5", "other": "it is another log: the record at offset 9", "none": "there is no topic"} {
		r.wantRefused(want, "--kafka", k.Addr(), "--model", "whole", "--events-of", name)
	}
	for _, events := range []string{"whole=", "a=b=c", "A=b"} {
		if _, err := r.restore("--events-of", events); cli.Status(err) != cli.StatusUsage {
			t.Errorf("--events-of %s: %v", events, err)
		}
	}
	r.wantRefused("the log ends at offset 5", "--kafka", k.Addr(), "--events-of", "other=whole,whole=short")
	r.wantRefused("is not empty", "--kafka", k.Addr(), "--model", "whole", "--new-log")
	out, err := r.restore("--kafka", k.Addr())
	if err != nil || !strings.Contains(out, "20 follow, kept until") || strings.Contains(out, "nobody has compared") {
		t.Errorf("%v\n%s", err, out)
	}
	r.wipe()
	if _, err := r.restore("--kafka", k.Addr(), "--model", "whole", "--events-of", "empty", "--new-log"); err != nil {
		t.Error(err)
	}
	if c, _, err := r.store("whole").Load(t.Context(), state.Head); err != nil || c.Position != (state.Position{}) || c.Events != 10 {
		t.Errorf("%+v, %v", c, err)
	}
}
