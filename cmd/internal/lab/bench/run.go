package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/progress"
	"hamlet/cmd/internal/show/report"
)

// A measurement is what a command found. It has one form for people, and its own one in JSON.
type measurement interface{ section() *experiment.Section }

// Output says in which form a command prints.
type Output struct {
	JSON bool `name:"json" help:"Print one object in JSON instead of a table."`
}

// show prints a measurement.
func (o Output) show(w io.Writer, m measurement) error {
	if o.JSON {
		return cli.PrintJSON(w, m)
	}
	return m.section().Print(w)
}

// makeReport makes the directory of --report, if it is wanted, before a long measurement.
func makeReport(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

// writeReport writes a command's page, index.html, into the directory of --report.
func writeReport(dir, command string, s *experiment.Section) error {
	page := experiment.Page{Title: command, Sections: []*experiment.Section{s}}
	if err := page.Write(filepath.Join(dir, "index.html")); err != nil {
		return fmt.Errorf("--report %s: %w", dir, err)
	}
	return nil
}

// Labelled holds the flags of a labelled stream.
type Labelled struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Files, directories, or - for standard input; .gz and .zst are unpacked."`
	source.Flags
}

func (l *Labelled) config(stdio cli.IO, flip source.FlipFlags) source.Config {
	cfg := l.Flags.Config(l.Sources, flip)
	cfg.Stdin = stdio.In
	return cfg
}

// Stream holds the flags of a labelled stream and of the model that learns it.
type Stream struct {
	Labelled
	settings.ResearchModel
}

// run reads the stream as a set, measures and prints. What the model refuses is reported on
// standard error.
func (s *Stream) run(ctx context.Context, stdio cli.IO, out Output,
	measure func(context.Context, *population, *phases) (measurement, error)) error {
	rejections := report.Rejections{W: stdio.Err}
	defer rejections.Close()
	set, err := newSet("stream", s.config(stdio, source.FlipFlags{}), s.ResearchModel.Config, rejections.Add)
	if err != nil {
		return err
	}
	m, err := measure(ctx, set, newPhases(stdio.Err))
	if err != nil {
		return err
	}
	return out.show(stdio.Out, m)
}

// A limit is the least value of a flag.
type limit struct {
	flag         string
	value, least int
}

// atLeast returns wrong usage if a value is below its limit.
func atLeast(limits ...limit) error {
	for _, l := range limits {
		if l.value < l.least {
			return cli.Usagef("%s: %d is below %d", l.flag, l.value, l.least)
		}
	}
	return nil
}

// commandLine is the command that this process runs.
func commandLine() string {
	words := append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$*?;&|<>()[]{}~`#!") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// made says which command made a table, and in how long.
func made(command string, took time.Duration) []experiment.Text {
	return experiment.Plain(command, fmt.Sprintf("took %v", took.Round(time.Second)))
}

// eachOf calls f for 0 to n−1, on all cores.
func eachOf(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return f(ctx, i)
		})
	}
	return g.Wait()
}

// each calls f for 0 to n−1, on all cores, and shows how many of total events they have done. f calls
// turn before each event.
func (s *phases) each(ctx context.Context, name string, total, n int, f func(i int, turn func() error) error) error {
	var done atomic.Int64
	stop := s.begin(name, total, &done)
	defer stop()
	return eachOf(ctx, n, func(ctx context.Context, i int) error {
		return f(i, func() error {
			done.Add(1)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return nil
		})
	})
}

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
