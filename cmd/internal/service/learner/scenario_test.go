package learner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"hamlet/algos/algotest/plant"
	"hamlet/algos/model"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/servertest"
)

// TestScenarios runs the stories of testdata/scenarios. Each file tells one: blocks of commands, and
// below each what can be seen after it. The learners are real ones, on a log in memory and a Redis in
// the process. Time is synctest's, so that a story of minutes takes no time. [scenario.do] has the
// commands. After a change on purpose
//
//	go test ./cmd/internal/service/learner -run Scenarios -rewrite
//
// writes what is seen into the files.
func TestScenarios(t *testing.T) {
	vectors, _, _ := labelled(t, alarming, 1850, func(i int, spam bool, u float64) bool {
		return spam != (i >= 1800 && u < .1)
	})
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		r := newRig(t)
		outside, done := make(chan func()), make(chan struct{})
		go func() {
			for do := range outside {
				do()
				done <- struct{}{}
			}
		}()
		defer close(outside)
		synctest.Test(t, func(t *testing.T) {
			s := &scenario{rig: r, outside: outside, done: done, vectors: vectors}
			s.t, s.store = t, s.newStore(t)
			datadriven.RunTest(t, path, s.run)
		})
	})
}

// alarming is a model of vectors and texts without ensembles.
var alarming = model.Config{TableBits: 8, DuplicateWindow: 5000, Dense: noisy().Dense}

// A scenario is a log and a store, and the learners on them.
type scenario struct {
	*rig
	outside chan<- func() // called outside the bubble, where servers run
	done    <-chan struct{}
	actors  []*actor // in the order of their first start
	log     []stream.Record
	vectors []stream.Record // from 1,800 on a tenth of the labels is wrong, which raises an alarm
	given   int             // records that were made for the log, also of one that was lost
	poison  []string        // IDs of the events that make this program panic
	older   func() error

	mu       sync.Mutex
	alerting error    // why alerts are not published; nil: they are
	alerts   []string // that are published
}

// An actor is a learner of a scenario. A name that is started again is another process.
type actor struct {
	*running
	name   string
	store  *reached
	log    *cuttable
	said   servertest.Buffer
	labels heard
	seen   atomic.Int32 // records that were observed
	lost   atomic.Bool  // what it publishes is lost
	told   bool         // that it ended
}

// run runs the commands of a block and returns what can be seen then: lines that the learners have
// logged from Warn on, who has ended, and what show shows.
func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	first := []string{d.Cmd}
	for i := range d.CmdArgs {
		first = append(first, d.CmdArgs[i].String())
	}
	for line := range strings.Lines(strings.Join(first, " ") + "\n" + d.Input) {
		if err := s.do(strings.Fields(line)); err != nil {
			d.Fatalf(t, "%s: %v", strings.TrimSpace(line), err)
		}
		synctest.Wait()
	}
	var b strings.Builder
	for _, a := range s.actors {
		for line := range strings.Lines(a.said.String()) {
			// show counts dead letters. How many stacks are logged depends on the sizes of reads.
			if !strings.Contains(line, `msg="dead letter"`) && !strings.Contains(line, "report it with this stack") {
				fmt.Fprintf(&b, "%s: %s", a.name, line)
			}
		}
		a.said.Reset()
		if a.hasEnded() && !a.told {
			a.told = true
			how := "in order"
			if err := a.stop(); err != nil {
				how = err.Error()
			}
			fmt.Fprintf(&b, "%s has ended: %s\n", a.name, how)
		}
	}
	s.show(&b)
	return strings.ReplaceAll(b.String(), s.options.Addr, "ADDR")
}

