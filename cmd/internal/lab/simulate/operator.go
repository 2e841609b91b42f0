package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	operate "hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/operate/review"
	"hamlet/cmd/internal/operate/sources"
	"hamlet/cmd/internal/operate/withdraw"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/nats"
)

// The kinds of incident that are an operator's commands. N says after how many milliseconds the
// program is killed; 0: never. The operator then starts it again.
const (
	Pin      Kind = "pin"      // pins the oldest version, and unpins after For
	Rollback Kind = "rollback" // pins the version before the one that is served, and unpins after For
	Withdraw Kind = "withdraw" // withdraws what a source has taught in the last For
	Correct  Kind = "correct"  // labels a message, corrects the label, and says the same again
	Stand    Kind = "standing" // gives a source another role
	Shadow   Kind = "shadow"   // starts learners of a second model, from a version or the log's beginning
	Promote  Kind = "promote"  // has the second model answer
	Demote   Kind = "demote"   // has the first model answer again
	Restore  Kind = "restore"  // takes a backup; For later the store is lost or older, and the backup is restored
	NewLog   Kind = "new log"  // is Restore where the log is lost too
)

// Heard is noted where an alert was to be out of a second model that is promoted.
const Heard Kind = "alert of a promoted model"

var commands = []Kind{Pin, Rollback, Withdraw, Correct, Stand, Shadow, Promote, Demote, Restore, NewLog}

// drawCommand draws what an operator's incident needs.
func drawCommand(r *rand.Rand, i *Incident, short time.Duration) {
	switch i.Kind {
	case Withdraw:
		i.For = 2*time.Second + 4*short
	case Shadow: // early, so that something can happen to it
		i.At /= 2
	case Promote:
		i.At, i.For = lasting/4+i.At*3/4, short
	case Demote:
		i.At, i.For = lasting/2+i.At/2, short
	default:
		i.For = short
	}
	if r.IntN(3) == 0 {
		i.N = 1 + int(r.ExpFloat64()*100)
	}
}

// The second model, its learners, and the source that an operator deals with.
const (
	candidate = "cand"
	doubtful  = "u"
)

var shadows = []string{"shadow-1", "shadow-2"}

// An operator is a program that an operator has started.
type operator struct{ *node }

func (o operator) store(model string) *shelf { return &shelf{o.node, o.world.vault, model} }

func (o operator) opener(model string) (state.Store, error) { return o.store(model), nil }

func (o operator) logs() logs { return logs(o) }

// operates does an incident beside the others.
func (w *World) operates(i Incident) {
	w.commands.Add(1)
	w.all.Go(func() {
		defer w.commands.Add(-1)
		switch i.Kind {
		case Pin, Rollback:
			w.pinFor(i)
		case Withdraw:
			w.withdraws(i)
		case Correct:
			w.corrects(i)
		case Stand:
			w.gives(i)
		case Shadow:
			w.shadow(i)
		case Promote:
			w.promotes(i, candidate)
		case Demote:
			w.promotes(i, stream.DefaultName)
		case Restore, NewLog:
			w.restores(i)
		default:
			panic("an operator knows no " + string(i.Kind))
		}
	})
}

// errNothing says that a command had nothing to do.
var errNothing = errors.New("nothing to do")

// command runs a program until it has done its work, but not for ever. It reports whether it has.
func (w *World) command(i Incident, what string, do func(ctx context.Context, o operator) error) bool {
	name := strings.ReplaceAll(fmt.Sprintf("operator-%v-%s", i.At, what), " ", "-")
	for try := 0; try < 8 && w.ctx.Err() == nil; try++ {
		o := operator{w.newNode(name)}
		ctx, stop := context.WithTimeout(w.ctx, time.Minute)
		if try == 0 && i.N > 0 {
			time.AfterFunc(time.Duration(i.N)*time.Millisecond, func() { o.dead.Store(true); stop() })
		}
		err := do(ctx, o)
		stop()
		switch {
		case err == nil:
			w.tell(name, "is done")
			return true
		case errors.Is(err, errNothing):
			return false
		}
		w.tell(name, err.Error())
		_ = sleep(w.ctx, time.Second)
	}
	return false
}

