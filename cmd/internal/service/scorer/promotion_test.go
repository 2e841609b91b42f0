package scorer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"hamlet/state"
	"hamlet/state/redis"
)

// A promoting is a follower of default and cand that polls only on request.
type promoting struct {
	t         *testing.T
	r         *miniredis.Miniredis
	store     *redis.Store
	follower  *follower
	log       bytes.Buffer
	own, cand *teacher
}

func newPromoting(t *testing.T) *promoting {
	t.Helper()
	p := &promoting{t: t, r: miniredis.RunT(t)}
	p.store = openStore(t, p.r)
	beside, err := p.store.Beside("cand")
	if err != nil {
		t.Fatal(err)
	}
	p.own, p.cand = newTeacher(t, p.store), newTeacher(t, beside.(*redis.Store))
	p.restart()
	return p
}

// restart begins with a scorer that remembers nothing.
func (p *promoting) restart() {
	p.follower = newFollower(p.store, "default",
		newMetrics(nil), slog.New(slog.NewTextHandler(&p.log, nil)))
}

func (p *promoting) promote(model string) {
	p.t.Helper()
	if err := p.store.Promote(p.t.Context(), state.Promotion{Model: model, Since: time.Unix(1e9, 0), By: "somebody"}); err != nil {
		p.t.Fatal(err)
	}
}

// want polls, and wants a model to answer.
func (p *promoting) want(when, model, sum string, stale bool) {
	p.t.Helper()
	for range 2 {
		p.follower.poll(patience(p.t))
	}
	got := p.follower.current()
	if got == nil {
		p.t.Fatalf("%s: nothing answers", when)
	}
	if got.ref.Name != model || got.ref.SHA256 != sum || p.follower.stale() != stale {
		p.t.Errorf("%s: %s/%.8s answers, stale %v; want %s/%.8s, %v", when, got.ref.Name, got.ref.SHA256, p.follower.stale(), model, sum, stale)
	}
}

// wantLogged wants a message in the log so many times.
func (p *promoting) wantLogged(message string, times int) {
	p.t.Helper()
	if n := strings.Count(p.log.String(), message); n != times {
		p.t.Errorf("%q is logged %d times, want %d:\n%s", message, n, times, p.log.String())
	}
}

