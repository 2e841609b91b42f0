package simulate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hamlet/cmd/internal/process/clock"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/learner"
	"hamlet/state"
	"hamlet/state/files"
	"hamlet/stream"
	"hamlet/stream/filelog/disktest"
	"hamlet/stream/questions/questionstest"
)

// A World is a hamlet whose parts break as a plan says.
type World struct {
	plan   Plan
	begin  *Beginning
	healed atomic.Bool // nothing breaks any more
	ctx    context.Context
	end    context.CancelFunc
	all    sync.WaitGroup // processes, clients, incidents

	events, letters, receipts, predictions disk
	vault                                  *vault
	bus                                    questionstest.Memory

	mu         sync.Mutex
	started    time.Time
	lines      []line
	made       []call
	violations []string
	outcome    Outcome              // what is measured meanwhile
	calls      map[string]int       // of each node, port and method
	away       map[string]time.Time // the port answers nobody until then
	refused    time.Time            // alerts are, until then
	processes  map[string]*process
	logs       int // that there have been

	acknowledged map[string]bool // ids of labels that ingest has answered 202 for
	lost         map[string]bool // ids of labels that a medium has lost
	saves        []save
	sums         map[[sha256.Size]byte]bool // of models that were saved
	head         save                       // the newest save of the present history; zero before the first
	alerts       map[string]published
}

// A save is a checkpoint that the store has taken.
type save struct {
	at     time.Time
	by     string
	number int64
	next   int64
	events uint64
	epoch  int64
}

type published struct {
	at    time.Time
	alert stream.Alert
}

// A process is a node as its supervisor sees it.
type process struct {
	node    *node // of the process that runs; nil: none does
	stop    context.CancelFunc
	asked   time.Time     // when it was asked to end in order; zero: it was not
	down    time.Duration // how long it stays down after it has ended
	ended   error         // how the last one ended by itself
	learner *learner.Learner
	ingest  *ingest.HTTP
}

// violate says that something does not hold.
func (w *World) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.tell(violation, text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, text)
	w.outcome.Kinds = append(w.outcome.Kinds, format)
}

func (w *World) isAway(port string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.away[port])
}

// append writes records to a log.
func (w *World) append(d *disk, records []stream.Record) error {
	return d.Append(context.Background(), records...)
}

// saved notes a checkpoint that the store has taken.
func (w *World) saved(by string, number int64, c *state.Checkpoint) {
	now := save{time.Now(), by, number, c.Position.Next, c.Events, c.Epoch}
	w.mu.Lock()
	before := w.head
	w.saves, w.head = append(w.saves, now), now
	w.sums[c.ModelSHA256] = true
	w.mu.Unlock()
	w.tell(by, fmt.Sprintf("saves version %d up to %d in epoch %d", number, now.next, now.epoch))
	if now.next < before.next || now.number < before.number || now.epoch < before.epoch {
		w.violate("the head went back: from version %d up to %d in epoch %d to version %d up to %d in epoch %d",
			before.number, before.next, before.epoch, now.number, now.next, now.epoch)
	}
}

// steppedBack notes that the head may be lower from here on.
func (w *World) steppedBack(by string, to int64) {
	w.tell(by, fmt.Sprintf("steps back to version %d", to))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.head = save{epoch: w.head.epoch}
}

// otherStore notes that the store is not what it was.
func (w *World) otherStore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.head = save{}
}

// keeps is what the store keeps.
var keeps = files.Config{Keep: 5}

// newWorld makes a world from a beginning. dir is for its store.
func newWorld(plan Plan, begin *Beginning, dir string) (*World, error) {
	w := &World{
		plan: plan, begin: begin, started: time.Now(), calls: map[string]int{}, away: map[string]time.Time{},
		processes: map[string]*process{}, acknowledged: map[string]bool{}, lost: map[string]bool{},
		sums: maps.Clone(begin.sums), alerts: map[string]published{},
	}
	if plan.Named {
		w.events.ID = "log-0"
	}
	if plan.Files {
		if err := w.events.open(disktest.New(plan.Seed)); err != nil {
			return nil, err
		}
	}
	if err := w.append(&w.events, begin.records); err != nil {
		return nil, err
	}
	if err := os.CopyFS(filepath.Join(dir, "now"), os.DirFS(begin.store)); err != nil {
		return nil, err
	}
	var err error
	w.vault, err = openVault(dir, keeps)
	w.ctx, w.end = context.WithCancel(clock.WithoutJitter(context.Background()))
	return w, err
}

