package example

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"hamlet/algos/model"
)

// Defects logs where defects of ours are: the stack of each place once. The zero value is ready.
type Defects struct {
	mu   sync.Mutex
	seen map[string]bool // by innermost
}

// mostStacks bounds what Defects logs and remembers.
const mostStacks = 100

// Note logs the stack of err if it is a *model.Defect or a *model.PanicError of a place that
// was not logged before. attrs say which record it was. Stacks name no content.
func (d *Defects) Note(log *slog.Logger, err error, attrs ...any) {
	var defect *model.Defect
	if !errors.As(err, &defect) {
		return
	}
	at := innermost(defect.Stack)
	d.mu.Lock()
	known := d.seen[at] || len(d.seen) >= mostStacks
	if !known {
		if d.seen == nil {
			d.seen = map[string]bool{}
		}
		d.seen[at] = true
	}
	d.mu.Unlock()
	if !known {
		log.Error("a defect of hamlet: please report it with this stack",
			append(attrs, "reason", err.Error(), "stack", string(defect.Stack))...)
	}
}

// innermost returns the files and lines of the innermost frames of a stack: the same for every
// panic of one defect.
func innermost(stack []byte) string {
	const frames = 12
	var at []string
	for line := range bytes.Lines(stack) {
		if file, _, ok := strings.Cut(string(line), " +0x"); ok && strings.HasPrefix(file, "\t") && len(at) < frames {
			at = append(at, strings.TrimSpace(file))
		}
	}
	return strings.Join(at, " ")
}
