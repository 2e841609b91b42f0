package alert

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hamlet/algos/drift"
	"hamlet/algos/model"
	"hamlet/stream"
)

func noise() model.Alert {
	return model.Alert{
		Kind: model.KindLabelNoise, Body: model.BodyText, Raised: true, Event: 6250,
		Status:    drift.Status{Raised: true, Since: 6250, Known: true, Level: -4, Reference: -3.5, Threshold: .2},
		Diagnosis: drift.LabelsWentBad,
		Report: &drift.Report{
			SNR: 9, Grade: -.5, FlipRate: .03, HamCalledSpam: .19, SpamCalledHam: .01,
			Suspects: []drift.Suspect{{ID: "a", Source: "bad", Label: 1, Phi: .01}},
			Sources: []drift.SourceRate{
				{Source: "bad", Events: 50, Rate: .3, Low: .2, High: .4},
				{Source: "good", Events: 450, Rate: .001, Low: 0, High: .01},
			},
		},
	}
}

// The words of the model are those of the wire.
func TestOf(t *testing.T) {
	a := noise()
	want := stream.Alert{
		Kind: stream.AlertLabelNoise, State: stream.AlertRaised, Event: 6250, Level: -4, Reference: -3.5, Threshold: .2,
		Body: stream.AlertText, Reading: "labels went bad",
		Labels: &stream.LabelReport{
			Epsilon: .03, SNR: 9, NoiseGrade: -.5, HamCalledSpam: .19, SpamCalledHam: .01,
			Suspects: []stream.Suspect{{ID: "a", Source: "bad", Phi: .01}},
			Sources: []stream.SourceRate{
				{Source: "bad", Events: 50, FlipRate: .3, Low: .2, High: .4},
				{Source: "good", Events: 450, FlipRate: .001, Low: 0, High: .01},
			},
		},
	}
	if d := cmp.Diff(want, Of(&a)); d != "" {
		t.Errorf("Of (-want +got):\n%s", d)
	}
	for _, kind := range []string{model.KindCovariate, model.KindConcept} {
		for _, body := range []string{model.BodyText, model.BodyVector} {
			b := model.Alert{Kind: kind, Body: body, Event: 1, Diagnosis: drift.Nothing}
			out := Of(&b)
			if err := out.Validate(); err != nil || out.State != stream.AlertCleared || out.Labels != nil || out.Reading != "nothing" {
				t.Errorf("%s, %s: %+v, %v", kind, body, out, err)
			}
		}
	}
}

// Whatever an alarm says can go on the wire.
func TestOfIsAlwaysValid(t *testing.T) {
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -1, 2}
	for i, v := range odd {
		for _, w := range odd[i:] {
			a := noise()
			a.Status.Level, a.Status.Reference, a.Status.Threshold = v, w, v
			r := a.Report
			r.SNR, r.Grade, r.FlipRate, r.HamCalledSpam, r.SpamCalledHam = v, w, v, w, v
			r.Suspects[0].Phi = v
			r.Sources[0].Rate, r.Sources[0].Low, r.Sources[0].High = v, w, v
			out := Of(&a)
			if _, err := out.AppendJSON(nil); err != nil {
				t.Errorf("%v and %v: %v", v, w, err)
			}
		}
	}
}

func TestLogAndSentence(t *testing.T) {
	a := noise()
	a.Report.Suspects = append(a.Report.Suspects, make([]drift.Suspect, 19)...)
	out := Of(&a)
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
	a.Raised, a.Diagnosis = false, drift.Nothing
	out = Of(&a)
	Log(log, &out)
	if !strings.Contains(b.String(), "level=INFO") || !strings.Contains(b.String(), `msg="alarm cleared"`) {
		t.Errorf("the log says %q", b.String())
	}
	if s := Sentence(&out); !strings.Contains(s, "label-noise cleared") || strings.Contains(s, "worst") {
		t.Errorf("sentence %q", s)
	}
}
