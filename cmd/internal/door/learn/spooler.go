package learn

import (
	"context"
	"errors"
	"fmt"
	"io"

	"hamlet/cmd/internal/process/cli"
	"hamlet/stream"
)

// A spooler sends events by way of a spool. It tries once to send each: what the service does
// not take now stays in the spool.
type spooler struct {
	spool  *spool
	sender *sender

	batch    []string // names of the events that were added since the last flush
	refused  error    // what sending told since the last flush
	accepted int      // of the batches before, that the spool has no longer
	waiting  int      // of the batches before, that it has
	why      error    // of waiting
}

// A laterError says that the service may take an event later.
type laterError struct{ error }

func (e *laterError) Unwrap() error { return e.error }

// post sends one event.
func (s *spooler) post(ctx context.Context, event []byte) error {
	s.sender.batch.Reset()
	s.sender.batch.Write(event)
	again, err := s.sender.send(ctx)
	if again {
		return &laterError{err}
	}
	return err
}

// add puts an event into the spool. A batch is as long as a sender's.
func (s *spooler) add(ctx context.Context, e *stream.Event) error {
	line, err := e.AppendJSON(nil)
	if err != nil {
		return err
	}
	if len(s.batch) == mostEvents {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	name, err := s.spool.add(ctx, line)
	if errors.Is(err, errSpoolFull) {
		// What is refused now makes room too, so this event is added before anybody hears of it.
		s.refused = errors.Join(s.refused, s.send(ctx))
		name, err = s.spool.add(ctx, line)
	}
	if err != nil {
		return fmt.Errorf("after %d messages that were taken: %w", s.accepted, errors.Join(s.refused, err))
	}
	s.batch = append(s.batch, name)
	return nil
}

// flush sends all that waits. The error says that an event was refused, or that the spool fails.
func (s *spooler) flush(ctx context.Context) error {
	if len(s.batch) == 0 {
		return nil
	}
	err := errors.Join(s.refused, s.send(ctx))
	waiting := s.spool.has(s.batch)
	s.accepted, s.waiting, s.batch, s.refused = s.accepted+len(s.batch)-waiting, s.waiting+waiting, nil, nil
	return err
}

// send sends what waits until the timeout is over. If another process sends, it leaves that to it.
func (s *spooler) send(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, s.sender.timeout)
	defer cancel()
	once, stop := context.WithCancel(attempt)
	stop()
	_, rejected, err := s.spool.send(once, func(event []byte) error { return s.post(attempt, event) })
	if later := new(laterError); errors.As(err, &later) || errors.Is(err, errLocked) {
		s.why, err = err, nil
	}
	return errors.Join(append(rejected, err)...)
}

func (s *spooler) state() (accepted, waiting int, why error) { return s.accepted, s.waiting, s.why }

// flush is `hamlet learn --flush`. Each message has the whole timeout.
func (c *Command) flush(ctx context.Context, s *spooler, stdout io.Writer) error {
	lock, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	sent, rejected, err := s.spool.send(lock, func(event []byte) error {
		ctx, cancel := context.WithTimeout(ctx, c.Timeout)
		defer cancel()
		return s.post(ctx, event)
	})
	names, _, failed := s.spool.list()
	if err := errors.Join(append(rejected, err, failed)...); err != nil {
		return fmt.Errorf("%d sent, %d wait in %s: %w", sent, len(names), c.Spool, err)
	}
	if c.JSON {
		return cli.PrintJSON(stdout, map[string]any{"accepted": sent, "waiting": len(names)})
	}
	return cli.Print(stdout, fmt.Sprintf("%d sent\n", sent))
}
