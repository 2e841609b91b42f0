package backup

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/state"
)

// on runs a command on the rig's Redis. DIR in the arguments is the folder of its files.
func (r *rig) on(args string) (string, error) {
	r.t.Helper()
	args = strings.ReplaceAll(args, "DIR", filepath.Dir(r.dir))
	if !strings.HasPrefix(args, "verify ") {
		args += " --redis " + r.server.Addr()
	}
	return r.run(strings.Fields(args)...)
}

func (r *rig) must(args string, want ...string) string {
	r.t.Helper()
	out, err := r.on(args)
	if err != nil {
		r.t.Fatalf("%s: %v", args, err)
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			r.t.Errorf("%s: printed %q, want %q in it", args, out, text)
		}
	}
	return out
}

func (r *rig) fails(args string, status int, want string) {
	r.t.Helper()
	out, err := r.on(args)
	if cli.Status(err) != status || err == nil || !strings.Contains(err.Error(), want) {
		r.t.Errorf("%s: %v, status %d, printed %q; want %q and %d", args, err, cli.Status(err), out, want, status)
	}
}

func (r *rig) read(name string) []byte {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(filepath.Dir(r.dir), name))
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

func (r *rig) write(name string, b []byte) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(r.dir), name), b, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// A model that goes to a file and comes back is the same at the same place in the log. Equal
// checkpoints make equal files. A path that is no file, and ends in something else, is a directory.
func TestOneModelInOneFile(t *testing.T) {
	r := newRig(t)
	first := checkpointOf(t, 60)
	r.put("spam", first)
	r.must("backup --model spam DIR/spam.tar", "spam, version 1: 60 events up to offset 60, ")
	r.must("backup --model spam@1 DIR/again.tar")
	a, b := r.read("spam.tar"), r.read("again.tar")
	if !bytes.Equal(a, b) {
		t.Error("two files of one model differ")
	}
	if info, err := os.Stat(filepath.Dir(r.dir) + "/spam.tar"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
	r.must("verify DIR/spam.tar", "spam.tar, 60 events", ": whole\n")
	r.must("restore DIR/spam.tar --as copy", "copy, version 1: 60 events up to offset 60, ")
	got, _, err := r.store("copy").Load(t.Context(), state.Served)
	if err != nil || got.Position != first.Position || !bytes.Equal(got.Model, first.Model) || !bytes.Equal(got.Config, first.Config) {
		t.Errorf("it is not what was written: %v", err)
	}
	var said InFile
	if err := json.Unmarshal([]byte(r.must("backup --model spam --json DIR/spam.tar")), &said); err != nil || said.Model != "spam" || said.SHA256 != r.sha256("copy", state.Head) {
		t.Errorf("%+v, %v", said, err)
	}
	r.fails("backup --model spam DIR/none/x.tar", cli.StatusFailed, "no such file")
	if left, err := filepath.Glob(filepath.Dir(r.dir) + "/.*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	r.must("backup --model spam DIR/folder", "backup 2")
	r.must("verify DIR/folder", "spam, version 1")
}

// A file of eval --save is the model's bytes: it begins its log.
func TestSavedByEval(t *testing.T) {
	r := newRig(t)
	c := checkpointOf(t, 30)
	r.write("saved", c.Model)
	r.must("verify DIR/saved", "saved, 30 events")
	r.must("restore DIR/saved --as warm", "30 events up to offset 0")
	got, _, err := r.store("warm").Load(t.Context(), state.Head)
	if err != nil || got.Position != (state.Position{}) || !bytes.Equal(got.Model, c.Model) {
		t.Errorf("not what was saved: %v", err)
	}
}

// from010SHA256 is that of the model in testdata/v0.1.0.tar, as `hamlet model export` of 0.1.0 printed it: see v0.1.0.sh.
const from010SHA256 = "8f0ee4a560bff5edd50af147c61a4b0b70119a7606ca8a0caf19a001ba39c18d"

func TestExportedByRelease010(t *testing.T) {
	r := newRig(t)
	b, err := os.ReadFile("testdata/v0.1.0.tar")
	if err != nil {
		t.Fatal(err)
	}
	r.write("old", b)
	r.must("verify DIR/old", ": whole, and not for this program: ", from010SHA256)
	r.fails("restore DIR/old --as copy", cli.StatusFailed, "the model is of numerics 14 ")
}

func TestFilesAreRefused(t *testing.T) {
	r := newRig(t)
	c := checkpointOf(t, 30)
	r.put("spam", c)
	r.must("backup --model spam DIR/spam.tar")
	r.fails("backup DIR/spam.tar", cli.StatusUsage, "name it with --model")
	r.fails("backup --model spam --keep 3 DIR/spam.tar", cli.StatusUsage, "about a directory")
	r.fails("backup --model Spam DIR/spam.tar", cli.StatusUsage, "is neither MODEL nor MODEL@VERSION")
	r.fails("backup --model spam@0 DIR/spam.tar", cli.StatusUsage, "numbered from 1")
	r.fails("backup --model other DIR/spam.tar", cli.StatusFailed, "the store keeps no model other")
	r.fails("backup --model spam@9 DIR/spam.tar", cli.StatusFailed, "no checkpoint")
	r.fails("verify DIR/spam.tar --backup 2026", cli.StatusUsage, "about a directory")
	r.fails("restore DIR/spam.tar", cli.StatusUsage, "--as")
	r.fails("restore DIR/spam.tar --as Spam", cli.StatusUsage, "is not a name")
	r.fails("restore DIR/spam.tar --as copy --new-log", cli.StatusUsage, "about a directory")
	r.fails("restore DIR/spam.tar --as spam", cli.StatusUsage, "a model spam is kept already")
	r.fails("restore DIR/missing.tar --as copy", cli.StatusFailed, "no such file")
	r.must("backup --model spam DIR/folder")
	r.fails("restore DIR/folder --as copy", cli.StatusUsage, "is a directory of backups")
	r.put("further", checkpointOf(t, 31))
	r.fails("restore DIR/spam.tar --as further --replace", cli.StatusFailed, "has learnt up to offset 31, and the file only to 30")
	old := *c
	old.Numerics = "1"
	r.put("old", &old)
	r.must("backup --model old DIR/old.tar")
	r.must("verify DIR/old.tar", "whole, and not for this program")
	r.fails("restore DIR/old.tar --as copy", cli.StatusFailed, "the model is of numerics 1 ")
	var file bytes.Buffer // of hamlet 0.1.0
	w := tar.NewWriter(&file)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "3/manifest"}), w.Close()); err != nil {
		t.Fatal(err)
	}
	r.write("partitions.tar", file.Bytes())
	r.fails("restore DIR/partitions.tar --as copy", cli.StatusFailed, "hamlet log merge")
	if v, err := r.store("copy").Versions(t.Context()); !errors.Is(err, state.ErrNone) {
		t.Errorf("something was written: %v, %v", v, err)
	}
}

