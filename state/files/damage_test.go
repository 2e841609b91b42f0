package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hamlet/state"
)

// checkpoint returns one after next records, with a model of one full chunk, which is the same in all
// that have the same next/10, and a short one.
func checkpoint(epoch, next int64) *state.Checkpoint {
	model := append(bytes.Repeat([]byte{byte(next / 10)}, state.ChunkSize), fmt.Sprintf("the end of %d", next)...)
	return &state.Checkpoint{
		Schema: 1, Numerics: "1/test", Config: []byte(`{}`), Epoch: epoch, Writer: "w", Events: uint64(next),
		Position: state.Position{Next: next}, Model: model, Saved: time.Unix(1_800_000_000+next*86400, 0),
	}
}

func storeOf(t *testing.T, d *Dir, model string) *Store {
	t.Helper()
	s, err := d.Store(model)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// filled makes a directory in which a model was saved after 10, 11, … records, and returns its path.
func filled(t *testing.T, saves int) (path string, epoch int64) {
	t.Helper()
	path = t.TempDir()
	d, err := Open(path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := storeOf(t, d, "m")
	lease, err := s.Seize(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	for i := range saves {
		if _, err := s.Save(t.Context(), checkpoint(lease.Epoch, int64(10+i))); err != nil {
			t.Fatal(err)
		}
	}
	return path, lease.Epoch
}

// copied opens a copy of a directory.
func copied(t *testing.T, from string, change func(path string)) *Store {
	t.Helper()
	path := t.TempDir()
	if err := os.CopyFS(path, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	change(path)
	d, err := Open(path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return storeOf(t, d, "m")
}

// The program dies before any change of a file, in a save, a step back and a pin. The state is that
// before or that behind, and whole. It can be saved again.
func TestDeathAnywhere(t *testing.T) {
	from, epoch := filled(t, 8)
	snapshots := t.TempDir()
	d, err := Open(from, Config{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	d.step = func() {
		if err := os.CopyFS(filepath.Join(snapshots, fmt.Sprint(n)), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		n++
	}
	s := storeOf(t, d, "m")
	var heads []int64 // before and behind each operation
	do := func(f func() error) {
		t.Helper()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		h, err := s.Heading(t.Context(), state.Head)
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, h.Next)
	}
	do(func() error { return nil })
	do(func() error { _, err := s.Save(t.Context(), checkpoint(epoch, 20)); return err })
	do(func() error { _, err := s.Save(t.Context(), checkpoint(epoch, 41)); return err })
	do(func() error { return s.Pin(t.Context(), 8) })
	do(func() error { return s.StepBack(t.Context(), state.Lease{Epoch: epoch, Writer: "w"}, 9) })
	do(func() error { _, err := s.Save(t.Context(), checkpoint(epoch, 30)); return err })
	d.step = func() {}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if n < 15 {
		t.Fatalf("%d changes of files", n)
	}
	at := 0
	for i := range n {
		s := copied(t, filepath.Join(snapshots, fmt.Sprint(i)), func(string) {})
		c, version, err := s.Load(t.Context(), state.Head)
		if err != nil {
			t.Fatalf("dead before change %d: %v", i, err)
		}
		h, err := s.Heading(t.Context(), state.Head)
		if err != nil || h.Version != version || !bytes.Equal(c.Model, checkpoint(epoch, c.Position.Next).Model) {
			t.Fatalf("dead before change %d: version %d at %d, heading %+v, %v", i, version, c.Position.Next, h, err)
		}
		for at+1 < len(heads) && heads[at] != h.Next {
			at++
		}
		if heads[at] != h.Next {
			t.Fatalf("dead before change %d: the head is at %d, want one of %v", i, h.Next, heads)
		}
		lease, err := s.Seize(t.Context(), "w2")
		if err != nil {
			t.Fatal(err)
		}
		next := checkpoint(lease.Epoch, 50)
		next.Writer = "w2"
		if _, err := s.Save(t.Context(), next); err != nil {
			t.Fatalf("dead before change %d, saved again: %v", i, err)
		}
		if left, _ := filepath.Glob(filepath.Join(s.folder, unfinished+"*")); len(left) > 0 {
			t.Errorf("dead before change %d: %v is left", i, left)
		}
	}
}

// Wherever a bit flips in a file, what is loaded is a version as it was saved, or an error says what is
// wrong. A save repairs it.
func TestFlippedBits(t *testing.T) {
	from, epoch := filled(t, 4)
	var names []string
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			name, _ := filepath.Rel(from, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 6))
	refused, older := 0, 0
	for i := range 120 {
		name := names[i%len(names)]
		s := copied(t, from, func(path string) {
			b, err := os.ReadFile(filepath.Join(path, name))
			if err != nil {
				t.Fatal(err)
			}
			b[random.IntN(len(b))] ^= 1 << random.IntN(8)
			if err := os.WriteFile(filepath.Join(path, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		})
		c, version, err := s.Load(t.Context(), state.Head)
		switch {
		case errors.Is(err, state.ErrCorrupt):
			refused++
		case err != nil:
			t.Fatalf("%s: %v", name, err)
		default:
			want := checkpoint(epoch, 9+version)
			if !bytes.Equal(c.Model, want.Model) || c.Position != want.Position || c.Epoch != epoch || c.Writer != "w" {
				t.Fatalf("%s: version %d is another one", name, version)
			}
			if version < 4 {
				older++
			}
		}
		lease, err := s.Seize(t.Context(), "w")
		if err != nil {
			t.Fatal(err)
		}
		again := checkpoint(lease.Epoch, 13)
		if _, err := s.Save(t.Context(), again); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c, _, err := s.Load(t.Context(), state.Head); err != nil || !bytes.Equal(c.Model, again.Model) {
			t.Fatalf("%s: after a save: %v", name, err)
		}
	}
	if refused == 0 || older == 0 {
		t.Errorf("%d were refused, and of %d the version before was read: the test misses its point", refused, older)
	}
}

// Saves of one model do not keep the chunks of another one, nor delete them.
func TestChunksOfSeveralModels(t *testing.T) {
	d, err := Open(t.TempDir(), Config{Keep: 1, Daily: new(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	done := make(chan error, 3)
	for _, name := range []string{"a", "b", "c"} {
		go func() {
			var lease state.Lease
			s, err := d.Store(name)
			if err == nil {
				lease, err = s.Seize(t.Context(), "w")
			}
			for i := 0; i < 40 && err == nil; i++ {
				c := checkpoint(lease.Epoch, int64(10+3*i))
				c.Model[0] = name[0]
				if _, err = s.Save(t.Context(), c); err == nil {
					var got *state.Checkpoint
					if got, _, err = s.Load(t.Context(), state.Head); err == nil && !bytes.Equal(got.Model, c.Model) {
						err = errors.New("another model")
					}
				}
			}
			done <- err
		}()
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	s := storeOf(t, d, "a")
	lease, err := s.Seize(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), checkpoint(lease.Epoch, 999)); err != nil { // nobody saves beside it
		t.Fatal(err)
	}
	chunks, err := filepath.Glob(filepath.Join(d.path, chunkFolder, "*", "*"))
	if err != nil || len(chunks) > 6 {
		t.Errorf("%d chunks are left of three models with one version each, %v", len(chunks), err)
	}
}
