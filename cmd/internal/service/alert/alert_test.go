package alert

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"hamlet/stream"
)

func noise() stream.Alert {
	return stream.Alert{
		Incident: 6102, Transition: 2, Kind: stream.AlertLabelNoise, State: stream.AlertRaised, Event: 6250, Level: -4, Reference: -3.5, Threshold: .2,
		Body: stream.AlertText, Reading: "labels went bad",
		Labels: &stream.LabelReport{
			Epsilon: .03, SNR: 9, NoiseGrade: -.5,
			HamCalledSpam: stream.FlipRate{Known: true, Rate: .19, Low: .15, High: .24}, SpamCalledHam: stream.FlipRate{Known: true, Rate: .01, High: .02},
			Suspects: []stream.Suspect{{ID: "a", Source: "bad", Phi: .01}},
			Sources: []stream.SourceRate{
				{Source: "bad", Events: 50, FlipRate: .3, Low: .2, High: .4},
				{Source: "good", Events: 450, FlipRate: .001, Low: 0, High: .01},
			},
		},
	}
}

func TestLogAndSentence(t *testing.T) {
	out := noise()
	out.Labels.Suspects = append(out.Labels.Suspects, make([]stream.Suspect, 19)...)
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, nil))
	Log(log, &out)
	for _, want := range []string{"level=WARN", `msg="alarm raised"`, "kind=label-noise", "event=6250", " alarm_level=-4", "incident=default.0.6102", "transition=2",
		`reading="labels went bad"`, "flip_rate=0.03", `sources=bad:0.300,good:0.001`, "suspects=a,,\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the log says %q, want %q in it", b.String(), want)
		}
	}
	if n := strings.Count(b.String(), " level="); n != 1 {
		t.Errorf("the line has %d levels: %q", n, b.String())
	}
	sentence := Sentence(&out)
	for _, want := range []string{"event 6250: label-noise raised (text: level -4,", "open since event 6102", "labels went bad", "of ham 19.0 % (15.0 to 24.0) is called spam; of spam 1.0 % (0.0 to 2.0) is called ham", "worst source bad: of 50 labels 30.0 % (20.0 to 40.0) is wrong"} {
		if !strings.Contains(sentence, want) {
			t.Errorf("%q lacks %q", sentence, want)
		}
	}
	b.Reset()
	out.State, out.Reading = stream.AlertCleared, "nothing"
	Log(log, &out)
	if !strings.Contains(b.String(), "level=INFO") || !strings.Contains(b.String(), `msg="alarm cleared"`) {
		t.Errorf("the log says %q", b.String())
	}
	if s := Sentence(&out); !strings.Contains(s, "label-noise cleared") || strings.Contains(s, "worst") {
		t.Errorf("sentence %q", s)
	}
	for _, c := range []struct {
		state, kind, accused, level, message, sentence string
	}{
		{stream.AlertSuspected, stream.AlertUnknown, "", "WARN", "change suspected", "event 6102: a suspicion (text): why"},
		{stream.AlertWithdrawn, stream.AlertUnknown, "", "INFO", "suspicion withdrawn", "event 6250: the suspicion is withdrawn (text; open since event 6102): why"},
		{stream.AlertRaised, stream.AlertSource, "desk", "WARN", "alarm raised", "event 6250: source raised against desk (text: level -4, reference -3.5, threshold 0.2; open since event 6102): why"},
	} {
		a := noise()
		a.Kind, a.State, a.Accused, a.Labels, a.Reading = c.kind, c.state, c.accused, nil, "why"
		if c.state == stream.AlertSuspected {
			a.Event, a.Transition = a.Incident, 1
		}
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := Sentence(&a); got != c.sentence {
			t.Errorf("sentence %q, want %q", got, c.sentence)
		}
		b.Reset()
		Log(log, &a)
		if got := b.String(); !strings.Contains(got, "level="+c.level) || !strings.Contains(got, c.message) || strings.Contains(got, "accused=desk") != (c.accused != "") {
			t.Errorf("%s: the log says %q", c.state, got)
		}
	}
	// The alarm for labels may have no reference yet; 0 is a reference of the others.
	for kind, want := range map[string]string{
		stream.AlertLabelNoise: "event 6250: label-noise cleared (text: no reference yet; open since event 6102): labels went bad",
		stream.AlertSource:     "event 6250: source cleared (text: no reference yet; open since event 6102): labels went bad",
		stream.AlertConcept:    "event 6250: concept cleared (text: level -4, reference 0, threshold 0.2; open since event 6102): labels went bad",
	} {
		a := noise()
		a.Kind, a.State, a.Labels, a.Reference = kind, stream.AlertCleared, nil, 0
		if got := Sentence(&a); got != want {
			t.Errorf("sentence %q, want %q", got, want)
		}
	}
	// A class with few recent labels has no rate, and nothing is made up.
	a := noise()
	a.Labels.SpamCalledHam = stream.FlipRate{High: 1}
	b.Reset()
	Log(log, &a)
	if strings.Contains(Sentence(&a), "is called ham") || strings.Contains(b.String(), "spam_called_ham") {
		t.Errorf("an unknown rate: %q, %q", Sentence(&a), b.String())
	}
}
