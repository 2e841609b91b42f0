package tokens

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/secretfile"
)

// Bounds of a file, and of a token in bytes. A longer token is unknown.
const (
	maxFile   = 16 << 20
	maxSecret = 512
)

// A File holds the tokens of the operator's file as it was last read without a mistake. It
// may be used concurrently.
type File struct {
	path string
	log  *slog.Logger
	live *secretfile.Live[table]
}

// A table finds tokens by the start of their hashes.
type table map[[8]byte][]entry

// An entry is one token.
type entry struct {
	Rights
	sum [sha256.Size]byte // of the token
}

// Open reads a file. Its errors name the line.
func Open(path string, log *slog.Logger) (*File, error) {
	live, err := secretfile.Open(func() (table, error) { return read(path) }, path)
	if err != nil {
		return nil, err
	}
	return &File{path, log, live}, nil
}

// Find returns the rights of a token, and whether the file has it. A table is searched by
// hashes, whose comparison tells nobody what a token looks like.
func (f *File) Find(secret string) (*Rights, bool) {
	if f == nil || secret == "" || len(secret) > maxSecret {
		return nil, false
	}
	sum := sha256.Sum256([]byte(secret))
	entries := (*f.live.Get())[[8]byte(sum[:])]
	found := -1
	for i := range entries {
		if subtle.ConstantTimeCompare(sum[:], entries[i].sum[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return nil, false
	}
	return &entries[found].Rights, true
}

// Watch reads the file again on every SIGHUP, until ctx ends: meanwhile that signal does
// not end the program. A file with a mistake changes nothing, and the log says which. A nil
// File waits for ctx alone.
func (f *File) Watch(ctx context.Context) error {
	if f == nil {
		<-ctx.Done()
		return nil
	}
	hangups, stop := cli.TakeHangups()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
			f.Reload()
		}
	}
}

// Reload reads the file again, as Watch does.
func (f *File) Reload() {
	if err := f.live.Reload(); err != nil {
		f.log.Error("the tokens stay as they were", "error", err)
		return
	}
	f.log.Info("tokens read again", "file", f.path)
}

func read(path string) (table, error) {
	data, err := secretfile.Read(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	entries, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("tokens of %s: %w", path, err)
	}
	t := make(table, len(entries))
	for _, e := range entries {
		at := [8]byte(e.sum[:])
		t[at] = append(t[at], e)
	}
	return t, nil
}
