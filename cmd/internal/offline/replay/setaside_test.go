package replay

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/algotest/plant"
	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/stream"
)

// A replay whose events end in panics makes the model and the output of one that was told of
// them. What it hands out it hands out once.
func TestPanicsAreSetAside(t *testing.T) {
	plant.Learning(t, "0", "70", "71")
	plant.Reading(t, "poison")
	items := letters(150)
	items[20].Event.Body.Text += " poison" // a dead letter, and no reason to begin again
	for _, delay := range []int{0, 30} {
		t.Run(fmt.Sprint("delay ", delay), func(t *testing.T) {
			type outcome struct {
				scores, alerts bytes.Buffer
				rejected       []string
				seen           watched
				sha            string
				scored         int
			}
			var setAside []string
			run := func(keys ...string) *outcome {
				var o outcome
				result, m, err := Run(t.Context(), Config{
					Model: model.Config{TableBits: 8, SetAside: keys}, Delay: delay, Scores: &o.scores, Alerts: &o.alerts, Observer: &o.seen,
					Rejected: func(err error) { o.rejected = append(o.rejected, err.Error()) },
					SetAside: func(p *model.PanicError) { setAside = append(setAside, p.Key) },
				}, each(items, nil))
				if err != nil {
					t.Fatal(err)
				}
				o.sha, o.scored = sum(t, m), result.Learned
				return &o
			}
			met := run()
			var keys []string
			for _, i := range []int{0, 70, 71} {
				ex := model.Example{ID: fmt.Sprint(i), Source: "desk", Body: model.Body{Tenant: stream.DefaultName}}
				keys = append(keys, ex.Key())
			}
			if !slices.Equal(setAside, keys) {
				t.Errorf("set aside %v, want %v", setAside, keys)
			}
			told := run(keys...)
			if len(setAside) != 3 {
				t.Errorf("told of them, it set aside %v", setAside[3:])
			}
			if met.sha != told.sha || met.scored != told.scored || met.seen != told.seen ||
				met.scores.String() != told.scores.String() || met.alerts.String() != told.alerts.String() {
				t.Errorf("the runs differ: %s and %s, %d and %d scored, %+v and %+v", met.sha, told.sha, met.scored, told.scored, met.seen, told.seen)
			}
			if !slices.Equal(met.rejected, told.rejected) || len(met.rejected) != 4 || !strings.Contains(met.rejected[3], "set_aside names it: "+keys[2]) {
				t.Errorf("rejected %q and %q", met.rejected, told.rejected)
			}
		})
	}
}

// What can be read only once cannot be read again: the error says so, and SetAside has named the event.
func TestAPanicOfAPipe(t *testing.T) {
	plant.Learning(t, "7")
	items, read := letters(20), false
	named := 0
	_, _, err := Run(t.Context(), Config{Model: model.Config{TableBits: 8}, SetAside: func(*model.PanicError) { named++ }},
		func(yield func(source.Item, error) bool) {
			if read {
				yield(source.Item{}, errOnce)
				return
			}
			read = true
			each(items, nil)(yield)
		})
	if !errors.Is(err, errOnce) || named != 1 {
		t.Errorf("%v, and %d events were named; want %v and 1", err, named, errOnce)
	}
}

var errOnce = errors.New("it has been read and cannot be read again")

// A watched counts what an Observer sees.
type watched struct{ scored, alerted int }

func (w *watched) Scored(int, string, bool, float64) { w.scored++ }
func (w *watched) Alerted(*stream.Alert)             { w.alerted++ }
