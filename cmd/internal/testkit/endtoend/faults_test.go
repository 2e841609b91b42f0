package endtoend

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A learner is stopped in mid-stream, another one goes on, the first one wakes and stands by, and
// the other one is killed. The model is what its log says. It is the short form of the tests
// below, which plain go test leaves out.
func TestModelSurvivesItsLearners(t *testing.T) {
	o := newReplicas(t)
	o.send(100)
	a := o.learner()
	stop := o.flow(8, 10*time.Millisecond)
	o.awaitActive(a)
	b := o.learner()
	o.awaitStandby(b)
	a.signal(syscall.SIGSTOP)
	o.awaitActive(b)
	a.signal(syscall.SIGCONT)
	o.awaitStandby(a)
	b.kill()
	o.awaitActive(a)
	stop()
	o.wantReplayed()
	a.stop()
	o.wantLetters(o.wantReplayed())
}

// The model is what its logs say after kill −9 of the active learner at random times.
// Another learner takes over each time.
func TestModelAfterKills(t *testing.T) {
	kills := rounds(t, 10, 100)
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 19))
	o := newReplicas(t)
	learners := []*process{o.learner(), o.learner()}
	stop := o.flow(4, 20*time.Millisecond)
	for i := range kills {
		k := o.awaitActive(learners...)
		if o.wait(random, 400*time.Millisecond); i%3 == 2 { // in its take-over
			learners[k].kill()
			learners[k] = o.learner()
			o.wait(random, 1500*time.Millisecond)
			k = 1 - k
		}
		learners[k].kill()
		learners[k] = o.learner()
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
func TestModelAfterComingsAndGoings(t *testing.T) {
	changes := rounds(t, 9, 60)
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 19))
	o := newReplicas(t)
	learners := []*process{o.learner(), o.learner()}
	stop := o.flow(4, 20*time.Millisecond)
	for i := range changes {
		k := o.awaitActive(learners...)
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
	o.awaitActive(learners...)
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
// think that they are active for a moment. The model is what its logs say.
func TestModelAfterZombies(t *testing.T) {
	zombies := rounds(t, 4, 40)
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 19))
	o := newReplicas(t)
	learners := []*process{o.learner(), o.learner()}
	stop := o.flow(4, 20*time.Millisecond)
	for range zombies {
		k := o.awaitActive(learners...)
		o.wait(random, 300*time.Millisecond)
		learners[k].signal(syscall.SIGSTOP)
		o.awaitActive(learners[1-k]) // its successor
		learners[k].signal(syscall.SIGCONT)
	}
	o.awaitActive(learners...)
	stop()
	o.wantReplayed()
	for _, p := range learners {
		p.httpAddr()
		p.stop()
	}
	o.wantLetters(o.wantReplayed())
	t.Logf("%d learners were stopped and woken", zombies)
}