// supervise runs a process again and again, until the world ends.
func (w *World) supervise(name string, run func(ctx context.Context, n *node, p *process) error) {
	p := new(process)
	w.mu.Lock()
	w.processes[name] = p
	w.mu.Unlock()
	w.all.Go(func() {
		for w.ctx.Err() == nil {
			ctx, stop := context.WithCancel(w.ctx)
			n := &node{name: name, world: w, until: map[string]time.Time{}}
			w.mu.Lock()
			p.node, p.stop, p.down, p.asked = n, stop, time.Second, time.Time{}
			w.mu.Unlock()
			err := run(ctx, n, p)
			asked := ctx.Err() != nil
			stop()
			w.mu.Lock()
			p.node, p.learner, p.ingest = nil, nil, nil
			if !asked {
				p.ended = err
			} else if !p.asked.IsZero() {
				w.outcome.Stop = max(w.outcome.Stop, time.Since(p.asked))
			}
			down := p.down
			w.mu.Unlock()
			if !asked || err != nil && !n.dead.Load() {
				w.tell(name, fmt.Sprintf("has ended: %v", err))
			}
			_ = sleep(w.ctx, down)
		}
	})
}

// endProcess ends a process in order, or without a word.
func (w *World) endProcess(name string, down time.Duration, dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.processes[name]
	if p == nil || p.node == nil {
		return
	}
	p.down = down
	if dead {
		p.node.dead.Store(true)
	} else if p.asked.IsZero() {
		p.asked = time.Now()
	}
	p.stop()
}

