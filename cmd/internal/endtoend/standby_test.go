package endtoend

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
)

// The model is what its log says after kill −9 of the active learner at random times. Another
// learner takes over each time.
func TestKillsOfTheActiveLearner(t *testing.T) {
	kills := rounds(10, 100)
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 19))
	o := newReplicas(t)
	learners := []*process{o.learner(), o.learner()}
	stop := o.flow(4, 20*time.Millisecond)
	for i := range kills {
		k := o.awaitMore(learners...)
		if o.wait(random, 400*time.Millisecond); i%3 == 2 { // in its take-over
			learners[k].kill()
			learners[k] = o.learner()
			o.wait(random, 1500*time.Millisecond)
			k = 1 - k
		}
		learners[k].kill()
		learners[k] = o.learner()
	}
	o.awaitMore(learners...)
	stop()
	o.finish(learners)
	t.Logf("%d kills", kills)
}

// finish ends learners, and compares what they have saved and published with a replay.
func (o *replicas) finish(learners []*process) {
	o.t.Helper()
	o.wantReplayed()
	for _, p := range learners {
		p.httpAddr() // it has begun, and is told of signals
		p.stop()
	}
	o.wantLetters(o.wantReplayed())
}

// With learners that come, go and are asked to stop, the model is what its log says.
func TestLearnersComeAndGo(t *testing.T) {
	changes := 3 * rounds(3, 20)
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 19))
	o := newReplicas(t)
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
	o.finish(learners)
	t.Logf("%d learners came or left", changes)
}

// A learner is stopped at a random time and woken after its successor has gone on. Both think
// that they are active. The model is what its log says.
func TestZombies(t *testing.T) {
	zombies := rounds(4, 40)
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 19))
	o := newReplicas(t)
	learners := []*process{o.learner(), o.learner()}
	stop := o.flow(4, 20*time.Millisecond)
	for range zombies {
		k := o.awaitMore(learners...)
		learners[1-k].httpAddr()
		o.wait(random, 300*time.Millisecond)
		learners[k].signal(syscall.SIGSTOP)
		o.awaitMore(learners[1-k]) // its successor
		learners[k].signal(syscall.SIGCONT)
	}
	o.awaitOneActive(learners...)
	stop()
	o.finish(learners)
	t.Logf("%d learners were stopped and woken", zombies)
}
