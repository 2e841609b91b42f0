// Package now is the page Now of the console: what scorers answer, how right the answers were,
// which alarms are open, and how old the model is.
//
// It follows what scorers and learners do. One [Feed] serves all who look:
//
//	f := now.New(now.Config{Model: "default", NATS: conn, Alarms: log.Open, Store: store, Bounds: bounds})
//	go f.Run(ctx) // somebody waits for it
//	s := f.Look(ctx) // a *Snapshot: shared, and never changed
//
// # Rules
//
//   - A Feed works while somebody looks, and for [Linger] after. Then it asks nobody for
//     anything. The next look goes on where it ended.
//   - Its memory is bounded: an hour of counts for at most 32 doors, the identities of 200,000
//     messages, 24 bytes of each of 250,000 answers, the newest 10,000 answers that got a label, and a week of
//     expected errors by the hour.
//   - It decodes at most [LinesPerSecond] lines of the journal in a second. Beyond, it counts
//     all lines and decodes one of several, whose counts it scales. The snapshot says so.
//   - NATS, Redis and Kafka may be away. The part of the snapshot that depends on one says
//     so in a sentence, and recovers. Until one has answered, its part says that.
package now

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
	"hamlet/stream"
)

// Bounds of a Feed.
const (
	Linger         = 30 * time.Second // of work after the last look
	LinesPerSecond = 1000             // that are decoded, once the past has been read
	Remembered     = 200_000          // lines of the past that are read, and messages that are known

	pollTimeout = 5 * time.Second
	firstMargin = time.Second // that a look waits longer than the first snapshot
)

// A pace says how often what is asked.
type pace struct {
	linger  time.Duration
	first   time.Duration // that the first snapshot waits for answers
	poll    time.Duration // Redis, alerts, and a new snapshot
	kafka   time.Duration // each time over a new connection
	retry   time.Duration // the journal, after a failure
	missing time.Duration // the journal, while no stream holds one
}

var usual = pace{linger: Linger, first: 2 * time.Second, poll: 2 * time.Second, kafka: 5 * time.Second,
	retry: 2 * time.Second, missing: 5 * time.Second}

// A Config says what to follow. What is nil is not followed, and the snapshot says so.
type Config struct {
	Model  string
	NATS   *natsgo.Conn                                 // the journal
	Alarms func(context.Context) (Alarms, error)        // the open incidents, which NATS keeps: package incidents
	Store  state.Store                                  // the model
	Bounds func(context.Context) (stream.Bounds, error) // of the log
	Log    *slog.Logger                                 // nil: silent
}

// A Feed makes snapshots while somebody looks.
type Feed struct {
	cfg    Config
	pace   pace
	latest atomic.Pointer[Snapshot] // of this period of work; nil before its first
	wake   chan struct{}            // a look came; holds one

	mu     sync.Mutex
	looked time.Time     // when somebody looked last
	fresh  chan struct{} // closed when this period of work has made its first whole snapshot

	journal *journal
	alarms  polled[Alarms]
	learnt  polled[Learnt]
	log     polled[stream.Bounds]
}

// New returns a Feed. Run makes it work.
func New(cfg Config) *Feed {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	f := &Feed{
		cfg: cfg, pace: usual, wake: make(chan struct{}, 1), fresh: make(chan struct{}),
		journal: newJournal(cfg.Model),
	}
	f.alarms.last.Unread = true
	f.alarms.silent, f.learnt.silent, f.log.silent = natsSilent, noRedis, noKafka
	if cfg.Alarms != nil {
		f.alarms.ask = func(ctx context.Context, _ Alarms) (Alarms, error) { return cfg.Alarms(ctx) }
		f.alarms.say = f.alarmsAway
	}
	if cfg.Store != nil {
		f.learnt.silent, f.learnt.ask = redisSilent, (&versions{store: cfg.Store}).ask
	}
	if cfg.Bounds != nil {
		f.log.silent = kafkaSilent
		f.log.ask = func(ctx context.Context, _ stream.Bounds) (stream.Bounds, error) {
			bounds, err := cfg.Bounds(ctx)
			if err != nil {
				err = fmt.Errorf("the length of the log is not known: %w", err)
			}
			return bounds, err
		}
	}
	f.rest()
	return f
}

