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
		Kind: stream.AlertLabelNoise, State: stream.AlertRaised, Event: 6250, Level: -4, Reference: -3.5, Threshold: .2,
		Body: stream.AlertText, Reading: "labels went bad",
		Labels: &stream.LabelReport{
			Epsilon: .03, SNR: 9, NoiseGrade: -.5, FlipRates: stream.FlipRates{HamCalledSpam: .19, SpamCalledHam: .01},
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
	for _, want := range []string{"level=WARN", `msg="alarm raised"`, "kind=label-noise", "event=6250", " alarm_level=-4",
		`reading="labels went bad"`, "flip_rate=0.03", `sources=bad:0.300,good:0.001`, "suspects=a,,\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the log says %q, want %q in it", b.String(), want)
		}
	}
	if n := strings.Count(b.String(), " level="); n != 1 {
		t.Errorf("the line has %d levels: %q", n, b.String())
	}
	sentence := Sentence(&out)
	for _, want := range []string{"event 6250: label-noise raised (text: level -4,", "labels went bad", "of ham 19.0 %", "worst source bad: 30.0 % of 50 (20.0 to 40.0)"} {
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
}
