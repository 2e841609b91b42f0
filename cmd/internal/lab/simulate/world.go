package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	others                                 disk // predictions of the second model
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
	fullStore  [2]time.Time         // the store has no room until then: for anything, for checkpoints
	processes  map[string]*process
	logs       int // that there have been

	acknowledged map[string]bool // ids of labels that ingest has answered 202 for
	lost         map[string]bool // ids of labels that a medium has lost
	saves        []save
	sums         map[[sha256.Size]byte]bool // of models that were saved
	heads        map[string]save            // by model: the newest save of the present history
	alerts       map[string]published

	commands    atomic.Int32         // operators that are at work
	base        *Beginning           // what the models began with; begin, until a log was lost
	held        map[string]int       // processes that do not start
	losses      int                  // of the store
	bases       int                  // that there have been
	backups     int                  // that were begun
	restoring   chan struct{}        // holds whoever restores one
	shadowed    bool                 // there is a second model
	heard       bool                 // it is no shadow: in a world that another one is compared with
	fromVersion bool                 // it began as a version of the first one
	anew        bool                 // its learners began again, with an empty model, after its log was lost
	withdrawals []withdrawal         // that were written
	pinned      map[string]pin       // by model
	mayAnswer   map[string]bool      // models that were promoted, and the first one
	promotion   string               // that the store took last; "": the store was lost since
	first       map[string]time.Time // when a model was saved first, by SHA-256
	hears       map[string]bool      // learners of the second model that know that it is promoted
	heardFrom   uint64               // of its events: the alerts of all later ones are to be out; 0: of none

	rotting sync.Mutex // of rotten
	rotten  []rotten   // records
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
func (w *World) saved(by, model string, number int64, c *state.Checkpoint) {
	now := save{time.Now(), by, number, c.Position.Next, c.Events, c.Epoch}
	w.mu.Lock()
	before := w.heads[model]
	w.heads[model] = now
	if model == stream.DefaultName {
		w.saves = append(w.saves, now)
	}
	w.sums[c.ModelSHA256] = true
	if sum := hex.EncodeToString(c.ModelSHA256[:]); w.first[sum].IsZero() {
		w.first[sum] = now.at
	}
	w.mu.Unlock()
	w.tell(by, fmt.Sprintf("saves version %d of %s up to %d in epoch %d", number, model, now.next, now.epoch))
	if now.next < before.next || now.number < before.number || now.epoch < before.epoch {
		w.violate("the head went back: from version %d up to %d in epoch %d to version %d up to %d in epoch %d",
			before.number, before.next, before.epoch, now.number, now.next, now.epoch)
	}
}

// steppedBack notes that the head may be lower from here on.
func (w *World) steppedBack(by, model string, to int64) {
	w.tell(by, fmt.Sprintf("steps back to version %d", to))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heads[model] = save{epoch: w.heads[model].epoch}
}

// otherStore notes that the store is not what it was.
func (w *World) otherStore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losses++
	clear(w.heads)
	clear(w.pinned)
	w.promotion = ""
}

// keeps is what the store keeps.
var keeps = files.Config{Keep: 5}

// blank returns a world without a log and a store.
func blank(plan Plan, begin *Beginning) *World {
	return &World{
		plan: plan, begin: begin, started: time.Now(), calls: map[string]int{}, away: map[string]time.Time{},
		processes: map[string]*process{}, acknowledged: map[string]bool{}, lost: map[string]bool{},
		sums: maps.Clone(begin.sums), alerts: map[string]published{}, heads: map[string]save{},
		base: begin, held: map[string]int{}, pinned: map[string]pin{}, first: map[string]time.Time{}, hears: map[string]bool{},
		restoring: make(chan struct{}, 1),
		mayAnswer: map[string]bool{stream.DefaultName: true}, promotion: stream.DefaultName,
	}
}