// The promoted model answers once it is there, with its newest or pinned version, also after a
// restart; and the own model does after the way back.
func TestPromotion(t *testing.T) {
	p := newPromoting(t)
	p.own.learn(10)
	own := p.own.save()
	p.want("before", "default", own, false)
	p.promote("cand")
	p.want("before cand has a version", "default", own, true)
	p.wantLogged("the promoted model does not answer yet", 1)
	p.cand.learn(12)
	first := p.cand.save()
	p.want("promoted", "cand", first, false)
	info, err := (&Scorer{rules: fixedRules, follower: p.follower, cfg: Config{Model: "default"}}).Info(t.Context())
	if err != nil || info.Promoted == nil || info.Promoted.For != "default" || info.Promoted.By != "somebody" || info.Model.Name != "cand" {
		t.Errorf("info %+v, %v", info, err)
	}
	p.own.learn(5)
	own = p.own.save() // learns on
	p.cand.learn(5)
	second := p.cand.save()
	p.want("after a save", "cand", second, false)
	if err := p.cand.store.Pin(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	p.want("pinned", "cand", first, false)
	p.restart()
	p.want("after a restart", "cand", first, false)
	if err := p.cand.store.Unpin(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.want("unpinned", "cand", second, false)
	p.promote("default")
	p.want("back", "default", own, false)
	if info, err = (&Scorer{rules: fixedRules, follower: p.follower, cfg: Config{Model: "default"}}).Info(t.Context()); err != nil || info.Promoted != nil {
		t.Errorf("info %+v, %v", info, err)
	}
	p.wantLogged("answers come from another model", 3) // one is of the restart
	p.promote("cand")
	p.want("again", "cand", second, false)
	p.r.Del("hamlet:{default}:0:promotion")
	p.want("lost", "default", own, false)
	p.wantLogged("the state has lost which model is promoted", 1)
}

// What cannot be served takes nobody's place: a corrupt checkpoint, a model of newer numerics,
// one that is missing, or a promotion that cannot be read.
func TestPromotedModelThatCannotBeServed(t *testing.T) {
	p := newPromoting(t)
	p.own.learn(10)
	own := p.own.save()
	p.want("before", "default", own, false)
	p.promote("nobody")
	p.want("a model that is not there", "default", own, true)
	p.cand.learn(10)
	p.cand.numerics = "999"
	p.cand.save()
	p.promote("cand")
	p.want("newer numerics", "default", own, true)
	p.wantLogged("it is of numerics 999", 1)
	if err := p.r.Set("hamlet:{default}:0:promotion", "garbage"); err != nil {
		t.Fatal(err)
	}
	p.want("newer numerics, and nobody can read so", "default", own, true)
	p.wantLogged("it is of numerics 999", 1)
	p.wantLogged("it cannot be read which model is promoted", 1)
	p.log.Reset()
	p.promote("cand")
	p.cand.numerics = ""
	p.cand.learn(1)
	first := p.cand.save()
	p.want("these numerics", "cand", first, false)

	if err := p.r.Set("hamlet:{default}:0:promotion", "garbage"); err != nil {
		t.Fatal(err)
	}
	p.want("a promotion that cannot be read", "cand", first, true)
	p.wantLogged("it cannot be read which model is promoted", 1)
	p.promote("default")
	p.want("back", "default", own, false)

	p.promote("cand")
	for _, key := range p.r.Keys() {
		if strings.HasPrefix(key, "hamlet:{cand}:0:chunk:") {
			if err := p.r.Set(key, "garbage"); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.want("corrupt", "default", own, true)
	p.restart()
	p.want("corrupt, after a restart", "default", own, true)
	p.cand.learn(1)
	p.want("whole again", "cand", p.cand.save(), false)
}

// While the store cannot be reached, a new scorer does not guess which model answers, and an old
// one goes on.
func TestPromotionDuringAnOutage(t *testing.T) {
	p := newPromoting(t)
	p.own.learn(10)
	p.own.save()
	p.cand.learn(10)
	sum := p.cand.save()
	p.promote("cand")
	p.want("promoted", "cand", sum, false)
	p.r.SetError("LOADING Redis is loading the dataset in memory")
	p.want("an outage", "cand", sum, true)
	before := p.follower
	p.restart()
	p.follower.poll(patience(t))
	if got := p.follower.current(); got != nil {
		t.Errorf("%s answers", got.ref.Name)
	}
	p.r.SetError("")
	p.want("it is back", "cand", sum, false)
	p.follower = before
	p.want("it is back, for the old one", "cand", sum, false)
}

// A mumbling store does not say which model is promoted, and answers all else.
type mumbling struct {
	Store
	err error
}

func (s *mumbling) Promotion(context.Context) (state.Promotion, error) {
	return state.Promotion{}, s.err
}

// A promotion ends when the store says so, and not when it cannot say: the promoted model goes on.
func TestPromotionStandsUntilTheStoreSays(t *testing.T) {
	for name, err := range map[string]error{
		"an answer that is late":    state.Transient(errors.New("timeout")),
		"an answer that is garbage": state.ErrCorrupt,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPromoting(t)
			p.own.learn(10)
			own := p.own.save()
			p.cand.learn(10)
			p.cand.save()
			p.promote("cand")
			p.want("promoted", "cand", p.cand.save(), false)
			store := p.follower.store
			p.follower.store = &mumbling{store, err}
			p.cand.learn(1)
			p.want("it cannot say", "cand", p.cand.save(), true)
			p.wantLogged("the state has lost which model is promoted", 0)
			p.follower.store = &mumbling{store, state.ErrNone}
			p.want("it says that nothing is promoted", "default", own, false)
		})
	}
}
