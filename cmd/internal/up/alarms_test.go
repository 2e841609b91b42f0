package up

import (
	"bytes"
	"strings"
	"testing"

	"hamlet/algos/drift"
	"hamlet/cmd/internal/learner"
	"hamlet/stream"
)

// Of several partitions the reading to see to first counts.
func TestReadingOfSeveralPartitions(t *testing.T) {
	for _, c := range []struct {
		partitions []drift.Reading
		want       drift.Reading
	}{
		{nil, drift.Nothing},
		{[]drift.Reading{drift.Nothing, drift.Nothing}, drift.Nothing},
		{[]drift.Reading{drift.Nothing, drift.WorldChanged}, drift.WorldChanged},
		{[]drift.Reading{drift.WorldChanged, drift.MailChanged, drift.Nothing}, drift.MailChanged},
		{[]drift.Reading{drift.MailChanged, drift.LabelsWentBad, drift.WorldChanged}, drift.LabelsWentBad},
	} {
		status := map[int]learner.Status{}
		for p, r := range c.partitions {
			status[p] = learner.Status{Reading: r}
		}
		if got := reading(status); got != c.want {
			t.Errorf("%v: %v, want %v", c.partitions, got, c.want)
		}
	}
}

// Each change of an alarm is one line, shown once.
func TestChangesAreShownOnce(t *testing.T) {
	var b bytes.Buffer
	r := &run{cfg: Config{Progress: NewProgress(&b, -1)}}
	for p, state := range []string{stream.AlertRaised, stream.AlertCleared} {
		r.heard(&stream.Alert{Kind: stream.AlertConcept, State: state, Event: 7, Body: stream.AlertText, Reading: "nothing", Partition: p})
	}
	r.showChanges()
	r.showChanges()
	want := "event 7: concept raised (text: level 0, reference 0, threshold 0): nothing\n" +
		"partition 1, event 7: concept cleared (text: level 0, reference 0, threshold 0): nothing\n"
	if b.String() != want {
		t.Errorf("shown:\n%s\nwant:\n%s", b.String(), want)
	}
	r = &run{} // nobody looks on
	r.heard(&stream.Alert{})
	r.showChanges()
	if len(r.changes) != 0 {
		t.Error("changes that nobody sees pile up")
	}
	var line bytes.Buffer
	p := NewProgress(&line, -1)
	p.lastLine = p.lastLine.Add(-1e12)
	p.Draw(Snapshot{Reading: drift.LabelsWentBad})
	if !strings.Contains(line.String(), "ALARM: labels went bad") {
		t.Errorf("the progress says %q", line.String())
	}
}
