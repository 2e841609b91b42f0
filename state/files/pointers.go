package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"hamlet/state"
)

// StepBack moves the head to an older kept version, because the log has lost what those above it
// have learnt. They are lost: no reader takes one for the newest. If the version is not kept, or is
// lost, the error wraps [state.ErrNone].
func (s *Store) StepBack(ctx context.Context, mine state.Lease, to int64) error {
	fail, end, err := s.begin(ctx, fmt.Sprintf("step back to version %d of", to))
	if err != nil {
		return err
	}
	defer end()
	if err := s.owned(mine.Epoch, mine.Writer); err != nil {
		return fail(err)
	}
	b := s.book.clone()
	if v := b.find(to); v == nil || v.Lost {
		return fail(fmt.Errorf("%w with this number that the log has not lost", state.ErrNone))
	}
	for i := range b.Versions {
		if v := &b.Versions[i]; v.Number > to {
			v.Lost = true
		}
	}
	b.Head = to
	return fail(s.change(b))
}

// Pin points Served at a version, and keeps that version, until Unpin. If it is not kept the error
// wraps [state.ErrNone].
func (s *Store) Pin(ctx context.Context, number int64) error {
	doing := fmt.Sprintf("pin version %d of", number)
	return s.mark(ctx, doing, number, func(b *book, v *version) { b.Pinned = number })
}

// MarkReplaced keeps a version because another model takes its place.
func (s *Store) MarkReplaced(ctx context.Context, number int64) error {
	doing := fmt.Sprintf("keep version %d of", number)
	return s.mark(ctx, doing, number, func(b *book, v *version) { v.Replaced = true })
}

func (s *Store) mark(ctx context.Context, doing string, number int64, do func(*book, *version)) error {
	fail, end, err := s.begin(ctx, doing)
	if err != nil {
		return err
	}
	defer end()
	b := s.book.clone()
	v := b.find(number)
	if v == nil {
		return fail(fmt.Errorf("%w with this number: choose one that is kept", state.ErrNone))
	}
	do(&b, v)
	return fail(s.change(b))
}

// Unpin moves Served to the head again.
func (s *Store) Unpin(ctx context.Context) error {
	fail, end, err := s.begin(ctx, "unpin")
	if err != nil {
		return err
	}
	defer end()
	if s.book.Pinned == 0 {
		return nil
	}
	b := s.book.clone()
	b.Pinned = 0
	return fail(s.change(b))
}

// Promote says which model answers in the place of this one. It changes no version.
func (s *Store) Promote(ctx context.Context, p state.Promotion) error {
	fail, end, err := s.begin(ctx, "promote in the place of")
	if err != nil {
		return err
	}
	defer end()
	b, err := p.AppendBinary(nil)
	if err == nil {
		err = s.dir.folder(s.folder)
	}
	if err == nil {
		err = s.dir.write(filepath.Join(s.folder, promotionName), b)
	}
	return fail(err)
}

// Promotion returns what Promote said last. Before that the error wraps [state.ErrNone].
func (s *Store) Promotion(ctx context.Context) (p state.Promotion, err error) {
	fail, end, err := s.begin(ctx, "read which model answers in the place of")
	if err != nil {
		return p, err
	}
	defer end()
	b, err := s.dir.read(filepath.Join(s.folder, promotionName))
	if errors.Is(err, fs.ErrNotExist) {
		err = state.ErrNone
	}
	if err == nil {
		err = p.UnmarshalBinary(b)
	}
	return p, fail(err)
}
