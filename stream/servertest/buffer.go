package servertest

import (
	"bytes"
	"sync"
)

// A Buffer is a log that may be read while others write it: the goroutines of a connection
// say what happens to it even after it is closed.
type Buffer struct {
	mu  sync.Mutex
	log bytes.Buffer
}

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

// String is what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

// Reset forgets what was written.
func (b *Buffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log.Reset()
}
