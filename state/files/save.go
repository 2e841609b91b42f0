package files

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"hamlet/state"
)

// Save writes a checkpoint as a version and moves the head to it. Where the head has the model's
// bytes already it takes the head's place, under its number. The epoch must be the last one that
// was acquired or seized, and the offset not below the head's, unless the head is damaged: else nothing
// changes and the error wraps [state.ErrStale]. A zero Saved means now.
func (s *Store) Save(ctx context.Context, c *state.Checkpoint) (number int64, err error) {
	fail := s.fail("save")
	if err := s.dir.enter(); err != nil {
		return 0, fail(err)
	}
	defer s.dir.calls.Done()
	if err := s.saving.lock(ctx); err != nil {
		return 0, fail(err)
	}
	defer s.saving.unlock()
	s.dir.guard.RLock()
	number, err = s.save(ctx, c)
	s.dir.guard.RUnlock()
	// What was written before a deadline stays, so that the next try comes further.
	if err == nil || ctx.Err() == nil && !errors.Is(err, state.ErrStale) {
		s.dir.sweep()
	}
	return number, fail(err)
}

// save writes the chunks while others use the store, and then the manifest and the book.
func (s *Store) save(ctx context.Context, c *state.Checkpoint) (number int64, err error) {
	seen, distrusted, err := s.examine(ctx, c)
	if err != nil {
		return 0, err
	}
	m, err := state.Cut(c, func(chunk state.Chunk) error {
		if err := ended(ctx); err != nil {
			return err
		}
		return s.dir.writeChunk(&chunk)
	})
	if err != nil {
		s.dir.unswept.Store(true)
		return 0, err
	}
	if m.Saved.IsZero() {
		m.Saved = time.Now()
	}
	manifest, identity, err := encode(m)
	if err != nil {
		s.dir.unswept.Store(true)
		return 0, err
	}
	same := false
	if head := seen.find(seen.Head); head != nil && head.Identity == identity {
		same = s.whole(head) == nil
	}
	if err := s.mu.lock(ctx); err != nil {
		s.dir.unswept.Store(true)
		return 0, err
	}
	defer s.mu.unlock()
	b := s.book.clone()
	head := b.find(b.Head)
	if head == nil || head.file() != distrusted {
		distrusted = ""
	}
	err = s.owned(c.Epoch, c.Writer)
	if err == nil && head != nil && distrusted == "" && c.Position.Next < head.Next {
		err = behind(c, head)
	}
	if err != nil {
		s.dir.unswept.Store(true)
		return 0, err
	}
	if same && head != nil && head.Identity == identity { // only the days are counted
		if s.trim(&b, day(m.Saved), 0); !slices.Equal(b.Versions, s.book.Versions) { // trim has moved the versions: head points at another
			return b.Head, s.change(b)
		}
		return b.Head, nil
	}
	return s.commit(b, m, manifest, identity, distrusted != "")
}

// examine returns the book, and the file of a head that is further in the log than c, but is damaged.
func (s *Store) examine(ctx context.Context, c *state.Checkpoint) (b book, distrusted string, err error) {
	if err := s.mu.lock(ctx); err != nil {
		return b, "", err
	}
	if b, err = s.current(); err == nil {
		err = s.owned(c.Epoch, c.Writer)
	}
	s.mu.unlock()
	head := b.find(b.Head)
	if err != nil || head == nil || c.Position.Next >= head.Next {
		return b, "", err
	}
	switch err := s.whole(head); {
	case errors.Is(err, state.ErrCorrupt):
		s.dir.cfg.Log.Error("the head is damaged: a checkpoint before it takes its place", "model", s.model,
			"version", head.Number, "next", head.Next, "saved", c.Position.Next, "error", err)
		return b, head.file(), nil
	case err != nil:
		return b, "", err
	}
	return b, "", behind(c, head)
}

func behind(c *state.Checkpoint, head *version) error {
	return fmt.Errorf("%w: the head's next offset is %d, this one's %d: reload",
		state.ErrStale, head.Next, c.Position.Next)
}

// commit writes a manifest, whose chunks are there, and then the book.
func (s *Store) commit(b book, m *state.Manifest, manifest []byte, identity string, distrusted bool) (int64, error) {
	today := day(m.Saved)
	v := version{
		Identity: identity, Epoch: m.Epoch, Writer: m.Writer, Next: m.Position.Next,
		SHA256: hex.EncodeToString(m.Model[:]), Day: today,
	}
	refused := int64(0)
	head := b.find(b.Head)
	switch {
	case distrusted:
		refused, head = b.Head, nil
	case head != nil && head.SHA256 != v.SHA256:
		head = nil
	}
	if head != nil { // in its place
		v.Number, v.Day = head.Number, head.Day
		v.Replaced, v.Counted, v.Waited = head.Replaced, head.Counted, head.Waited
		*head = v
	} else {
		b.Last++
		v.Number = b.Last
		b.Versions = append(b.Versions, v)
	}
	b.Head = v.Number
	s.trim(&b, today, refused)
	err := s.dir.folder(s.folder)
	if err == nil {
		err = s.dir.write(filepath.Join(s.folder, v.file()), manifest)
	}
	if err == nil {
		err = s.change(b)
	}
	if err == nil {
		return v.Number, nil
	}
	s.dir.unswept.Store(true)
	if !slices.ContainsFunc(s.book.Versions, func(w version) bool { return w.file() == v.file() }) {
		s.book.Dropped = append(slices.Clone(s.book.Dropped), v.file())
	}
	return 0, err
}