// pinFor pins a version for a time.
func (w *World) pinFor(i Incident) {
	ok := w.command(i, string(i.Kind), func(ctx context.Context, o operator) error {
		s := o.store(stream.DefaultName)
		kept, err := operate.Read(ctx, s, stream.DefaultName)
		if err != nil {
			return err
		}
		plan, err := kept.Pin(kept.Versions[len(kept.Versions)-1].Version)
		if i.Kind == Rollback {
			plan, err = kept.Rollback()
		}
		if err != nil {
			return err
		}
		return plan.Do(ctx, s)
	})
	if ok {
		w.did(i.Kind)
	}
	_ = sleep(w.ctx, i.For)
	i.N = 0
	for w.ctx.Err() == nil && !w.command(i, "unpin", func(ctx context.Context, o operator) error {
		err := o.store(stream.DefaultName).Unpin(ctx)
		if errors.Is(err, state.ErrNone) {
			return nil
		}
		return err
	}) {
	}
}

// A withdrawal is one that was written.
type withdrawal struct {
	since withdraw.Bound
	until time.Time // when it was planned
}

// asked is what `hamlet withdraw` is told.
func asked(since, until withdraw.Bound) *withdraw.Request {
	return &withdraw.Request{
		Model: stream.DefaultName, Source: doubtful, Since: since, Until: until, Recent: 20, SpamAt: .9, HamAt: .5,
	}
}

func (o operator) servers() withdraw.Servers {
	return withdraw.Servers{Kafka: o.logs(), Store: o.store(stream.DefaultName)}
}

func unseen(withdraw.Progress) {}

// withdraws withdraws what a source has taught lately, and waits until that is saved.
func (w *World) withdraws(i Incident) {
	since, err := withdraw.ParseBound("--since", i.For.String(), stream.DefaultName, time.Now())
	if err != nil {
		w.violate("%v", err)
		return
	}
	var plan *withdraw.Plan
	ok := w.command(i, "withdraw", func(ctx context.Context, o operator) (err error) {
		until := time.Now()
		if plan, err = withdraw.Make(ctx, o.servers(), asked(since, withdraw.Bound{}), unseen); err != nil {
			return err
		}
		if plan.Withdrawable == 0 {
			return errNothing
		}
		if err := plan.Recheck(ctx, o.servers(), unseen); err != nil {
			return err
		}
		if _, err := plan.Write(ctx, o.servers(), unseen); err != nil {
			return err
		}
		w.mu.Lock()
		w.withdrawals = append(w.withdrawals, withdrawal{since, until})
		w.mu.Unlock()
		return nil
	})
	if !ok {
		return
	}
	w.did(Withdraw)
	i.N = 0
	w.command(i, "await the withdrawal", func(ctx context.Context, o operator) error {
		_, err := plan.Saved(ctx, o.servers(), 20*time.Second)
		return err
	})
}

// corrects labels a message three times, as the console does.
func (w *World) corrects(i Incident) {
	raw := fmt.Appendf(nil, "Message-ID: <%v@example.org>\r\nSubject: lunch\r\n\r\nwinner word%d\r\n", i.At, i.At%50)
	m := mail.Parse(raw)
	kept := nats.ArchivedMail{Identity: mail.Identity("t", &m), Tenant: "t", Message: raw}
	for k, label := range []stream.Label{stream.Ham, stream.Spam, stream.Spam} {
		ok := w.command(i, fmt.Sprint("label ", k), func(ctx context.Context, o operator) error {
			to := review.LogTeacher{Logs: o.logs(), Topic: stream.EventsTopic(stream.DefaultName)}
			return review.Teach(ctx, to, &kept, label, review.Source("ann"))
		})
		if ok && k == 1 {
			w.did(Correct)
		}
		_ = sleep(w.ctx, i.For)
	}
}

