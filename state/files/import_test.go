package files

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hamlet/state"
)

// kept returns three versions with gaps in their numbers, and the chunks of them all.
func kept() (k Kept, chunks []state.Chunk) {
	k = Kept{Epoch: 9, Last: 12, Head: 11, Pinned: 4, Promotion: &state.Promotion{Model: "other",
		Since: time.Unix(1_800_000_000, 0).UTC()}}
	for i, number := range []int64{4, 7, 11} {
		c := checkpoint(int64(3+i), int64(10+5*i))
		c.Writer = ""
		m, parts := state.Split(c)
		k.Versions = append(k.Versions, KeptVersion{Number: number, Manifest: m, Replaced: number == 7, Counted: 3,
			Waited: 2})
		chunks = append(chunks, parts...)
	}
	return k, chunks
}

func yielded(chunks []state.Chunk, end error) iter.Seq2[state.Chunk, error] {
	return func(yield func(state.Chunk, error) bool) {
		for _, c := range chunks {
			if !yield(c, nil) {
				return
			}
		}
		if end != nil {
			yield(state.Chunk{}, end)
		}
	}
}

// What was imported is as it was, also for the next program, and saves go on from it.
func TestImport(t *testing.T) {
	path := t.TempDir()
	k, chunks := kept()
	stray := state.Chunk{Name: [32]byte{1}, Data: []byte("of another model")}
	for try := range 2 {
		d, _ := opened(t, path, Config{})
		s := storeOf(t, d, "m")
		if try == 0 {
			if err := s.Import(t.Context(), k, yielded(append(chunks, stray), nil)); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range k.Versions {
			c, err := s.LoadVersion(t.Context(), v.Number)
			if err != nil {
				t.Fatal(err)
			}
			if m, _ := state.Split(c); !cmp.Equal(m, v.Manifest) {
				t.Errorf("version %d: %s", v.Number, cmp.Diff(v.Manifest, m))
			}
		}
		_, identity, err := encode(k.Versions[2].Manifest)
		head, bad := s.Heading(t.Context(), state.Head)
		want := state.Heading{Version: 11, Next: 20, Identity: identity, Model: head.Model, Pinned: 4, Epoch: 5}
		if err := errors.Join(err, bad); err != nil || head != want {
			t.Errorf("head %+v, %v; want %+v", head, err, want)
		}
		served, err := s.Heading(t.Context(), state.Served)
		if err != nil || served.Version != 4 {
			t.Errorf("served %+v, %v", served, err)
		}
		if p, err := s.Promotion(t.Context()); err != nil || p != *k.Promotion {
			t.Errorf("promotion %+v, %v", p, err)
		}
		history, err := s.Versions(t.Context())
		if err != nil || len(history) != 3 || !history[1].Replaced || history[2].Replaced {
			t.Errorf("history %+v, %v", history, err)
		}
		if n := len(glob(t, path, chunkFolder, "*", "*")); n != 5 { // two versions share a full one
			t.Errorf("%d chunks", n)
		}
		if try == 1 {
			if epoch := seize(t, s); epoch != 10 {
				t.Errorf("epoch %d, want 10", epoch)
			}
			if number := save(t, s, checkpoint(10, 30)); number != 13 {
				t.Errorf("saved as %d, want 13", number)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is wrong leaves the model without a version, and can be imported then.
func TestImportRefuses(t *testing.T) {
	k, chunks := kept()
	wrong := append(chunks[:len(chunks):len(chunks)], state.Chunk{Name: chunks[0].Name, Data: []byte("x")})
	notRising, noHead, lostHead := k, k, k
	notRising.Versions = []KeptVersion{k.Versions[1], k.Versions[0]}
	noHead.Head = 5
	lostHead.Versions = append([]KeptVersion{}, k.Versions...)
	lostHead.Versions[2].Lost = true
	away := errors.New("away")
	for name, c := range map[string]struct {
		k      Kept
		chunks iter.Seq2[state.Chunk, error]
		err    error
	}{
		"missing":     {k, yielded(chunks[:5], nil), state.ErrCorrupt},
		"wrong":       {k, yielded(wrong, nil), state.ErrCorrupt},
		"cut off":     {k, yielded(chunks, away), away},
		"order":       {notRising, yielded(chunks, nil), nil},
		"no head":     {noHead, yielded(chunks, nil), nil},
		"lost head":   {lostHead, yielded(chunks, nil), nil},
		"disk full":   {k, yielded(chunks, nil), state.ErrTransient},
		"full at end": {k, yielded(chunks, nil), state.ErrTransient},
	} {
		d, f := opened(t, t.TempDir(), Config{})
		s := storeOf(t, d, "m")
		part := map[string]string{"disk full": manifestEnd, "full at end": bookName}[name]
		f.set(func(doing, path string) error {
			if doing == "write" && part != "" && strings.HasSuffix(path, part) {
				return syscall.ENOSPC
			}
			return nil
		})
		err := s.Import(t.Context(), c.k, c.chunks)
		if err == nil || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := s.Load(t.Context(), state.Head); !errors.Is(err, state.ErrNone) {
			t.Errorf("%s: then load says %v", name, err)
		}
		f.set(nil)
		if err := s.Import(t.Context(), k, yielded(chunks, nil)); err != nil {
			t.Errorf("%s: again: %v", name, err)
		}
		if err := s.Import(t.Context(), k, yielded(chunks, nil)); !errors.Is(err, errNotBlank) {
			t.Errorf("%s: twice: %v", name, err)
		}
	}
}

// The program dies before any change of a file. The model has no version, or all. Importing it again
// succeeds where it has none.
func TestDeathInImport(t *testing.T) {
	path, snapshots := t.TempDir(), t.TempDir()
	d, _ := opened(t, path, Config{})
	n := 0
	d.step = func() {
		if err := os.CopyFS(filepath.Join(snapshots, fmt.Sprint(n)), os.DirFS(path)); err != nil {
			t.Fatal(err)
		}
		n++
	}
	k, chunks := kept()
	if err := storeOf(t, d, "m").Import(t.Context(), k, yielded(chunks, nil)); err != nil {
		t.Fatal(err)
	}
	if n < 10 {
		t.Fatalf("%d changes", n)
	}
	for i := range n {
		d, _ := opened(t, filepath.Join(snapshots, fmt.Sprint(i)), Config{})
		s := storeOf(t, d, "m")
		if _, _, err := s.Load(t.Context(), state.Head); !errors.Is(err, state.ErrNone) {
			t.Fatalf("death %d: %v", i, err)
		}
		if err := s.Import(t.Context(), k, yielded(chunks, nil)); err != nil {
			t.Fatalf("death %d: %v", i, err)
		}
		if _, number, err := s.Load(t.Context(), state.Served); err != nil || number != 4 {
			t.Errorf("death %d: served %d, %v", i, number, err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