// do runs a command:
//
//	log append N KIND    texts, mails, vectors, letters (no events), or poison (they make the program panic)
//	log down, up         it does not answer; again
//	log cut N            it ends at offset N: what followed is lost
//	log replace N M KIND its first N records stay, and M others follow
//	log retain N         it begins at offset N: retention took what was before
//	redis down, up, forgets, remembers, goes-back (to what it remembers), rots (no chunk is whole)
//	alerts fail, refuse, work
//	operator saves       another model in place of the saved one
//	operator seizes      the lease, and does nothing with it
//	start A, stop A      a learner; in order
//	kill A               nothing of it reaches anybody any more
//	cut A from X         X is log, redis, or outputs: Redis, dead letters and alerts
//	join A to X          again
//	wait DURATION
func (s *scenario) do(words []string) error {
	cmd, args := words[0], append(words[1:], "", "", "") // what is missing is ""
	switch cmd {
	case "log":
		return s.changeLog(args[0], args[1:])
	case "redis":
		return s.changeRedis(args[0])
	case "alerts":
		modes := map[string]error{
			"work": nil, "fail": context.DeadlineExceeded, "refuse": fmt.Errorf("%w: no rights", stream.ErrAlerts),
		}
		mode, known := modes[args[0]]
		if !known {
			return errors.New("no such command")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.alerting = mode
		return nil
	case "operator":
		switch args[0] {
		case "saves":
			s.saveOther()
			return nil
		case "seizes":
			_, err := s.store.Seize(s.t.Context(), "operator")
			return err
		}
	case "start":
		return s.start(args[0])
	case "wait":
		d, err := time.ParseDuration(args[0])
		time.Sleep(d)
		return err
	}
	i := slices.IndexFunc(s.actors, func(a *actor) bool { return a.name == args[0] })
	if i < 0 {
		return errors.New("no such command, or no such learner")
	}
	a, cut := s.actors[i], cmd == "cut"
	switch {
	case cmd == "stop":
		_ = a.stop() // run tells how it ended
	case cmd == "kill":
		a.store.fail(errDead)
		a.log.off.Store(true)
		a.lost.Store(true)
		_ = a.stop()
		a.told = true
		a.said.Reset()
	case !cut && cmd != "join":
		return errors.New("no such command")
	case args[2] == "log":
		a.log.off.Store(cut)
	case args[2] == "redis", args[2] == "outputs":
		a.lost.Store(cut && args[2] == "outputs")
		if a.store.fail(nil); cut {
			a.store.fail(errCut)
		}
	default:
		return errors.New("from what?")
	}
	return nil
}

func (s *scenario) changeLog(verb string, args []string) error {
	if verb == "down" || verb == "up" {
		s.events.Fail(map[string]error{"down": stream.ErrAway}[verb])
		return nil
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	switch verb {
	case "append":
		more, err := s.records(args[0], args[1])
		if err != nil {
			return err
		}
		s.log = append(s.log, more...)
		s.produce(more...)
	case "cut":
		s.log = s.log[:n]
		s.events.Cut(int64(n))
	case "replace":
		others, err := s.records(args[1], args[2])
		if err != nil {
			return err
		}
		s.log = slices.Concat(s.log[:n], others)
		s.events.Replace("", s.log...)
	case "retain":
		s.events.Retain(int64(n))
	default:
		return errors.New("no such command")
	}
	return nil
}

// records returns records that the log has never had.
func (s *scenario) records(number, kind string) (records []stream.Record, err error) {
	n, err := strconv.Atoi(number)
	for i := s.given; i < s.given+n; i++ {
		switch kind {
		case "texts":
			records = append(records, textRecord(i, i%3 == 0, fmt.Sprintf("winner%d lunch%d word%d", i%3, i%5, i)))
		case "vectors":
			records = append(records, s.vectors[i])
		case "mails":
			records = append(records, mails(s.t, i, 1)...)
		case "letters":
			records = append(records, letter(i))
		case "poison":
			s.poison = append(s.poison, fmt.Sprint("e", i))
			plant.Learning(s.t, s.poison...)
			records = append(records, textRecord(i, true, "winner"))
		default:
			return nil, fmt.Errorf("%s: no such kind of record", kind)
		}
	}
	s.given += n
	return records, err
}

func (s *scenario) changeRedis(verb string) (err error) {
	switch verb {
	case "down":
		s.beyond(func() { err = s.redis.Close() })
	case "up":
		s.beyond(func() { err = s.redis.Restart() })
	case "forgets":
		s.forget()
	case "rots":
		var chunks []string
		if chunks, err = s.client().Keys(s.t.Context(), key("chunk:*")).Result(); err != nil {
			return err
		}
		for _, chunk := range chunks {
			err = errors.Join(err, s.client().SetRange(s.t.Context(), chunk, 0, "rot").Err())
		}
	case "remembers":
		s.older = s.redis.Remember()
	case "goes-back":
		s.forget()
		err = s.older()
	default:
		err = errors.New("no such command")
	}
	return err
}

// beyond calls do outside the bubble.
func (s *scenario) beyond(do func()) {
	s.outside <- do
	<-s.done
}

func (s *scenario) newStore(t *testing.T) *redis.Store {
	t.Helper()
	store, err := redis.New(redis.Config{Addr: s.options.Addr, Model: "default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func (a *actor) hasEnded() bool {
	select {
	case <-a.ended:
		return true
	default:
		return false
	}
}

// config is the rig's, of a model that learns vectors too.
func (s *scenario) config() Config {
	cfg := s.rig.config()
	cfg.Model = alarming
	return cfg
}

// start starts a learner. No two of them do anything at the same moment: each starts some
// milliseconds after the ones before.
func (s *scenario) start(name string) error {
	time.Sleep(11 * time.Millisecond)
	a := &actor{name: name, store: &reached{Store: s.newStore(s.t)}, log: &cuttable{Log: s.events}}
	cfg := s.config()
	cfg.Writer, cfg.Store, cfg.Answered, cfg.SaveEvery = name, a.store, &a.labels, 3*time.Second
	cfg.Observe = func(Applied) { a.seen.Add(1) }
	cfg.Follow.Log, cfg.Follow.PollInterval = a.log, 0
	cfg.Log = slog.New(slog.NewTextHandler(&a.said, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: plainly}))
	cfg.Letters = lettersFunc(func(ctx context.Context, records ...stream.Record) error {
		if a.lost.Load() {
			return nil
		}
		return s.dead.Append(ctx, records...)
	})
	cfg.Alerts = publishFunc(func(ctx context.Context, alerts ...stream.Alert) error { return s.publish(ctx, a, alerts) })
	if i := slices.IndexFunc(s.actors, func(a *actor) bool { return a.name == name }); i < 0 {
		s.actors = append(s.actors, a)
	} else if s.actors[i].hasEnded() {
		s.actors[i] = a
	} else {
		return fmt.Errorf("%s runs", name)
	}
	a.running = s.rig.run(cfg)
	return nil
}

// plainly leaves out what differs from run to run, or is the same in all lines.
func plainly(_ []string, attr slog.Attr) slog.Attr {
	if slices.Contains([]string{"time", "model", "error"}, attr.Key) {
		return slog.Attr{}
	}
	return attr
}

// publish is a NATS that stores an alert once. One that is down answers nothing.
func (s *scenario) publish(ctx context.Context, a *actor, alerts []stream.Alert) error {
	if a.lost.Load() {
		return errDead
	}
	s.mu.Lock()
	err := s.alerting
	for i := range alerts {
		told := fmt.Sprintf("%s %s %s", alerts[i].MessageID(), alerts[i].State, alerts[i].Kind)
		if err == nil && !slices.Contains(s.alerts, told) {
			s.alerts = append(s.alerts, told)
		}
	}
	s.mu.Unlock()
	if errors.Is(err, context.DeadlineExceeded) {
		<-ctx.Done()
	}
	return err
}

// show says how each learner stands, what is saved, and what is published.
func (s *scenario) show(b *strings.Builder) {
	for _, a := range s.actors {
		if a.hasEnded() {
			continue
		}
		st := a.l.Status()
		fmt.Fprintf(b, "%s: %s", a.name, a.l.Summary())
		if err := a.l.Ready(); err != nil {
			fmt.Fprintf(b, "; not ready: %v", err)
		}
		if st.Loaded {
			fmt.Fprintf(b, "; %d events up to %d, saved up to %d", st.Events, st.Next, st.SavedEnd)
		}
		if st.Backlog > 0 {
			fmt.Fprintf(b, ", %d kept", st.Backlog)
		}
		if st.PendingAlerts > 0 {
			fmt.Fprintf(b, ", %d alerts pending", st.PendingAlerts)
		}
		if st.LostRecords > 0 {
			fmt.Fprintf(b, ", %d records lost by the log", st.LostRecords)
		}
		if n := a.labels.Load(); n > 0 {
			fmt.Fprintf(b, ", %d labels handed on, %d records observed", n, a.seen.Load())
		}
		if a.store.loaded() > 1 {
			b.WriteString(", loaded again")
		}
		b.WriteByte('\n')
	}
	s.showSaved(b)
	letters, written := s.letters(), 0
	for _, n := range letters {
		written += n
	}
	if written > 0 {
		fmt.Fprintf(b, "dead letters: %d, written %d times\n", len(letters), written)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, alert := range s.alerts {
		fmt.Fprintln(b, "alert:", alert)
	}
}

// showSaved says what stands at the head, who holds the lease, and whether the model is that which a
// replay of the log makes.
func (s *scenario) showSaved(b *strings.Builder) {
	lease, err := s.store.Lease(s.t.Context())
	if errors.Is(err, state.ErrTransient) {
		b.WriteString("redis: down\n")
		return
	}
	c, version, loadErr := s.store.Load(s.t.Context(), state.Head)
	switch {
	case errors.Is(loadErr, state.ErrNone) && err == nil:
		b.WriteString("redis: nothing is saved")
	case errors.Is(loadErr, state.ErrCorrupt) && err == nil:
		b.WriteString("redis: no version is whole")
	case loadErr != nil || err != nil:
		s.t.Fatal(errors.Join(loadErr, err))
	default:
		whose := "the model of the log"
		if next := c.Position.Next; next > int64(len(s.log)) {
			whose = "more than the log has"
		} else if sum(s.t, s.replay(s.config().Model, s.log[:next])) != c.ModelSHA256 {
			whose = "not the model of the log"
		}
		fmt.Fprintf(b, "redis: version %d by %s in epoch %d, %d events up to %d, %s",
			version, shown(c.Writer), c.Epoch, c.Events, c.Position.Next, whose)
	}
	if lease.Free() {
		fmt.Fprintf(b, "; the lease is free after epoch %d\n", lease.Epoch)
	} else {
		fmt.Fprintf(b, "; %s has the lease of epoch %d\n", shown(lease.Writer), lease.Epoch)
	}
}

// replay returns the model that has learnt records in order. Events that make this program panic are
// set aside.
func (s *scenario) replay(cfg model.Config, records []stream.Record) *model.Model {
	m, err := model.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range records {
		in := read(&records[i], false)
		if in.err == nil {
			_, in.err = m.Attempt(&in.Example)
		}
		if panicked := (*model.PanicError)(nil); errors.As(in.err, &panicked) {
			cfg.SetAside = append(cfg.SetAside, panicked.Key)
			return s.replay(cfg, records)
		}
	}
	return m
}
