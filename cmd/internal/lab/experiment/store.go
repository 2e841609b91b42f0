package experiment

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// A stepStore keeps the results of an experiment's steps in a file of JSON Lines. The
// first line says what they belong to: with other code, data or seed the file starts empty. A last line
// that was cut off is dropped.
type stepStore struct {
	mu      sync.Mutex
	file    *os.File // nil: nothing is kept
	byStep  map[string]kept
	seconds float64 // of all steps
}

// A kept step is a line of the file.
type kept struct {
	Step    string          `json:"step"`
	Seconds float64         `json:"seconds"`
	Value   json.RawMessage `json:"value"`
}

// A stepsOf is the file's first line.
type stepsOf struct {
	Experiment string `json:"experiment"`
	Key        string `json:"key"`
}

// openSteps opens the file and reads what belongs to key. With an empty path steps are
// kept in memory.
func openSteps(path string, of stepsOf) (*stepStore, error) {
	s := &stepStore{byStep: map[string]kept{}}
	if path == "" {
		return s, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	s.file = file
	end, err := s.read(of)
	if err == nil {
		err = s.begin(end, of)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return s, nil
}

// read fills byStep and returns the offset behind the last whole line.
func (s *stepStore) read(of stepsOf) (end int64, err error) {
	in := bufio.NewReaderSize(s.file, 1<<16)
	for first := true; ; first = false {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		if first {
			var is stepsOf
			if json.Unmarshal(line, &is) != nil || is != of {
				return 0, nil
			}
		} else {
			var k kept
			if json.Unmarshal(line, &k) != nil || k.Step == "" {
				return end, nil
			}
			s.byStep[k.Step] = k
			s.seconds += k.Seconds
		}
		end += int64(len(line))
	}
}

// begin cuts the file off at end. It writes the first line into an empty file.
func (s *stepStore) begin(end int64, of stepsOf) error {
	if err := s.file.Truncate(end); err != nil {
		return err
	}
	if _, err := s.file.Seek(end, io.SeekStart); err != nil {
		return err
	}
	if end > 0 {
		return nil
	}
	return writeLine(s.file, of)
}

func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(bytes.TrimSpace(line), '\n'))
	return err
}

func (s *stepStore) get(step string) (kept, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.byStep[step]
	return k, ok
}

func (s *stepStore) put(k kept) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byStep[k.Step] = k
	s.seconds += k.Seconds
	if s.file == nil {
		return nil
	}
	if err := writeLine(s.file, k); err != nil {
		return fmt.Errorf("keep a step: %w", err)
	}
	return nil
}

// spent returns the time of all steps on one core, those of earlier runs included.
func (s *stepStore) spent() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seconds
}

func (s *stepStore) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
