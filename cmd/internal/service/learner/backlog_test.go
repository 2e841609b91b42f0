package learner

import (
	"testing"

	"hamlet/stream"
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