// The replaced version is kept, a pin ends, and the writer before has lost the model.
func TestAFileReplaces(t *testing.T) {
	r := newRig(t)
	r.put("spam", checkpointOf(t, 50))
	r.must("backup --model spam DIR/spam.tar")
	before := checkpointOf(t, 40)
	r.put("live", before)
	live := r.store("live")
	if err := live.Pin(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	r.must("restore DIR/spam.tar --as live --replace", "live, version 2: 50 events", "; version 1, which it replaces, is kept for 30 days")
	if h, err := live.Heading(t.Context(), state.Served); err != nil || h.Version != 2 || h.Pinned != 0 {
		t.Errorf("served is %+v, %v", h, err)
	}
	list, err := live.Versions(t.Context())
	if err != nil || len(list) != 2 || !list[1].Replaced {
		t.Errorf("kept are %+v, %v", list, err)
	}
	before.Position.Next = 60
	if _, err := live.Save(t.Context(), before); !errors.Is(err, state.ErrStale) {
		t.Errorf("the writer before saves: %v", err)
	}
}

// verify finds a changed byte anywhere in a file, and backup a chunk that Redis lost.
func TestFilesThatAreDamaged(t *testing.T) {
	r := newRig(t)
	c := checkpointOf(t, 30)
	r.put("spam", c)
	r.must("backup --model spam DIR/spam.tar")
	whole := r.read("spam.tar")
	manifest := bytes.Index(whole, []byte("hamletMF"))
	body := bytes.Index(whole, []byte("hamletPM"))
	for name, b := range map[string][]byte{
		"manifest": flip(whole, manifest+20), "model": flip(whole, body+len(c.Model)/2), "last": flip(whole, body+len(c.Model)-1),
		"name": flip(whole, 0), "short": whole[:len(whole)/2], "header": whole[:600], "raw": flip(c.Model, len(c.Model)/3), "text": []byte("hello"),
		"empty": {}, "twice": append(bytes.Clone(whole[:len(whole)-1024]), whole...),
	} {
		r.write("bad", b)
		if _, err := r.on("verify DIR/bad"); cli.Status(err) != cli.StatusFailed || !strings.Contains(err.Error(), "/bad") {
			t.Errorf("%s: verified, or an error that does not name the file: %v", name, err)
		}
		if _, err := r.on("restore DIR/bad --as copy"); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
	for _, key := range r.server.Keys() {
		if strings.Contains(key, ":chunk:") {
			r.server.Del(key)
			break
		}
	}
	r.fails("backup --model spam DIR/lost.tar", cli.StatusFailed, "is missing")
}

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 4
	return b
}
