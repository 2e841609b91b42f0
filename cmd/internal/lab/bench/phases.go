package bench

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"hamlet/cmd/internal/progress"
)

// phases shows the progress of a long measurement: on a terminal by a counter, elsewhere
// by a line every ten seconds.
type phases struct {
	w        io.Writer
	terminal bool
}

func newPhases(w io.Writer) *phases { return &phases{w, progress.IsTerminal(w)} }

// begin shows done of total until end is called.
func (s *phases) begin(name string, total int, done *atomic.Int64) (end func()) {
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
