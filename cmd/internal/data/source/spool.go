package source

import (
	"bufio"
	"fmt"
	"os"

	"hamlet/stream"
)

// spoolMemory is how many bytes a spool holds in memory: mail of a few ten thousand
// messages. The rest goes to a temporary file.
const spoolMemory = 256 << 20

// A spool stores events for reading them in another order. add numbers them from 0.
//
// Invariant: event i is the bytes from ends[i] to ends[i+1] of memory followed by file.
// It lies in one of them. Only add writes them.
type spool struct {
	limit  int // bytes in memory
	memory []byte
	file   *os.File // nil until memory is full
	out    *bufio.Writer
	ends   []int64
	buf    []byte // scratch
}

func newSpool() *spool { return &spool{limit: spoolMemory, ends: []int64{0}} }

func (s *spool) len() int { return len(s.ends) - 1 }

func (s *spool) add(e *stream.Event) error {
	b, err := e.AppendProto(s.buf[:0])
	if err != nil {
		return err
	}
	s.buf = b
	end := s.ends[s.len()] + int64(len(b))
	if s.file == nil && len(s.memory)+len(b) <= s.limit {
		s.memory = append(s.memory, b...)
		s.ends = append(s.ends, end)
		return nil
	}
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "hamlet-source-*"); err != nil {
			return spoolError(err)
		}
		os.Remove(s.file.Name()) // the system frees it at the end of the process at the latest
		s.out = bufio.NewWriterSize(s.file, 1<<20)
	}
	if _, err := s.out.Write(b); err != nil {
		return spoolError(err)
	}
	s.ends = append(s.ends, end)
	return nil
}

func spoolError(err error) error {
	return fmt.Errorf("spool events to a temporary file (TMPDIR says where): %w", err)
}

// at returns event i. It may share the spool's memory, which never changes.
func (s *spool) at(i int) (stream.Event, error) {
	start, end := s.ends[i], s.ends[i+1]
	var b []byte
	if end <= int64(len(s.memory)) {
		b = s.memory[start:end]
	} else {
		if err := s.out.Flush(); err != nil {
			return stream.Event{}, spoolError(err)
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