// newWorld makes a world from a beginning. dir is for its store.
func newWorld(plan Plan, begin *Beginning, dir string) (*World, error) {
	w := blank(plan, begin)
	for sum := range w.sums {
		w.first[hex.EncodeToString(sum[:])] = w.started
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
	if err := copyStore(filepath.Join(dir, "now"), begin.store); err != nil {
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
			for w.isHeld(name) && w.ctx.Err() == nil {
				_ = sleep(w.ctx, 100*time.Millisecond)
			}
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
		if w.runs(i.Node) {
			w.effect(i.Kind)
		}
		w.endProcess(i.Node, i.For, i.Kind == Kill)
	case CutOff, Clock, Misread, Damaged:
		w.mu.Lock()
		var n *node
		if p := w.processes[i.Node]; p != nil {
			n = p.node
		}
		w.mu.Unlock()
		if n == nil {
			return nil
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		switch i.Kind {
		case Clock:
			n.clock = i.For
		case CutOff:
			n.until[i.Port] = until
		default:
			n.until[string(i.Kind)] = until
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
	case Rot:
		w.commands.Add(1)
		w.all.Go(func() { defer w.commands.Add(-1); w.rots(i) })
	case SetBack:
		w.otherStore()
		w.effect(SetBack)
		return w.vault.setBack(time.Now().Add(-i.For))
	case Empty:
		w.otherStore()
		w.effect(Empty)
		return w.vault.replace("")
	case Flip:
		if flipped, err := w.vault.flip(w.ctx, w.plan.Seed); err != nil || !flipped {
			return err
		}
		w.effect(Flip)
	case Older:
		w.mu.Lock()
		w.away[portStore] = until
		w.mu.Unlock()
		w.commands.Add(1)
		w.all.Go(func() {
			defer w.commands.Add(-1)
			_ = sleep(w.ctx, i.For)
			w.otherStore()
			w.effect(Older)
			if err := w.vault.setBack(time.Now().Add(-2 * i.For)); err != nil {
				w.violate("%v", err)
			}
		})
	case StoreFull:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fullStore[i.N] = until
	case BadRecords:
		for k := range i.N {
			bad := stream.Record{Value: fmt.Appendf(nil, "no event %v %d", i.At, k)}
			switch err := w.append(&w.events, []stream.Record{bad}); {
			case errors.Is(err, stream.ErrFull): // whoever writes it is refused like all others
				return nil
			case err != nil:
				return err
			}
		}
		w.effect(BadRecords)
	default:
		w.operates(i)
	}
	return nil
}

// effect is did for what may have many: it notes the first one.
func (w *World) effect(kind Kind) {
	w.mu.Lock()
	known := slices.Contains(w.outcome.Did, kind)
	w.mu.Unlock()
	if !known {
		w.did(kind)
	}
}

// did notes that an incident has had its effect.
func (w *World) did(kind Kind) {
	w.tell("**", string(kind))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome.Did = append(w.outcome.Did, kind)
}

// loseEnd takes the last records of the log away.
func (w *World) loseEnd(i Incident) error {
	records, err := all(&w.events)
	if err != nil {
		return err
	}
	stay := min(len(records), max(len(w.base.records), len(records)-i.N))
	if stay < len(records) {
		w.effect(i.Kind)
	}
	w.lose(records[stay:])
	if i.Kind == CutLog && w.plan.Named {
		w.killAll()
	}
	if i.Kind == CutLog {
		w.events.Cut(int64(stay))
		return nil
	}
	return w.replaceLog(i, records[:stay])
}

// replaceLog puts another log in the place of the log.
func (w *World) replaceLog(i Incident, records []stream.Record) error {
	if w.plan.Files {
		return w.events.replace(disktest.New(w.plan.Seed+uint64(i.At)), records)
	}
	id := ""
	if w.plan.Named {
		w.logs++
		id = fmt.Sprint("log-", w.logs)
	}
	w.events.Replace(id, records...)
	return nil
}

// killAll kills all processes, as where their machine loses power.
func (w *World) killAll() {
	for _, name := range slices.Concat(learners, scorers, ingests, shadows) {
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
	w.effect(Power)
	return w.events.open(f.disk.Cut())
}

// all returns the records of a log.
func all(d *disk) (records []stream.Record, err error) {
	for next := int64(0); ; {
		more, end, err := d.Read(context.Background(), next, stream.Limit{}, 0)
		if records = append(records, more...); len(more) > 0 {
			next = more[len(more)-1].Offset + 1
		}
		if err != nil || len(more) == 0 || next >= end {
			return records, err
		}
	}
}

// flip changes a bit of the newest chunk, and reports whether it did: where a model has one version only, nobody
// could go on.
func (v *vault) flip(ctx context.Context, seed uint64) (flipped bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range []string{stream.DefaultName, candidate} {
		store, err := v.dir.Store(name)
		if err != nil {
			return false, err
		}
		versions, err := store.Versions(ctx)
		whole := slices.DeleteFunc(versions, func(v state.VersionInfo) bool { return v.Lost })
		if err == nil && len(whole) == 1 {
			return false, nil
		}
	}
	flipped, _, err = v.flipNewest(seed)
	return flipped, err
}

// flipNewest is flip for who holds mu, also where a model has one version. undo takes it back.
func (v *vault) flipNewest(seed uint64) (flipped bool, undo func() error, err error) {
	undo = func() error { return nil }
	var newest string
	var at time.Time
	err = filepath.WalkDir(v.current(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > 0 && isChunk(path) && !info.ModTime().Before(at) {
			newest, at = path, info.ModTime()
		}
		return err
	})
	if err != nil || newest == "" {
		return false, undo, err
	}
	b, err := os.ReadFile(newest)
	if err != nil {
		return false, undo, err
	}
	whole := slices.Clone(b)
	undo = func() error { return rewrite(newest, whole) }
	r := random(seed, newest[len(newest)-8:])
	b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	err = rewrite(newest, b)
	return err == nil, undo, err
}

// newNode returns a node that nobody supervises.
func (w *World) newNode(name string) *node {
	return &node{name: name, world: w, until: map[string]time.Time{}}
}

// incidents lets the plan's incidents happen, and then heals the world.
func (w *World) incidents() error {
	setsBack := w.plan.has(SetBack) || w.plan.has(Older) || w.plan.has(Restore)
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
	w.refused, w.fullStore = time.Time{}, [2]time.Time{}
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
