package source

import (
	"bufio"
	"fmt"
	"os"

	"hamlet/stream"
)

// spoolMemory is how much a spool keeps in memory: mail of a few ten thousand
// messages; beyond it lies a temporary file.
const spoolMemory = 256 << 20

// A spool keeps events for reading them in another order. Events are numbered
// from 0 as they were added. Once one has been read, none may be added.
type spool struct {
	limit  int // bytes in memory
	memory []byte
	file   *os.File // nil until memory is full
	out    *bufio.Writer
	ends   []int64 // end of each event; memory comes before the file
	buf    []byte
}

func newSpool() *spool { return &spool{limit: spoolMemory} }

func (s *spool) len() int { return len(s.ends) }

func (s *spool) end() int64 {
	if len(s.ends) == 0 {
		return 0
	}
	return s.ends[len(s.ends)-1]
}

func (s *spool) add(e *stream.Event) error {
	b, err := e.AppendProto(s.buf[:0])
	if err != nil {
		return err
	}
	s.buf = b
	if s.file == nil && len(s.memory)+len(b) <= s.limit {
		s.memory = append(s.memory, b...)
		s.ends = append(s.ends, s.end()+int64(len(b)))
		return nil
	}
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "hamlet-source-*"); err != nil {
			return fmt.Errorf("spool events to a temporary file (TMPDIR says where): %w", err)
		}
		os.Remove(s.file.Name()) // it lives on until it is closed, even if we are killed
		s.out = bufio.NewWriterSize(s.file, 1<<20)
	}
	if _, err := s.out.Write(b); err != nil {
		return fmt.Errorf("spool events to a temporary file (TMPDIR says where): %w", err)
	}
	s.ends = append(s.ends, s.end()+int64(len(b)))
	return nil
}

// at returns event i, which owns its memory.
func (s *spool) at(i int) (stream.Event, error) {
	start := int64(0)
	if i > 0 {
		start = s.ends[i-1]
	}
	var b []byte
	if end := s.ends[i]; end <= int64(len(s.memory)) {
		b = s.memory[start:end]
	} else {
		if err := s.out.Flush(); err != nil {
			return stream.Event{}, fmt.Errorf("spool events to a temporary file (TMPDIR says where): %w", err)
		}
		b = make([]byte, end-start)
		if _, err := s.file.ReadAt(b, start-int64(len(s.memory))); err != nil {
			return stream.Event{}, fmt.Errorf("read the spooled event %d: %w", i, err)
		}
	}
	e, err := stream.DecodeProto(b)
	if err != nil {
		return stream.Event{}, fmt.Errorf("spooled event %d: %w", i, err)
	}
	return e, nil
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
	}
}
