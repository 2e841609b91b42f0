package endtoend

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hamlet/stream"
)

// takeOver is how long it may take until another learner goes on after kill −9 of the active
// one, with a session of a second.
const takeOver = 2 * time.Second

// Two learners stand by. After kill −9 of the active one another goes on soon. No alert, dead
// letter or receipt is lost, and none is there twice by its id.
func TestOrderedModelIsTakenOver(t *testing.T) {
	kills := rounds(t, 10, 30)
	random := rand.New(rand.NewPCG(8, 19))
	o := newOrdered(t)
	o.vectors, o.noise = true, 1200
	flags := slices.Concat(mortalOrdered, []string{"--nats", natsURL})
	learners := []*process{o.learner(flags...), o.learner(flags...), o.learner(flags...)}
	stop := o.flow(12, 20*time.Millisecond)
	var took []time.Duration
	for range kills {
		k := o.awaitMore(learners...)
		o.wait(random, 300*time.Millisecond)
		seen := len(o.watched.since(0))
		pid := learners[k].cmd.Process.Pid
		killed := time.Now()
		learners[k].kill()
		await(t, "another learner goes on", func() bool {
			for _, r := range o.watched.since(seen) {
				if r.pid != pid {
					took = append(took, r.at.Sub(killed))
					return true
				}
			}
			return false
		})
		learners[k] = o.learner(flags...)
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
		t.Errorf("alerts (-of the logs +published):\n%s", d)
	}
	if len(alerts) == 0 {
		t.Error("without an alert this shows little")
	}
	slices.Sort(took)
	median, most := took[len(took)/2], took[len(took)-1]
	t.Logf("%d kills, %d alerts; another learner went on after %v (median), at most %v", kills, len(alerts), median.Round(time.Millisecond), most.Round(time.Millisecond))
	if median > takeOver {
		t.Errorf("another learner went on after %v (median of %v), want %v at most", median, took, takeOver)
	}
}