func (f *Feed) alarmsAway(err error) string {
	if !f.cfg.NATS.IsConnected() {
		return natsAway
	}
	return page.Sentence(err)
}

// Look returns the newest snapshot. Where nobody has looked for a while, it waits for a new
// one, for at most three seconds. What has not answered after two seconds says so there.
func (f *Feed) Look(ctx context.Context) *Snapshot {
	f.mu.Lock()
	f.looked = time.Now()
	fresh, s := f.fresh, f.latest.Load()
	select {
	case f.wake <- struct{}{}:
	default:
	}
	f.mu.Unlock()
	if s != nil {
		return s
	}
	wait := time.NewTimer(f.pace.first + firstMargin)
	defer wait.Stop()
	select {
	case <-fresh:
	case <-wait.C:
	case <-ctx.Done():
	}
	if s := f.latest.Load(); s != nil {
		return s
	}
	return f.snapshot()
}

// Matches returns the labelled answers that Labels are of, and older ones: at most the newest
// 10,000. Look makes the feed read.
func (f *Feed) Matches() []answered.Match {
	f.journal.mu.Lock()
	defer f.journal.mu.Unlock()
	return slices.Clone(f.journal.matches.all)
}

// Run works while somebody looks, until ctx ends. It returns nil.
func (f *Feed) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		}
		f.work(ctx)
		f.rest()
		f.mu.Lock()
		f.latest.Store(nil)
		f.fresh = make(chan struct{}) // who looks now waits for the next period
		if time.Since(f.looked) >= f.pace.linger {
			select {
			case <-f.wake: // by a look of the period that is over
			default:
			}
		}
		f.mu.Unlock()
	}
}

// rest says of all that they have not answered yet. What they said is old when work begins.
func (f *Feed) rest() {
	f.journal.start()
	f.alarms.rest()
	f.learnt.rest()
	f.log.rest()
}

// unwatched reports whether nobody has looked for a while.
func (f *Feed) unwatched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Since(f.looked) >= f.pace.linger
}

// work follows everything until nobody looks any more. Each source is asked by a goroutine of
// its own, so that none waits for one that is away.
func (f *Feed) work(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var all, asked sync.WaitGroup
	defer all.Wait()
	defer stop()
	repeat := func(every time.Duration, ask func(context.Context)) {
		asked.Add(1)
		all.Go(func() {
			first := sync.OnceFunc(asked.Done)
			defer first()
			tick := time.NewTicker(every)
			defer tick.Stop()
			for ctx.Err() == nil {
				attempt, cancel := context.WithTimeout(ctx, pollTimeout)
				ask(attempt)
				cancel()
				first()
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	repeat(f.pace.poll, f.learnt.poll)
	repeat(f.pace.kafka, f.log.poll)
	if f.cfg.NATS != nil {
		repeat(f.pace.poll, f.alarms.poll)
		all.Go(func() { f.journal.run(ctx, f.cfg.NATS, f.pace) })
		asked.Add(1)
		all.Go(func() {
			defer asked.Done()
			f.journal.await(ctx)
		})
	}
	answered := make(chan struct{})
	all.Go(func() {
		asked.Wait()
		close(answered)
	})
	first := time.NewTimer(f.pace.first)
	defer first.Stop()
	select {
	case <-answered:
	case <-first.C:
	case <-ctx.Done():
	}
	f.publish()
	close(f.fresh) // only Run, which calls work, replaces it

	tick := time.NewTicker(f.pace.poll)
	defer tick.Stop()
	for !f.unwatched() {
		select {
		case <-ctx.Done():
			return
		case <-answered: // what was slow at first
			answered = nil
		case <-tick.C:
		}
		f.publish()
	}
}

func (f *Feed) publish() { f.latest.Store(f.snapshot()) }

func (f *Feed) snapshot() *Snapshot {
	s := &Snapshot{At: time.Now(), Model: f.cfg.Model}
	s.Learnt, s.Learnt.Away = f.learnt.get()
	s.Alarms, s.Alarms.Away = f.alarms.get()
	s.Learnt.setLag(f.log.get())
	if f.cfg.NATS == nil {
		s.Journal.Away, s.Labels.Away, s.Alarms.Away = noNATS, noNATS, noNATS
	} else {
		f.journal.show(s)
	}
	return s
}