// gives gives a source a role.
func (w *World) gives(i Incident) {
	role := []string{"muted", "ordinary", "anchor"}[random(w.plan.Seed, i.At.String()).IntN(3)]
	if w.command(i, role, func(ctx context.Context, o operator) error {
		standing, err := sources.NewStanding(doubtful, role, time.Now())
		if err != nil {
			return err
		}
		return sources.Set(ctx, o.logs(), stream.DefaultName, standing)
	}) {
		w.did(Stand)
	}
}

// promotes has a model answer for the first one.
func (w *World) promotes(i Incident, by string) {
	if w.command(i, string(i.Kind), func(ctx context.Context, o operator) error {
		if !w.isShadowed() {
			return errNothing
		}
		s := o.store(stream.DefaultName)
		return operate.Promote(ctx, s, stream.DefaultName, by, o.logs(), 20*time.Second)
	}) {
		w.did(i.Kind)
	}
}

// file is where a model goes that becomes another one.
func (w *World) file() string { return filepath.Join(w.vault.path, "candidate.tar") }

// logs are the logs as a node sees them. They implement [stream.Logs].
type logs struct{ *node }

// Open implements [stream.Logs].
func (l logs) Open(name string) (stream.Topic, error) {
	if name != stream.EventsTopic(stream.DefaultName) {
		return nil, fmt.Errorf("%w: %s", stream.ErrNoLog, name)
	}
	return noting{l.remote(&l.world.events, "events")}, nil
}

// Ping implements [stream.Logs].
func (l logs) Ping(ctx context.Context) error {
	return away(l.call(ctx, portLog, "Ping", func() error { return nil }))
}

// Partitions implements [stream.Logs].
func (logs) Partitions(context.Context, string) (int, error) { return 1, nil }

// Ensure implements [stream.Logs].
func (logs) Ensure(context.Context, string, int, time.Duration) error { return nil }

// Retention implements [stream.Logs].
func (logs) Retention(context.Context, string) (time.Duration, bool, error) { return -1, false, nil }

// Logger implements [stream.Logs].
func (logs) Logger() *slog.Logger { return nil }

// Patience implements [stream.Logs].
func (logs) Patience() time.Duration { return 10 * time.Second }

// A noting is a topic that notes what the log has acknowledged.
type noting struct{ *remote }

// Append implements [stream.Appender].
func (t noting) Append(ctx context.Context, records ...stream.Record) error {
	err := t.remote.Append(ctx, records...)
	if err != nil {
		return err
	}
	t.world.mu.Lock()
	defer t.world.mu.Unlock()
	for i := range records {
		id := identity(&records[i])
		t.world.acknowledged[id] = true
	}
	return nil
}

// identity returns the ID of an event or a standing; "" if the record is neither.
func identity(r *stream.Record) string {
	if stream.IsStanding(r.Headers) {
		s, _ := stream.DecodeStandingRecord(r.Headers, r.Value)
		return s.ID
	}
	e, _ := stream.DecodeRecord(r.Headers, r.Value)
	return e.ID
}

// hold ends processes in order, waits until they have ended, and keeps them from starting until
// release.
func (w *World) hold(names ...string) (release func()) {
	w.mu.Lock()
	for _, name := range names {
		w.held[name]++
	}
	w.mu.Unlock()
	for w.ctx.Err() == nil {
		for _, name := range names {
			w.endProcess(name, 0, false) // also one that was just about to start
		}
		if !slices.ContainsFunc(names, w.runs) {
			break
		}
		_ = sleep(w.ctx, 100*time.Millisecond)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, name := range names {
			w.held[name]--
			if p := w.processes[name]; p != nil {
				p.ended = nil // what it said of a store and a log that were replaced
			}
		}
	}
}

func (w *World) runs(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.processes[name]
	return p != nil && p.node != nil
}

func (w *World) isHeld(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held[name] > 0
}
