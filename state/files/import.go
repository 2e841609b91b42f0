package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"hamlet/state"
)

// Kept is what another store keeps of a model, without the bytes of its versions.
type Kept struct {
	Epoch     int64
	Last      int64 // the highest number that a version was given; 0: that of the last one in Versions
	Head      int64 // 0: no version
	Pinned    int64 // 0: none
	Versions  []KeptVersion
	Promotion *state.Promotion // nil: none
}

// A KeptVersion is one version. Versions ascend by number.
type KeptVersion struct {
	Number   int64
	Manifest *state.Manifest
	Day      int64 // of the first save of these bytes, since 1970; 0: that of the manifest
	Replaced bool
	Lost     bool
	Counted  int64 // see book
	Waited   int   // see book
}

// Import makes what another store keeps of a model that of a model which has no version here. Numbers,
// epochs, times, pointers and marks stay as they are, so a version keeps its identity. Nothing is trimmed
// before the next save.
//
// chunks yields the chunks that the manifests name, in any order, and may yield others. It holds one
// chunk in memory. A chunk that is missing or wrong is [state.ErrCorrupt]. After an error the
// model has no version.
func (s *Store) Import(ctx context.Context, k Kept, chunks iter.Seq2[state.Chunk, error]) error {
	fail := s.fail("import")
	if err := s.dir.enter(); err != nil {
		return fail(err)
	}
	defer s.dir.calls.Done()
	if err := s.saving.lock(ctx); err != nil {
		return fail(err)
	}
	defer s.saving.unlock()
	s.dir.guard.RLock()
	defer s.dir.guard.RUnlock()
	err := s.importKept(ctx, &k, chunks)
	if err != nil {
		s.dir.unswept.Store(true)
	}
	return fail(err)
}

// importKept writes chunks, then manifests, and then the book.
func (s *Store) importKept(ctx context.Context, k *Kept, chunks iter.Seq2[state.Chunk, error]) error {
	b, manifests, err := k.book()
	if err != nil {
		return err
	}
	if err := s.blank(ctx); err != nil {
		return err
	}
	named := map[[sha256.Size]byte]bool{}
	for i := range k.Versions {
		for _, name := range k.Versions[i].Manifest.Chunks {
			named[name] = true
		}
	}
	for chunk, err := range chunks {
		if err == nil {
			err = ended(ctx)
		}
		if err == nil && named[chunk.Name] {
			if sha256.Sum256(chunk.Data) != chunk.Name {
				return fmt.Errorf("%w: chunk %x is not what its name says", state.ErrCorrupt, chunk.Name)
			}
			err = s.dir.writeChunk(&chunk)
		}
		if err != nil {
			return err
		}
	}
	for i := range b.Versions {
		err := ended(ctx)
		if err == nil {
			err = s.verify(&b.Versions[i], k.Versions[i].Manifest)
		}
		if err == nil {
			err = s.dir.write(filepath.Join(s.folder, b.Versions[i].file()), manifests[i])
		}
		if err != nil {
			return err
		}
	}
	if k.Promotion != nil {
		text, err := k.Promotion.AppendBinary(nil)
		if err == nil {
			err = s.dir.write(filepath.Join(s.folder, promotionName), text)
		}
		if err != nil {
			return err
		}
	}
	if err := s.mu.lock(ctx); err != nil {
		return err
	}
	defer s.mu.unlock()
	if len(s.book.Versions) > 0 {
		return errNotBlank
	}
	b.Epoch = max(b.Epoch, s.book.Epoch)
	return s.change(b)
}

var errNotBlank = errors.New("it has versions here already")

// blank makes sure that there is a book, and that it has no version. Manifests without a book would be
// taken for those of a lost one.
func (s *Store) blank(ctx context.Context) error {
	if err := s.mu.lock(ctx); err != nil {
		return err
	}
	defer s.mu.unlock()
	b, err := s.current()
	if err != nil {
		return err
	}
	if len(b.Versions) > 0 {
		return errNotBlank
	}
	return s.change(b.clone())
}

// book returns the book of what is kept, and the bytes of the manifests' files.
func (k *Kept) book() (b book, manifests [][]byte, err error) {
	b = book{Epoch: k.Epoch, Last: k.Last, Head: k.Head, Pinned: k.Pinned}
	for i := range k.Versions {
		v := &k.Versions[i]
		m := v.Manifest
		if v.Number <= 0 || i > 0 && v.Number <= k.Versions[i-1].Number {
			return b, nil, fmt.Errorf("versions do not ascend: %d is at %d", v.Number, i+1)
		}
		text, identity, err := encode(m)
		if err != nil {
			return b, nil, fmt.Errorf("version %d: %w", v.Number, err)
		}
		manifests = append(manifests, text)
		b.Versions = append(b.Versions, version{
			Number: v.Number, Identity: identity, Epoch: m.Epoch, Writer: m.Writer, Next: m.Position.Next,
			SHA256: hex.EncodeToString(m.Model[:]), Day: cmp.Or(v.Day, day(m.Saved)),
			Replaced: v.Replaced, Lost: v.Lost, Counted: v.Counted, Waited: v.Waited,
		})
		b.Epoch, b.Last = max(b.Epoch, m.Epoch), max(b.Last, v.Number)
	}
	head := b.find(b.Head)
	if (b.Head != 0 || len(b.Versions) > 0) && (head == nil || head.Lost) {
		return b, nil, fmt.Errorf("the head, version %d, is not among the %d that are kept, or is lost", b.Head,
			len(b.Versions))
	}
	return b, manifests, nil
}

// verify compares a version's bytes with its manifest. It holds one chunk in memory.
func (s *Store) verify(v *version, m *state.Manifest) error {
	sum, left := sha256.New(), m.Length
	for i, name := range m.Chunks {
		data, err := s.dir.readPart(s.dir.chunk(name))
		if err != nil {
			return fmt.Errorf("version %d: chunk %d of %d: %w", v.Number, i+1, len(m.Chunks), err)
		}
		if int64(len(data)) != min(left, state.ChunkSize) || sha256.Sum256(data) != name {
			return fmt.Errorf("%w: version %d: chunk %d of %d is not what was written", state.ErrCorrupt, v.Number,
				i+1, len(m.Chunks))
		}
		left -= int64(len(data))
		sum.Write(data)
	}
	if [sha256.Size]byte(sum.Sum(nil)) != m.Model {
		return fmt.Errorf("%w: version %d: the model's hash is not that of its manifest", state.ErrCorrupt, v.Number)
	}
	return nil
}
