// Command endurance sends a stream of vectors of Spambase's shape, as many as a log gets in
// years, through one model of the default configuration, and measures what could wear out:
// max|VΛ−I| of each Bayesian logistic regression, the heap, and whether a model that is
// restored from a checkpoint goes on as the one that was saved.
//
//	go build -o bin/ ./cmd/internal/lab/endurance
//	bin/endurance --events 10000000 --folder run
//
// It checks after every million events. A line of checks.jsonl in the folder has the figures,
// and checkpoint in it the model: a run that was stopped, by a signal or by --for, goes on from
// there. At the end it prints the position, the SHA-256 of the model and that of all answers.
// Two processors print the same line. To compare only the last events on the other one, copy
// the folder before them:
//
//	bin/endurance --events 9000000 --folder run && cp -r run run.arm64
//	bin/endurance --events 10000000 --folder run
//	qemu-aarch64 bin/endurance.arm64 --events 10000000 --folder run.arm64
//
// It depends on the models alone, so a build for another processor compiles no client library.
// MEASURED.md has what was seen.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"hamlet/algos/model"
)

// errTime ends a run that --for stopped. It goes on when it is started again.
var errTime = errors.New("the time is over: start it again to go on")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, errTime) {
		fmt.Fprintln(os.Stderr, "endurance:", err)
		os.Exit(3)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "endurance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("endurance", flag.ContinueOnError)
	flags.SetOutput(progress)
	var cfg Config
	flags.Uint64Var(&cfg.Events, "events", 10_000, "how many events the stream has")
	flags.Uint64Var(&cfg.Every, "every", 1_000_000, "events from a check to the next")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "of the stream")
	folder := flags.String("folder", "", "where checkpoint and checks.jsonl are; a checkpoint there is gone on from")
	limit := flags.Duration("for", 0, "stop after so long, with status 3; 0: at the end")
	window := flags.Int("duplicate-window", 0, "the model's, 0: its default")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *folder == "" || flags.NArg() > 0 || cfg.Every == 0 {
		return errors.New("usage: endurance --events N --folder DIR")
	}
	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, *limit, errTime)
		defer cancel()
	}
	cfg.Model = model.Config{Dense: names(), DuplicateWindow: *window}
	r, err := open(cfg, *folder)
	if err != nil {
		return err
	}
	start := r.state.Position
	r.report = func(c *Check) error {
		c.PerSecond = float64(c.Position-max(start, (c.Position-1)/cfg.Every*cfg.Every)) / c.Seconds
		fmt.Fprintf(progress, "%11d events, %6.0f a second, log loss %.4f, heap %.1f MiB, RSS %.1f MiB, %d alerts, "+
			"max|VΛ−I|%s\n", c.Position, c.PerSecond, c.LogLoss, mib(c.Heap), mib(c.RSS), c.Alerts, worst(c))
		return appendCheck(*folder, c)
	}
	begun := time.Now()
	if err := r.Run(ctx); err != nil {
		return err
	}
	s := r.now()
	fmt.Fprintf(progress, "%d events in %.0f s: %d copies, %d corrections, %d withdrawals, %d refused, %d alerts, "+
		"%d rebuilds of which %d failed\n", s.Position-start, time.Since(begun).Seconds(), s.Duplicates, s.Corrections,
		s.Withdrawals, s.Refused, s.Alerts, s.Rebuilds, s.RebuildsFailed)
	image, err := r.model.AppendBinary(nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d %x %s\n", s.Position, sha256.Sum256(image), s.Chain)
	return nil
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// worst lists the larger of the check's two figures for each regression.
func worst(c *Check) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.After)) {
		fmt.Fprintf(&b, " %s %.1e", name, max(c.Before[name], c.After[name]))
	}
	return b.String()
}
