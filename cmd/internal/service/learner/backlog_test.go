package learner

import (
	"slices"
	"testing"

	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/predictions"
)

func TestKeepingIsBounded(t *testing.T) {
	var k backlog
	for next := int64(1); next <= maxBacklog; next++ {
		k.add(unpublished{next: next, alert: &stream.Alert{}})
	}
	if !k.whole() {
		t.Fatal("too early")
	}
	k.add(unpublished{next: maxBacklog + 1, alert: &stream.Alert{}})
	if k.whole() || len(k.items) != maxBacklog {
		t.Fatalf("%d things are kept, %v", len(k.items), k.whole())
	}
	k.trim(maxBacklog)
	if k.whole() || len(k.items) != 0 {
		t.Errorf("%d things are kept after a save of all but the last, %v", len(k.items), k.whole())
	}
	k.trim(maxBacklog + 1)
	letter := stream.Record{Value: make([]byte, maxBacklogBytes)}
	for next := int64(maxBacklog + 2); next < maxBacklog+4; next++ {
		k.add(unpublished{next: next, letter: &letter})
	}
	if k.whole() || len(k.items) != 1 {
		t.Errorf("%d letters are kept, want one", len(k.items))
	}
	if k.trim(maxBacklog + 3); !k.whole() || k.bytes != 0 {
		t.Errorf("%d bytes after a save of all", k.bytes)
	}
}

// Labels that are too many drop the oldest labels, and nothing else.
func TestKeptLabelsAreBounded(t *testing.T) {
	var k backlog
	k.add(unpublished{next: 1, alert: &stream.Alert{}})
	for next := int64(1); next <= maxLabels+2; next++ {
		k.add(unpublished{next: next, label: &givenLabel{}})
	}
	if !k.whole() || k.len() != maxLabels+1 || k.labels[0].next != 3 {
		t.Fatalf("%d things are kept, whole: %v", k.len(), k.whole())
	}
	if k.trim(maxLabels + 1); k.len() != 1 {
		t.Errorf("%d things are kept after a save of all but the last label", k.len())
	}
	k.add(unpublished{next: maxLabels + 3, alert: &stream.Alert{}})
	if got, _ := k.take(); len(got) != 2 || got[0].alert == nil || got[1].label == nil || k.len() != 0 {
		t.Errorf("took %d things, %d are left", len(got), k.len())
	}
}

// A save makes the standby forget what comes of the records that it covers, and nothing that comes of the
// record behind them.
func TestASaveCoversNothingBehindIt(t *testing.T) {
	const records = 5
	letter := stream.Record{Key: []byte("key"), Value: []byte("value")}
	for saved := int64(0); saved <= records+1; saved++ {
		var k backlog
		var want []int64 // the positions behind what is left, of each kind
		for next := int64(1); next <= records; next++ {
			k.add(unpublished{next: next, alert: &stream.Alert{}})
			k.add(unpublished{next: next, letter: &letter})
			k.add(unpublished{next: next, label: &givenLabel{}})
			k.predict(next, []predictions.Prediction{{Offset: next - 1}})
			k.pass(state.Position{Next: next})
			if next > saved {
				want = append(want, next)
			}
		}
		k.trim(saved)
		left := map[string][]int64{}
		for _, p := range k.passed {
			left["position"] = append(left["position"], p.next)
		}
		if n := len(want) * (len(letter.Key) + len(letter.Value)); k.bytes != n {
			t.Errorf("a save at %d leaves %d bytes of letters, want %d", saved, k.bytes, n)
		}
		items, predicted := k.take()
		for _, item := range items {
			kind := "label"
			if item.alert != nil {
				kind = "alert"
			} else if item.letter != nil {
				kind = "letter"
			}
			left[kind] = append(left[kind], item.next)
		}
		for _, p := range predicted {
			left["prediction"] = append(left["prediction"], p.Offset+1)
		}
		for _, kind := range []string{"alert", "letter", "label", "prediction", "position"} {
			if !slices.Equal(left[kind], want) {
				t.Errorf("a save at %d leaves the %ss %d, want %d", saved, kind, left[kind], want)
			}
		}
	}
}
