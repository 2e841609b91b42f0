package from010

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hamlet/state"
	"hamlet/state/files"
	"hamlet/stream"
	"hamlet/stream/filelog"
)

// The golden directory is of hamlet 0.1.0, killed with kill −9. testdata/v0.1.0.sh made it, from the first
// messages of the SMS Spam Collection. These are the model_sha256 that 0.1.0 printed.
const (
	goldenHead = "0f7e9cd9fb54fa7700011073b06867671a9fcc787598149733f639e0b862c557"
	golden2    = "a22ae0fa97bebe42b6415037c5f4ad93a455345075e83e83dff17b4a1794d8fa"
	golden1    = "13c4b8df219e7660e6b0280d1742aa344843482f09b972e6d08948e9c7ced17c"
)

// golden unpacks the golden directory.
func golden(t testing.TB) string {
	t.Helper()
	f, err := os.Open("testdata/v0.1.0.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for in := tar.NewReader(unzipped); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o700)
		} else {
			var b []byte
			if b, err = io.ReadAll(in); err == nil {
				err = os.WriteFile(path, b, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tree returns the files below a folder and the SHA-256 of each.
func tree(t testing.TB, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		all[filepath.ToSlash(name)] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// logged returns a logger, and what it has logged from a level on.
func logged(level slog.Level) (*slog.Logger, *bytes.Buffer) {
	b := new(bytes.Buffer)
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: level})), b
}

// records reads a converted log.
func records(t testing.TB, dir, topic string) (all []stream.Record, bounds stream.Bounds) {
	t.Helper()
	l, err := filelog.Open(filepath.Join(dir, logFolder, topic), filelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if bounds, err = l.Bounds(t.Context()); err != nil {
		t.Fatal(err)
	}
	for next := bounds.First; next < bounds.End; {
		some, _, err := l.Read(t.Context(), next, stream.Limit{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			break
		}
		all = append(all, some...)
		next = some[len(some)-1].Offset + 1
	}
	if damaged, err := l.Verify(t.Context()); err != nil || len(damaged) > 0 {
		t.Errorf("%s: damaged %v, %v", topic, damaged, err)
	}
	bounds.ID = ""
	return all, bounds
}

// A said is what a converted model says of itself.
type said struct {
	Head, Served state.Heading
	Versions     []state.VersionInfo
	Models       map[int64]string // SHA-256 of the bytes, by version
	Epoch        int64
	Promotion    state.Promotion
}

func saidOf(t testing.TB, dir, model string) (s said) {
	t.Helper()
	d, err := files.Open(filepath.Join(dir, modelFolder), files.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	store, err := d.Store(model)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	var errs [4]error
	s.Head, errs[0] = store.Heading(ctx, state.Head)
	s.Served, errs[1] = store.Heading(ctx, state.Served)
	s.Versions, errs[2] = store.Versions(ctx)
	lease, err := store.Lease(ctx)
	s.Epoch, errs[3] = lease.Epoch, err
	s.Models = map[int64]string{}
	for _, v := range s.Versions {
		c, err := store.LoadVersion(ctx, v.Version)
		if err != nil {
			t.Fatal(err)
		}
		sum := c.ModelSHA256
		s.Models[v.Version] = hex.EncodeToString(sum[:])
	}
	if s.Promotion, err = store.Promotion(ctx); err != nil && !errors.Is(err, state.ErrNone) {
		t.Error(err)
	}
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return s
}

// goldenIsThere checks what was made of the golden directory.
func goldenIsThere(t testing.TB, dir string) {
	t.Helper()
	s := saidOf(t, dir, "default")
	want := map[int64]string{1: golden1, 2: golden2, 3: goldenHead}
	if s.Head.Version != 3 || s.Head.Model != goldenHead || s.Head.Next != 42 || s.Served.Version != 1 || s.Head.Pinned != 1 || !cmp.Equal(s.Models, want) {
		t.Errorf("model default: %+v", s)
	}
	if s := saidOf(t, dir, "small"); s.Head.Version != 1 || s.Head.Next != 5 {
		t.Errorf("model small: %+v", s)
	}
	for topic, n := range map[string]int{
		"hamlet.events.default": 42, "hamlet.events.small": 5, "hamlet.dead-letters": 1, "hamlet.receipts": 0,
	} {
		if all, b := records(t, dir, topic); len(all) != n || b != (stream.Bounds{End: int64(n)}) {
			t.Errorf("%s: %d records, bounds %+v", topic, len(all), b)
		}
	}
	events, _ := records(t, dir, "hamlet.events.default")
	if last := events[len(events)-1]; !strings.Contains(string(last.Value),
		"nothing") && !strings.Contains(fmt.Sprint(last.Headers), "nothing") {
		t.Errorf("the last record is %+v", last)
	}
	p := state.Position{}
	for _, r := range events {
		headers := make([]state.Header, len(r.Headers))
		for i, h := range r.Headers {
			headers[i] = state.Header(h)
		}
		p = p.Advance(r.Offset, r.Key, r.Value, headers...)
	}
	if got := s.Versions[0].Position; got != p {
		t.Errorf("the head is at %v, and the records of the log are at %v", got, p)
	}
}

// A directory of 0.1.0 is converted once. The head's position is that of the converted records, by
// their hashes.
func TestGolden(t *testing.T) {
	dir := golden(t)
	before := map[string]map[string]string{kafkaFolder: tree(t, filepath.Join(dir, kafkaFolder)), redisFolder: tree(t,
		filepath.Join(dir, redisFolder))}
	if found, err := Found(dir); !found || err != nil {
		t.Fatalf("found %v, %v", found, err)
	}
	log, warned := logged(slog.LevelWarn)
	var read, of int64
	if err := Convert(t.Context(), dir, Config{Log: log, Progress: func(a, b int64) { read, of = a, b }}); err != nil {
		t.Fatal(err)
	}
	if warned.Len() > 0 {
		t.Errorf("logged %s", warned)
	}
	if read == 0 || read > of || read < of*9/10 {
		t.Errorf("progress ended at %d of %d", read, of)
	}
	if found, err := Found(dir); found || err != nil {
		t.Errorf("then found %v, %v", found, err)
	}
	goldenIsThere(t, dir)
	for name, files := range before {
		if diff := cmp.Diff(files, tree(t, filepath.Join(dir, name+aside))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, name := range []string{kafkaFolder, redisFolder, converting} {
		if is, err := exists(filepath.Join(dir, name)); is || err != nil {
			t.Errorf("%s is there: %v, %v", name, is, err)
		}
	}
}

// The program dies at any step. The next start goes on, or begins again: the result is the same, and
// the old files are as they were.
func TestDeathAnywhere(t *testing.T) {
	dir, copies := golden(t), t.TempDir()
	old := map[string]map[string]string{kafkaFolder: tree(t, filepath.Join(dir, kafkaFolder)), redisFolder: tree(t,
		filepath.Join(dir, redisFolder))}
	n := 0
	kept := 0
	lastNames := ""
	err := Convert(t.Context(), dir, Config{step: func() error {
		n++
		names := ""
		for _, name := range []string{logFolder, modelFolder, kafkaFolder, redisFolder, converting} {
			if is, _ := exists(filepath.Join(dir, name)); is {
				names += name + " "
			}
		}
		if names == lastNames && n%16 != 0 {
			return nil
		}
		lastNames = names
		kept++
		return os.CopyFS(filepath.Join(copies, fmt.Sprint(kept)), os.DirFS(dir))
	}})
	if err != nil {
		t.Fatal(err)
	}
	if kept < 8 {
		t.Fatalf("%d copies of %d steps", kept, n)
	}
	for i := 1; i <= kept; i++ {
		dir := filepath.Join(copies, fmt.Sprint(i))
		deaths := 0
		for tries := 1; ; tries++ { // it dies again, a little later each time
			found, err := Found(dir)
			if err != nil || !found {
				t.Fatalf("copy %d: found %v, %v", i, found, err)
			}
			step := 0
			err = Convert(t.Context(), dir, Config{step: func() error {
				if step++; step == 40*tries && deaths < 3 {
					deaths++
					return fmt.Errorf("stop: %w", context.Canceled)
				}
				return nil
			}})
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("copy %d: %v", i, err)
			}
		}
		goldenIsThere(t, dir)
		for name, files := range old {
			if diff := cmp.Diff(files, tree(t, filepath.Join(dir, name+aside))); diff != "" {
				t.Errorf("copy %d, %s: %s", i, name, diff)
			}
		}
	}
}

// An error leaves the directory as it was. A full disk says how much room it takes.
func TestErrorChangesNothing(t *testing.T) {
	dir := golden(t)
	before := tree(t, dir)
	steps := 0
	if err := Convert(t.Context(), golden(t), Config{step: func() error { steps++; return nil }}); err != nil {
		t.Fatal(err)
	}
	said := 0
	for at := 1; at < steps-4; at += 1 + steps/20 {
		step := 0
		err := Convert(t.Context(), dir, Config{step: func() error {
			if step++; step == at {
				return stream.ErrFull
			}
			return nil
		}})
		if !errors.Is(err, stream.ErrFull) {
			t.Fatalf("step %d: %v", at, err)
		}
		if is, _ := exists(filepath.Join(dir, converting)); is {
			t.Errorf("step %d: converting is left", at)
		}
		if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
			t.Fatalf("step %d: %s", at, diff)
		}
		if _, text, is := strings.Cut(err.Error(), "about "); is {
			said++
			var n int64
			if _, err := fmt.Sscanf(text, "%d", &n); err != nil || n < 100_000 || n > 500_000 {
				t.Errorf("step %d: %d bytes, %v", at, n, err)
			}
		}
	}
	if said == 0 {
		t.Error("no error says how much room it takes")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Convert(ctx, dir, Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// What is there beside the old files is never overwritten.
func TestOtherFiles(t *testing.T) {
	for name, make := range map[string]func(dir string) error{
		"0.1.0 again": func(dir string) error { return os.Mkdir(filepath.Join(dir, logFolder), 0o700) },
		"models":      func(dir string) error { return os.Mkdir(filepath.Join(dir, modelFolder), 0o700) },
		"aside":       func(dir string) error { return os.Mkdir(filepath.Join(dir, kafkaFolder+aside), 0o700) },
	} {
		dir := golden(t)
		if err := make(dir); err != nil {
			t.Fatal(err)
		}
		before := tree(t, dir)
		if err := Convert(t.Context(), dir, Config{}); err == nil || !strings.Contains(err.Error(), "ove") {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Kafka or Redis was another one, or nothing was ever kept.
func TestParts(t *testing.T) {
	dir := golden(t)
	if err := os.RemoveAll(filepath.Join(dir, redisFolder)); err != nil {
		t.Fatal(err)
	}
	if err := Convert(t.Context(), dir, Config{}); err != nil {
		t.Fatal(err)
	}
	if all, _ := records(t, dir, "hamlet.events.default"); len(all) != 42 {
		t.Errorf("%d records", len(all))
	}
	dir = golden(t)
	if err := os.RemoveAll(filepath.Join(dir, kafkaFolder)); err != nil {
		t.Fatal(err)
	}
	if err := Convert(t.Context(), dir, Config{}); err != nil {
		t.Fatal(err)
	}
	if s := saidOf(t, dir, "default"); s.Head.Model != goldenHead {
		t.Errorf("%+v", s.Head)
	}
	dir = t.TempDir()
	if found, err := Found(dir); found || err != nil {
		t.Errorf("an empty directory: %v, %v", found, err)
	}
	if err := os.Mkdir(filepath.Join(dir, kafkaFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Convert(t.Context(), dir, Config{}); err != nil {
		t.Error(err)
	}
}
