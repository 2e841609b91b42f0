package endtoend

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hamlet/stream"
)

// A disturbance takes the active learner out of its way. undo makes it one of the learners again.
type disturbance struct {
	name string
	make func(o *replicas, p *process)
	undo func(o *replicas, p *process, again func() *process) *process
}

var disturbances = []disturbance{
	{"kill -9",
		func(_ *replicas, p *process) { p.kill() },
		func(_ *replicas, _ *process, again func() *process) *process { return again() }},
	{"orderly stop",
		func(_ *replicas, p *process) { p.signal(syscall.SIGTERM) },
		func(_ *replicas, p *process, again func() *process) *process { <-p.done; return again() }},
	{"stopped",
		func(_ *replicas, p *process) { p.signal(syscall.SIGSTOP) },
		func(o *replicas, p *process, _ func() *process) *process {
			p.signal(syscall.SIGCONT)
			o.awaitStandby(p)
			return p
		}},
}

// Two learners stand by, at the brokers' default settings. When the active one is killed, asked to
// stop, or stopped in mid-stream, another one goes on soon. No alert, dead letter or receipt is
// lost, and none is there twice by its id. The model is what its log says.
func TestModelIsTakenOver(t *testing.T) {
	each := rounds(t, 3, 30)
	random := rand.New(rand.NewPCG(8, 19))
	o := newReplicas(t)
	o.vectors, o.noise = true, 1200
	flags := []string{"--nats", natsURL}
	again := func() *process { return o.learner(flags...) }
	learners := []*process{again(), again(), again()}
	stop := o.flow(12, 20*time.Millisecond)
	for _, d := range disturbances {
		var took []time.Duration
		for range each {
			k := o.awaitActive(learners...)
			for _, p := range learners {
				if p != learners[k] {
					o.awaitStandby(p)
				}
			}
			o.wait(random, 300*time.Millisecond)
			others := slices.Delete(slices.Clone(learners), k, k+1)
			began := time.Now()
			d.make(o, learners[k])
			await(t, "another learner goes on", func() bool { return activeOf(others) >= 0 })
			took = append(took, time.Since(began))
			learners[k] = d.undo(o, learners[k], again)
		}
		slices.Sort(took)
		t.Logf("%s, %d times: another learner is active after %v (median), at most %v", d.name, len(took),
			took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	}
	await(t, "labels have been wrong for long", func() bool { return o.count() >= o.noise+1600 })
	stop()
	o.wantReplayed()
	for _, p := range learners {
		p.httpAddr()
		p.stop()
	}
	want := o.wantLetters(o.wantReplayed())
	alerts := publishedAlerts(t, o.model)
	if d := cmp.Diff(want.alerts, alerts, cmpopts.IgnoreFields(stream.Alert{}, "Time")); d != "" {
		t.Errorf("alerts (-of the log +published):\n%s", d)
	}
	if len(alerts) == 0 {
		t.Error("without an alert this shows little")
	}
}
