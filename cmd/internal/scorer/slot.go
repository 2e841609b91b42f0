package scorer

import (
	"context"
	"errors"
	"fmt"

	"hamlet/state"
)

// A slot is what the loader knows of one partition. Only the polling goroutine uses
// it, and only this file writes it.
//
// A slot's standing changes with what the store says at a poll:
//
//	                       what the store says
//	standing  │ not listed   named again  another history,  all else:
//	          │                           behind part       load what is named
//	──────────┼──────────────────────────────────────────────────────────────
//	following │ missing¹     following    relearning        following
//	missing   │ missing      following    relearning        following
//	relearning│ relearning   following    relearning        following
//
// Not listed: the store does not list the partition, or has lost its pointer.
// Named again: the pointer names the checkpoint that was tried last. Behind part:
// at a smaller offset than the part that is served. ¹ If there is a part; else the
// slot stays as it is. A store that cannot be asked changes nothing.
type slot struct {
	part     *part         // what is served, whatever the standing; nil until a checkpoint could be loaded
	standing standing      // following if part is nil
	tried    state.Heading // what was loaded last, or could not be served; zero: load at the next poll in any case
	bad      error         // why tried, or what replaced it, is not served; nil if part was made of it
	newest   int64         // the largest version that was tried in the present history of the store
	pin      pin           // what the store last said of it
}

// A pin says what the store holds of an operator's pin.
type pin struct {
	version int64 // that is pinned; 0: none
	lost    bool  // the store has lost that version, and serves the head
}

// A standing says how a slot's part relates to the store.
type standing uint8

const (
	following  standing = iota // part is the checkpoint that the store names, or the best that could be loaded
	missing                    // the store has lost the partition: part is served on
	relearning                 // the store lost its data, and its new model is behind part: part is served on
)

// whole reports whether what the store holds of the partition is served.
func (s *slot) whole() bool { return s.bad == nil && s.standing == following }

// follow loads what a partition's pointer names, if it has moved. The error wraps
// state.ErrNone if the store has lost the pointer; any other means that the store could
// not be asked. A checkpoint that cannot be served sets s.bad and is no error.
func (l *loader) follow(ctx context.Context, partition int, s *slot) error {
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	named, err := l.store.Heading(ask, state.Served)
	if err == nil {
		l.notePin(partition, s, pin{version: named.Pinned, lost: named.Pinned != 0 && named.Pinned != named.Version})
		named.Pinned = 0 // the pin says nothing about the checkpoint
	}
	if err == nil && named == s.tried {
		s.standing = following
		return nil
	}
	var replaced bool
	if err == nil {
		replaced, err = l.replaced(ask, partition, s, named)
	}
	if err == nil && replaced && s.part != nil && named.Next < s.part.next {
		l.relearn(partition, s, named)
		return nil
	}
	var checkpoint *state.Checkpoint
	var version int64
	if err == nil {
		checkpoint, version, err = l.store.Load(ctx, state.Served)
	}
	if err != nil && (ctx.Err() != nil || errors.Is(err, state.ErrNone) || errors.Is(err, state.ErrTransient)) {
		return err
	}
	if replaced {
		s.newest = 0
	}
	before := s.bad
	s.standing, s.tried, s.newest = following, named, max(s.newest, named.Version)
	s.bad = s.take(partition, named, version, checkpoint, err)
	if err != nil && !errors.Is(err, state.ErrCorrupt) {
		// Only the next checkpoint repairs a corrupt one. Another fault may be repaired
		// in place, such as a missing access right.
		s.tried = state.Heading{}
	}
	if s.bad != nil && before == nil {
		l.metrics.loadFailures.Inc()
		l.log.Error("a checkpoint can't be served, the one before is if there was one",
			"model", l.name, "partition", partition, "version", named.Version, "error", s.bad)
	}
	return nil
}

// take makes s.part from a loaded checkpoint. err is the load's error. It returns an
// error unless the part is the version that the store names.
func (s *slot) take(partition int, named state.Heading, version int64, c *state.Checkpoint, err error) error {
	if err != nil {
		return err
	}
	if s.part == nil || !s.part.is(version, c) {
		fresh, err := newPart(partition, version, c)
		if err != nil {
			return err
		}
		s.part = fresh
	}
	if version < named.Version {
		return fmt.Errorf("version %d is not whole; version %d is served", named.Version, version)
	}
	return nil
}

// replaced reports whether the store lost its data, so that what it names belongs to
// another history than the slot's part. Within one history the head's version never
// goes back, and a number never names two versions. The head is asked for only if the
// pointer went back. A missing or invalid head decides nothing.
func (l *loader) replaced(ctx context.Context, partition int, s *slot, named state.Heading) (bool, error) {
	if s.standing != following {
		return true, nil
	}
	behind := s.part != nil && named.Next < s.part.next
	if !behind && named.Version >= s.newest {
		return false, nil
	}
	head, err := l.store.Heading(ctx, state.Head)
	switch {
	case errors.Is(err, state.ErrNone), errors.Is(err, state.ErrCorrupt):
		head.Version = s.newest
	case err != nil:
		return false, err
	}
	return head.Version < s.newest || named.Version == s.tried.Version && named.Identity != s.tried.Identity, nil
}

// relearn goes on serving a slot's part while the store's new model is behind it: a
// model of few events is worse.
func (l *loader) relearn(partition int, s *slot, named state.Heading) {
	if s.standing == relearning {
		return
	}
	s.standing = relearning
	l.log.Warn("the state lost what is served, and what it holds now is not as far in the log: the model from before is served "+
		"until the new one has come as far; restart the scorer to serve the new one at once",
		"model", l.name, "partition", partition, "served_next_offset", s.part.next, "next_offset", named.Next)
}

// notePin notes what the store says of a pin, and logs a change.
func (l *loader) notePin(partition int, s *slot, now pin) {
	if now == s.pin {
		return
	}
	before := s.pin
	s.pin = now
	switch {
	case now.lost:
		l.log.Warn("the pinned version is gone, and the newest is served in its place: `hamlet model pin` another one, or `hamlet model unpin`",
			"model", l.name, "partition", partition, "version", now.version)
	case now.version != 0:
		l.log.Info("an operator pinned a version: it is served until `hamlet model unpin`",
			"model", l.name, "partition", partition, "version", now.version)
	default:
		l.log.Info("no version is pinned any more: the newest is served",
			"model", l.name, "partition", partition, "version", before.version)
	}
}

// noteMissing notes that the store has lost a slot's partition.
func (l *loader) noteMissing(partition int, s *slot) {
	if s.part == nil || s.standing != following {
		return
	}
	s.standing = missing
	l.log.Warn("the state does not hold the partition any more: its last model is served on", "model", l.name, "partition", partition)
}
