package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// open returns the run whose checkpoint is in folder, or a new one. It makes the folder.
//
// A checkpoint is a line of JSON, the State, and the model's bytes.
func open(cfg Config, folder string) (*Run, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "checkpoint")
	stored, err := os.ReadFile(path)
	var r *Run
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r, err = newRun(cfg)
	case err == nil:
		text, image, _ := bytes.Cut(stored, []byte("\n"))
		var state State
		if err = json.Unmarshal(text, &state); err == nil {
			r, err = resumed(cfg, state, image)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	if err != nil {
		return nil, err
	}
	r.save = func(state State, image []byte) error {
		text, err := json.Marshal(state)
		if err != nil {
			return err
		}
		return replace(path, append(text, '\n'), image)
	}
	return r, nil
}

// replace writes a file whole or not at all.
func replace(path string, parts ...[]byte) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err == nil {
			_, err = f.Write(p)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// appendCheck appends a line to checks.jsonl.
func appendCheck(folder string, c *Check) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(folder, "checks.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// resident returns the process's resident memory in bytes, 0 where there is no /proc.
func resident() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages uint64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
