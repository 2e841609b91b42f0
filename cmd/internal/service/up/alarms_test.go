package up

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	"hamlet/algos/drift"
	"hamlet/algos/eval"
	"hamlet/cmd/internal/show/progress"
	"hamlet/stream"
)

// Each change of an alarm is one line, shown once.
func TestChangesAreShownOnce(t *testing.T) {
	var b bytes.Buffer
	r := &run{cfg: config{progress: newProgress(&b, -1), log: slog.New(slog.DiscardHandler)}}
	for _, state := range []string{stream.AlertRaised, stream.AlertCleared} {
		r.alert(&stream.Alert{Kind: stream.AlertConcept, State: state, Event: 7, Body: stream.AlertText, Reading: "nothing"})
	}
	r.alert(&stream.Alert{Incident: 8, Transition: 1, Kind: stream.AlertUnknown, State: stream.AlertSuspected, Event: 8, Body: stream.AlertText, Reading: "why"})
	r.showAlerts()
	r.showAlerts()
	want := "event 7: concept raised (text: level 0, reference 0, threshold 0): nothing\n" +
		"event 7: concept cleared (text: level 0, reference 0, threshold 0): nothing\n" +
		"event 8: a suspicion (text): why\n"
	if b.String() != want {
		t.Errorf("shown:\n%s\nwant:\n%s", b.String(), want)
	}
	var line bytes.Buffer
	p := newProgress(&line, -1)
	p.lastLine = p.lastLine.Add(-1e12)
	p.draw(snapshot{Diagnosis: drift.LabelsWentBad})
	if !strings.Contains(line.String(), "ALARM: labels went bad") {
		t.Errorf("the progress says %q", line.String())
	}
	p.lastLine = p.lastLine.Add(-1e12)
	p.draw(snapshot{Diagnosis: drift.SomethingChanged})
	if !strings.Contains(line.String(), "SUSPICION: something changed, not yet known what") {
		t.Errorf("the progress says %q", line.String())
	}
}

// A log has a record of each change of an alarm; a terminal shows the sentence
// alone.
func TestChangesAreLogged(t *testing.T) {
	changes := []stream.Alert{
		{Kind: stream.AlertConcept, State: stream.AlertRaised, Event: 7, Body: stream.AlertText, Reading: "the world changed"},
		{Kind: stream.AlertConcept, State: stream.AlertCleared, Event: 9, Body: stream.AlertText, Reading: "nothing"},
	}
	var shown, log bytes.Buffer
	r := &run{cfg: config{progress: newProgress(&shown, -1), log: slog.New(slog.NewJSONHandler(&log, nil))}}
	for i := range changes {
		r.alert(&changes[i])
	}
	records := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(records) != len(changes) {
		t.Fatalf("%d records, want %d:\n%s", len(records), len(changes), log.String())
	}
	for i, want := range []struct {
		level, message string
	}{{"WARN", "alarm raised"}, {"INFO", "alarm cleared"}} {
		var got struct {
			Level, Msg, Kind string
			Event            int
		}
		if err := json.Unmarshal([]byte(records[i]), &got); err != nil {
			t.Fatal(err)
		}
		if got.Level != want.level || got.Msg != want.message || got.Kind != changes[i].Kind ||
			got.Event != int(changes[i].Event) {
			t.Errorf("record %d: %s", i, records[i])
		}
	}
	log.Reset()
	r.cfg.progress.line = progress.NewLineOfWidth(&shown, func() int { return 80 })
	r.alert(&changes[0])
	r.showAlerts()
	if log.Len() > 0 || !strings.Contains(shown.String(), "event 7: concept raised") {
		t.Errorf("a terminal: logged %q, shown %q", log.String(), shown.String())
	}
}

// Off a terminal nothing is due before ten seconds are over. On one it always is.
func TestALineOfProgressIsDue(t *testing.T) {
	p := newProgress(io.Discard, -1)
	begun := p.lastLine
	if p.due(begun.Add(lineEvery-1)) || !p.due(begun.Add(lineEvery)) {
		t.Error("off a terminal a line is due before its time, or not then")
	}
	p.line = progress.NewLineOfWidth(io.Discard, func() int { return 80 })
	if !p.due(begun) {
		t.Error("on a terminal the line is not due")
	}
}

// The line on a terminal is at most 79 columns wide, whatever it has to say, and
// says the alarm before any figure.
func TestProgressFitsTheTerminal(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, 2_000_000)
	p.line = progress.NewLineOfWidth(&b, func() int { return 200 })
	p.draw(snapshot{
		Learned: 1_234_567, Duplicates: 12, Dead: 34, Lag: 456_789, Epsilon: 0.1234, Diagnosis: drift.LabelsWentBad,
		Summary: eval.Summary{LogLoss: 0.12345, ROCA: 12.345},
	})
	text, ok := strings.CutSuffix(strings.TrimPrefix(b.String(), "\r"), "\x1b[K")
	if !ok || len(text) > 79 || !strings.HasPrefix(text, "1234613 of 2000000 (61 %)  ALARM: labels went bad  ") {
		t.Errorf("%d columns: %q", len(text), b.String())
	}
}
