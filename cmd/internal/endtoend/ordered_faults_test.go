package endtoend

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hamlet/stream/embedded/appends"
	"hamlet/stream/order"
)

// mortalOrdered makes a learner's session as short as a broker of the tests allows.
var mortalOrdered = []string{"--session-timeout", "1s"}

// A learner is stopped in mid-stream, another one goes on in a group of its own, the first
// one wakes, both think that they are active, and one of them is killed. Appends come late
// and twice. The model is what its logs say. It is the short form of the tests below, which
// plain go test leaves out.
func TestOrderedModelSurvivesItsLearners(t *testing.T) {
	o := newOrdered(t)
	p := o.unkind(rand.New(rand.NewPCG(4, 19)))
	o.send(100)
	a := o.learnerAt(p.Addr(), "--group", "hamlet.learner."+o.model+".a")
	stop := o.flow(8, 10*time.Millisecond)
	o.awaitMore(a)
	a.signal(syscall.SIGSTOP)
	b := o.learner("--group", "hamlet.learner."+o.model+".b")
	o.awaitMore(b)
	a.signal(syscall.SIGCONT)
	o.awaitMore(a)
	b.kill()
	o.awaitMore(a)
	stop()
	o.wantReplayed()
	a.stop()
	o.wantLetters(o.wantReplayed())
}

// unkind starts a proxy that has half of the appends to the order log come late, twice or
// out of order.
func (o *ordered) unkind(random *rand.Rand) *appends.Proxy {
	o.t.Helper()
	fates := []appends.Fate{appends.Pass, appends.Pass, appends.Pass, appends.Pass, appends.Delay, appends.Lose, appends.Double, appends.Late}
	var next []int // each eight appends meet each fate
	return appends.Start(o.t, appends.Config{
		Broker: o.servers.kafka, Topic: order.Topic(o.model),
		Fate: func() appends.Fate {
			if len(next) == 0 {
				next = random.Perm(len(fates))
			}
			f := fates[next[0]]
			next = next[1:]
			return f
		},
	})
}

// The model is what its logs say after kill −9 of the active learner at random times.
// Another learner takes over each time.
func TestOrderedModelAfterKills(t *testing.T) {
	kills := rounds(t, 10, 100)
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 19))
	o := newOrdered(t)
	learners := []*process{o.learner(mortalOrdered...), o.learner(mortalOrdered...)}
	stop := o.flow(4, 20*time.Millisecond)
	for i := range kills {
		k := o.awaitMore(learners...)
		if o.wait(random, 400*time.Millisecond); i%3 == 2 { // in its take-over
			learners[k].kill()
			learners[k] = o.learner(mortalOrdered...)
			o.wait(random, 1500*time.Millisecond)
			k = 1 - k
		}
		learners[k].kill()
		learners[k] = o.learner(mortalOrdered...)
	}
	stop()
	o.wantReplayed()
	for _, p := range learners {
		p.httpAddr()
		p.stop()
	}
	o.wantLetters(o.wantReplayed())
	t.Logf("%d kills", kills)
}

// With learners that come, go and are asked to stop, the model is what its logs say.
func TestOrderedModelAfterRebalances(t *testing.T) {
	changes := rounds(t, 9, 60)
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 19))
	o := newOrdered(t)
	learners := []*process{o.learner(), o.learner()}
	stop := o.flow(4, 20*time.Millisecond)
	for i := range changes {
		k := o.awaitMore(learners...)
		switch i % 3 {
		case 0: // one more
			learners = append(learners, o.learner())
		case 1: // the active one leaves
			o.wait(random, 200*time.Millisecond)
			learners[k].stop()
			learners = slices.Delete(learners, k, k+1)
		case 2: // any one leaves and comes back
			k = random.IntN(len(learners))
			learners[k].httpAddr() // it has begun, and is told of signals
			learners[k].stop()
			learners[k] = o.learner()
		}
	}
	o.awaitMore(learners...)
	stop()
	for _, p := range learners[1:] {
		p.httpAddr()
		p.stop()
	}
	o.wantReplayed()
	learners[0].stop()
	o.wantLetters(o.wantReplayed())
	t.Logf("%d learners came or left", changes)
}

