package backup

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/state"
)

// ofSeveral makes the model in Redis one that hamlet 0.1.0 learnt from several partitions: the one model
// of all, whose newest version is version, or, where that is "", a model for each.
func (r *rig) ofSeveral(name, version string) {
	r.t.Helper()
	prefix := "hamlet:{" + name + "}:0:"
	if version == "" {
		if _, err := r.server.SAdd(prefix+"partitions", "0", "1"); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	manifest := []byte(r.server.HGet(prefix+"version:"+version, "manifest"))
	ordered(manifest)
	r.server.HSet(prefix+"version:"+version, "manifest", string(manifest))
}

// ordered gives a manifest the version that hamlet 0.1.0 wrote of one model of several partitions.
func ordered(manifest []byte) { binary.BigEndian.PutUint32(manifest[8:], 3) }

// wantOld fails unless an error leads out of a model of several partitions, with status 1.
func wantOld(t *testing.T, what, out string, err error, more ...string) {
	t.Helper()
	if !errors.Is(err, state.ErrPartitions) || cli.Status(err) != cli.StatusFailed {
		t.Errorf("%s: %v, status %d\n%s", what, err, cli.Status(err), out)
		return
	}
	for _, text := range more {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q is not in %q", what, text, err)
		}
	}
}

// In the middle of a migration from 0.1.0 a backup of all models has the others. It deletes no earlier
// backup, which may be the last that has the old model.
func TestABackupLeavesAModelOfPartitionsOut(t *testing.T) {
	for what, version := range map[string]string{"one model": "1", "a model for each": ""} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			for _, name := range []string{"alpha", "news", "spam"} {
				r.save(name, 10)
			}
			first := r.backup()
			r.ofSeveral("news", version)
			args := []string{"backup", r.dir, "--redis", r.server.Addr(), "--keep", "1", "--json"}
			out, err := r.run(args...)
			wantOld(t, "backup", out, err, "news", "--model", "'hamlet:{news}:*'", "no earlier one is deleted")
			var result Result
			if err := json.Unmarshal([]byte(out), &result); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if len(result.Models) != 2 || result.Models[0].Model != "alpha" || result.Models[1].Model != "spam" || result.Deleted != 0 {
				t.Errorf("%d models, %d backups are deleted", len(result.Models), result.Deleted)
			}
			if out, err := r.run("verify", r.dir); err != nil || !strings.Contains(out, first.Backup) {
				t.Errorf("%v\n%s", err, out)
			}
			out, err = r.run(append(args, "--model", "news", "--model", "spam")...)
			wantOld(t, "backup --model news", out, err, "nothing is added")
			if last := r.backup("--model", "alpha", "--model", "spam", "--keep", "1"); last.Deleted != 2 {
				t.Errorf("without the old model %d backups are deleted", last.Deleted)
			}
			r.server.FlushAll()
			r.save("news", 10)
			r.ofSeveral("news", version)
			out, err = r.run(args...)
			wantOld(t, "backup of nothing else", out, err, "nothing is added")
		})
	}
}

// A restore of all models leaves one out that the backup has of several partitions.
func TestARestoreLeavesAModelOfPartitionsOut(t *testing.T) {
	r := newRig(t)
	r.save("news", 10)
	r.save("spam", 20)
	want := r.sha256("spam", state.Head)
	r.backup()
	f := folder{r.dir}
	x, err := f.choose("")
	if err != nil {
		t.Fatal(err)
	}
	x.Taken = x.Taken.Add(time.Second) // the newest
	ordered(x.Models[0].Partitions[0].Versions[0].Manifest)
	if err := f.finish(x); err != nil {
		t.Fatal(err)
	}
	r.wipe()
	r.wantRefused("nothing is restored: model news", "--model", "news", "--model", "spam")
	out, err := r.restore()
	wantOld(t, "restore", out, err, "model news is not restored", "restore the backup with hamlet 0.1.0", "--model")
	if got := r.sha256("spam", state.Head); got != want {
		t.Errorf("spam came back as %s, want %s", got, want)
	}
	if names, err := r.store("spam").Models(t.Context()); err != nil || len(names) != 1 {
		t.Errorf("restored are %v, %v", names, err)
	}
}

// The same where Redis keeps the model of several partitions, and the backup has one of the same name.
func TestARestoreLeavesTheModelOfPartitionsInRedis(t *testing.T) {
	for what, version := range map[string]string{"one model": "1", "a model for each": ""} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			r.save("news", 10)
			r.save("spam", 20)
			r.backup()
			r.wipe()
			r.save("news", 10)
			r.ofSeveral("news", version)
			r.wantRefused("'hamlet:{news}:*'", "--model", "news", "--replace")
			out, err := r.restore()
			wantOld(t, "restore", out, err, "model news is not restored", "'hamlet:{news}:*'", "--model")
			if _, _, err := r.store("spam").Load(t.Context(), state.Head); err != nil {
				t.Error(err)
			}
			r.wipe()
			r.save("news", 10)
			r.ofSeveral("news", version)
			r.save("spam", 30)
			r.wantRefused("redis is newer", "--replace") // another cause still stops all
		})
	}
}