// happen does an incident.
func (w *World) happen(i Incident) error {
	w.tell("==", i.what())
	until := time.Now().Add(i.For)
	switch i.Kind {
	case Kill, Stop:
		w.endProcess(i.Node, i.For, i.Kind == Kill)
	case CutOff, Clock:
		w.mu.Lock()
		n := w.processes[i.Node].node
		w.mu.Unlock()
		if n == nil {
			return nil
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if i.Kind == Clock {
			n.clock = i.For
		} else {
			n.until[i.Port] = until
		}
	case Away:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.away[i.Port] = until
	case Refused:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refused = until
	case Full:
		w.events.full.Store(until.UnixNano())
		if f := w.events.files.Load(); f != nil {
			w.events.full.Store(0)
			f.room(int(random(w.plan.Seed, "room").Int32N(300)))
			w.all.Go(func() { _ = sleep(w.ctx, i.For); f.room(-1) })
		}
	case Power:
		return w.power(i.N)
	case CutLog, Replace:
		return w.loseEnd(i)
	case SetBack:
		w.otherStore()
		return w.vault.setBack(time.Now().Add(-i.For))
	case Empty:
		w.otherStore()
		return w.vault.replace("")
	case Flip:
		return w.vault.flip(w.plan.Seed)
	case Pin:
		w.all.Go(func() { w.pin(i.For) })
	case BadRecords:
		for k := range i.N {
			bad := stream.Record{Value: fmt.Appendf(nil, "no event %v %d", i.At, k)}
			if err := w.append(&w.events, []stream.Record{bad}); err != nil {
				return err
			}
		}
	}
	return nil
}

// loseEnd takes the last records of the log away.
func (w *World) loseEnd(i Incident) error {
	records, err := all(&w.events)
	if err != nil {
		return err
	}
	stay := max(len(w.begin.records), len(records)-i.N)
	for _, r := range records[stay:] {
		if e, err := stream.DecodeRecord(r.Headers, r.Value); err == nil {
			w.mu.Lock()
			w.lost[e.ID] = true
			w.mu.Unlock()
		}
	}
	if i.Kind == CutLog && w.plan.Named {
		w.killAll()
	}
	if i.Kind == CutLog {
		w.events.Cut(int64(stay))
		return nil
	}
	if w.plan.Files {
		return w.events.replace(disktest.New(w.plan.Seed+uint64(i.At)), records[:stay])
	}
	id := ""
	if w.plan.Named {
		w.logs++
		id = fmt.Sprint("log-", w.logs)
	}
	w.events.Replace(id, records[:stay]...)
	return nil
}

// killAll kills all processes, as where their machine loses power.
func (w *World) killAll() {
	for _, name := range slices.Concat(learners, scorers, ingests) {
		w.endProcess(name, time.Second, true)
	}
}

// power takes the power of the machine with the log, after some more operations of its disk, in the midst
// of a write. What nobody has synced may be lost.
func (w *World) power(operations int) error {
	f := w.events.files.Load()
	f.offAfter(operations)
	for deadline := time.Now().Add(2 * time.Second); !f.isOff() && time.Now().Before(deadline); {
		_ = sleep(w.ctx, 10*time.Millisecond)
	}
	f.offAfter(0)
	w.killAll()
	_ = f.Close() // its disk is off
	return w.events.open(f.disk.Cut())
}

// all returns the records of a log.
func all(d *disk) (records []stream.Record, err error) {
	for {
		more, end, err := d.Read(context.Background(), int64(len(records)), stream.Limit{}, 0)
		records = append(records, more...)
		if err != nil || int64(len(records)) >= end {
			return records, err
		}
	}
}

// flip changes a bit of the newest chunk.
func (v *vault) flip(seed uint64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var newest string
	var at time.Time
	err := filepath.WalkDir(v.current(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > 0 && strings.Contains(path, "chunk") && !info.ModTime().Before(at) {
			newest, at = path, info.ModTime()
		}
		return err
	})
	if err != nil || newest == "" {
		return err
	}
	b, err := os.ReadFile(newest)
	if err != nil {
		return err
	}
	r := random(seed, newest[len(newest)-8:])
	b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	return errors.Join(os.Chmod(newest, 0o600), os.WriteFile(newest, b, 0o600))
}

// pin is an operator who pins the oldest version for a time.
func (w *World) pin(d time.Duration) {
	s := w.shelf("operator")
	versions, err := s.Versions(w.ctx)
	if err != nil || len(versions) == 0 {
		return
	}
	oldest := versions[len(versions)-1].Version
	err = s.Pin(w.ctx, oldest)
	w.tell("operator", fmt.Sprintf("pins version %d: %v", oldest, err))
	_ = sleep(w.ctx, d)
	for range 100 {
		if err := s.Unpin(w.ctx); err == nil || errors.Is(err, state.ErrNone) || w.ctx.Err() != nil {
			return
		}
		_ = sleep(w.ctx, 100*time.Millisecond)
	}
}

// newNode returns a node that nobody supervises.
func (w *World) newNode(name string) *node {
	return &node{name: name, world: w, until: map[string]time.Time{}}
}

func (w *World) shelf(name string) *shelf {
	return &shelf{w.newNode(name), w.vault, stream.DefaultName}
}

// incidents lets the plan's incidents happen, and then heals the world.
func (w *World) incidents() error {
	setsBack := slices.ContainsFunc(w.plan.Incidents, func(i Incident) bool { return i.Kind == SetBack })
	for at := time.Duration(0); at < lasting; at += 2 * time.Second {
		for _, i := range w.plan.Incidents {
			if i.At < at || i.At >= at+2*time.Second {
				continue
			}
			_ = sleep(w.ctx, time.Until(w.started.Add(i.At)))
			if err := w.happen(i); err != nil {
				return fmt.Errorf("%s: %w", i, err)
			}
		}
		_ = sleep(w.ctx, time.Until(w.started.Add(at+2*time.Second)))
		if setsBack {
			if err := w.vault.keep(); err != nil {
				return err
			}
		}
	}
	w.heal()
	return nil
}

// heal ends all that is wrong.
func (w *World) heal() {
	w.tell("==", "all is healed")
	w.healed.Store(true)
	w.events.full.Store(0)
	if f := w.events.files.Load(); f != nil {
		f.room(-1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.away)
	w.refused = time.Time{}
	for _, p := range w.processes {
		if n := p.node; n != nil {
			n.mu.Lock()
			clear(n.until)
			n.mu.Unlock()
		}
	}
}

// logger returns what a process logs, from Warn on, as lines of the story.
func (w *World) logger(n *node) *slog.Logger {
	timeless := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "stack" {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(teller{n}, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: timeless}))
}

type teller struct{ *node }

func (t teller) Write(b []byte) (int, error) {
	if !t.dead.Load() {
		t.world.tell(t.name, strings.TrimSpace(string(b)))
	}
	return len(b), nil
}