// A learner is stopped at a random time and woken after its successor has gone on. Both
// think that they are active, and append. The model is what its logs say.
func TestOrderedModelAfterZombies(t *testing.T) {
	zombies := rounds(t, 4, 40)
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 19))
	o := newOrdered(t)
	learners := []*process{o.learner(mortalOrdered...), o.learner(mortalOrdered...)}
	stop := o.flow(4, 20*time.Millisecond)
	for range zombies {
		k := o.awaitMore(learners...)
		o.wait(random, 300*time.Millisecond)
		learners[k].signal(syscall.SIGSTOP)
		o.awaitMore(learners[1-k]) // its successor
		learners[k].signal(syscall.SIGCONT)
	}
	o.awaitMore(learners...)
	stop()
	o.wantReplayed()
	for _, p := range learners {
		p.httpAddr()
		p.stop()
	}
	o.wantLetters(o.wantReplayed())
	t.Logf("%d learners were stopped and woken", zombies)
}

// Two learners of two groups are both active all the time. Each is refused saves by the
// other, and goes on from what is saved. The model is what its logs say.
func TestOrderedModelOfTwoActiveLearners(t *testing.T) {
	steps := 3 * rounds(t, 10, 200)
	t.Parallel()
	o := newOrdered(t)
	// Each has time to save between the other's.
	a := o.learner("--group", "hamlet.learner."+o.model+".a", "--save-every", "50ms")
	b := o.learner("--group", "hamlet.learner."+o.model+".b", "--save-every", "500ms")
	stop := o.flow(4, 20*time.Millisecond)
	// Each writes before they race: one may be faster all the time.
	o.awaitMore(a)
	a.signal(syscall.SIGSTOP)
	o.awaitMore(b)
	a.signal(syscall.SIGCONT)
	for range steps {
		o.awaitMore(a, b)
	}
	stop()
	o.wantReplayed()
	a.stop()
	b.stop()
	o.wantLetters(o.wantReplayed())
	if writers := o.writers(); len(writers) != 2 {
		t.Errorf("records of the order log by writer: %v, want those of both", writers)
	}
}

// Appends to the order log come late, twice, out of order, or their answers are lost. Two
// learners share a group, and a third one is active beside them. The model is what its logs
// say.
func TestOrderedModelOverUnkindAppends(t *testing.T) {
	steps := 4 * rounds(t, 10, 150)
	t.Parallel()
	o := newOrdered(t)
	p := o.unkind(rand.New(rand.NewPCG(5, 19)))
	learners := []*process{
		o.learnerAt(p.Addr(), "--save-every", "50ms"), o.learnerAt(p.Addr(), "--save-every", "50ms"),
		o.learnerAt(p.Addr(), "--save-every", "700ms", "--group", "hamlet.learner."+o.model+".other"),
	}
	stop := o.flow(4, 20*time.Millisecond)
	for range steps {
		o.awaitMore(learners...)
	}
	stop()
	o.wantReplayed()
	for _, p := range learners {
		p.httpAddr()
		p.stop()
	}
	o.wantLetters(o.wantReplayed())
	fates := p.Fates()
	t.Logf("appends: %v", fates)
	all := 0
	for _, n := range fates {
		all += n
	}
	for f := appends.Pass; f <= appends.Late; f++ {
		if fates[f] == 0 && all >= 8 { // fewer do not meet all
			t.Errorf("no append was %s", f)
		}
	}
}

// A learner is stopped in the middle of an append. Its successor goes on. Then the append
// comes late, the learner wakes, and appends more. The model is what its logs say.
func TestOrderedModelAfterZombiesInMidAppend(t *testing.T) {
	zombies := rounds(t, 3, 30)
	t.Parallel()
	o := newOrdered(t)
	var armed atomic.Bool
	proxies, learners := make([]*appends.Proxy, 2), make([]*process, 2)
	for i := range learners {
		proxies[i] = appends.Start(t, appends.Config{Broker: o.servers.kafka, Topic: order.Topic(o.model), Fate: func() appends.Fate {
			if armed.CompareAndSwap(true, false) {
				return appends.Hold
			}
			return appends.Pass
		}})
		learners[i] = o.learnerAt(proxies[i].Addr(), mortalOrdered...)
	}
	stop := o.flow(4, 20*time.Millisecond)
	for range zombies {
		k := o.awaitMore(learners...)
		held := proxies[k].Held()
		armed.Store(true)
		select {
		case <-held:
		case <-proxies[1-k].Held(): // it became active at this moment
			k = 1 - k
		case <-time.After(patience):
			t.Fatal("nobody appends")
		}
		learners[k].signal(syscall.SIGSTOP)
		o.awaitMore(learners[1-k])
		proxies[k].Release()
		o.awaitMore(learners[1-k])
		learners[k].signal(syscall.SIGCONT)
	}
	o.awaitMore(learners...)
	stop()
	o.wantReplayed()
	for _, p := range learners {
		p.httpAddr()
		p.stop()
	}
	o.wantLetters(o.wantReplayed())
	t.Logf("%d learners were stopped in mid-append and woken", zombies)
}
