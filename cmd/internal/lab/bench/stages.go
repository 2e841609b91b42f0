package bench

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"hamlet/cmd/internal/progress"
)

// A stages shows how a long measurement goes: on a terminal a counter that is
// redrawn, elsewhere a line every ten seconds.
type stages struct {
	w        io.Writer
	terminal bool
}

func newStages(w io.Writer) *stages { return &stages{w, progress.IsTerminal(w)} }

// begin shows a stage until the function that it returns is called, by the count
// of what is done of the total.
func (s *stages) begin(name string, total int, done *atomic.Int64) (end func()) {
	fmt.Fprintf(s.w, "%s\n", name)
	every := 10 * time.Second
	if s.terminal {
		every = 200 * time.Millisecond
	}
	counter := progress.NewCounter(s.w)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			n := int(done.Load())
			counter.Set(n, total)
			if !s.terminal {
				fmt.Fprintf(s.w, "  %d of %d\n", n, total)
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
		counter.Close()
	}
}
