package wire

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hamlet/algos/drift"
	"hamlet/algos/model"
	"hamlet/algos/promise"
	"hamlet/stream"
)

// constants returns the names of the constants that a package of the module
// declares together with the given one, in the same parentheses.
func constants(t *testing.T, dir, with string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../../..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			var names []string
			for _, spec := range group.Specs {
				for _, constant := range spec.(*ast.ValueSpec).Names {
					names = append(names, constant.Name)
				}
			}
			if slices.Contains(names, with) {
				return names
			}
		}
	}
	t.Fatalf("no constants in %s are declared with %s", dir, with)
	return nil
}

// A pair is a constant of package model and the one of package stream that means
// the same.
type pair[M, W any] struct {
	modelName, wireName string
	model               M
	wire                W
}

// checkPairs checks that pairs names every constant of both groups once.
func checkPairs[M, W any](t *testing.T, modelGroup, wireGroup []string, pairs []pair[M, W]) {
	t.Helper()
	var fromModel, fromWire []string
	for _, p := range pairs {
		fromModel, fromWire = append(fromModel, p.modelName), append(fromWire, p.wireName)
	}
	if d := cmp.Diff(modelGroup, fromModel); d != "" {
		t.Errorf("constants of model (-declared +converted):\n%s", d)
	}
	if d := cmp.Diff(wireGroup, fromWire); d != "" {
		t.Errorf("constants of stream (-declared +converted):\n%s", d)
	}
}

// Every action of the wire is one of the model, and the other way round.
func TestActionsAreComplete(t *testing.T) {
	pairs := []pair[model.Action, stream.Action]{
		{"Learn", "Learn", model.Learn, stream.Learn},
		{"Relearn", "Relearn", model.Relearn, stream.Relearn},
		{"Unlearn", "Unlearn", model.Unlearn, stream.Unlearn},
		{"Correct", "Correct", model.Correct, stream.Correct},
		{"Assume", "Assume", model.Assume, stream.Assume},
	}
	checkPairs(t, constants(t, "algos/model", "Relearn"), constants(t, "stream", "Relearn"), pairs)
	for _, p := range pairs {
		if got := Action(p.wire); got != p.model {
			t.Errorf("action %v is %v in the model, want %v", p.wire, got, p.model)
		}
	}
}

// What the wire lets a ham weigh, a model takes, and nothing else.
func TestSampleWeights(t *testing.T) {
	if stream.LeastSampleWeight != promise.LeastWeight || stream.MostSampleWeight != promise.MostWeight {
		t.Errorf("a ham weighs %v to %v on the wire, %v to %v in a model",
			stream.LeastSampleWeight, stream.MostSampleWeight, promise.LeastWeight, promise.MostWeight)
	}
}

// Every outcome of a withdrawal or a correction is one of the wire, and the other way round.
func TestOutcomesAreComplete(t *testing.T) {
	pairs := []pair[model.Outcome, string]{
		{"Withdrawn", "OutcomeWithdrawn", model.Withdrawn, stream.OutcomeWithdrawn},
		{"Replaced", "OutcomeReplaced", model.Replaced, stream.OutcomeReplaced},
		{"Outweighed", "OutcomeOutweighed", model.Outweighed, stream.OutcomeOutweighed},
		{"Unchanged", "OutcomeUnchanged", model.Unchanged, stream.OutcomeUnchanged},
		{"NotAllowed", "OutcomeNotAllowed", model.NotAllowed, stream.OutcomeNotAllowed},
	}
	checkPairs(t, constants(t, "algos/model", "Outweighed"), constants(t, "stream", "OutcomeOutweighed"), pairs)
	for _, p := range pairs {
		if got := Outcome(p.model); got != p.wire {
			t.Errorf("outcome %s is %s on the wire, want %s", p.modelName, got, p.wire)
		}
	}
}

// Every kind of alarm of a model is one of the wire, and the other way round.
func TestKindsAreComplete(t *testing.T) {
	pairs := []pair[string, string]{
		{"KindLabelNoise", "AlertLabelNoise", drift.KindLabelNoise, stream.AlertLabelNoise},
		{"KindCovariate", "AlertCovariate", drift.KindCovariate, stream.AlertCovariate},
		{"KindConcept", "AlertConcept", drift.KindConcept, stream.AlertConcept},
		{"KindSource", "AlertSource", drift.KindSource, stream.AlertSource},
		{"KindUnknown", "AlertUnknown", drift.KindUnknown, stream.AlertUnknown},
	}
	checkPairs(t, constants(t, "algos/drift", "KindConcept"), constants(t, "stream", "AlertConcept"), pairs)
	for _, p := range pairs {
		if got := Kind(p.model); got != p.wire || !slices.Contains(stream.AlertKinds, got) {
			t.Errorf("kind %s is %s on the wire, want %s", p.model, got, p.wire)
		}
	}
}

// Every body that an alarm watches is one of the wire, and the other way round.
func TestBodiesAreComplete(t *testing.T) {
	pairs := []pair[string, string]{
		{"BodyText", "AlertText", model.BodyText, stream.AlertText},
		{"BodyVector", "AlertVector", model.BodyVector, stream.AlertVector},
	}
	checkPairs(t, constants(t, "algos/model", "BodyText"), constants(t, "stream", "AlertText"), pairs)
	for _, p := range pairs {
		if got := Body(p.model); got != p.wire {
			t.Errorf("body %s is %s on the wire, want %s", p.model, got, p.wire)
		}
	}
}

// Every state of an incident is one of the wire, and the other way round.
func TestStatesAreComplete(t *testing.T) {
	pairs := []pair[drift.State, string]{
		{"Suspected", "AlertSuspected", drift.Suspected, stream.AlertSuspected},
		{"Raised", "AlertRaised", drift.Raised, stream.AlertRaised},
		{"Cleared", "AlertCleared", drift.Cleared, stream.AlertCleared},
		{"Withdrawn", "AlertWithdrawn", drift.Withdrawn, stream.AlertWithdrawn},
	}
	checkPairs(t, constants(t, "algos/drift", "Withdrawn"), constants(t, "stream", "AlertWithdrawn"), pairs)
	for _, p := range pairs {
		if got := State(p.model); got != p.wire || got != p.model.String() {
			t.Errorf("state %s is %s on the wire, want %s", p.model, got, p.wire)
		}
	}
}

// A word that nobody declared is a bug of this program.
func TestUnknownWordsPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"action":  func() { Action(5) },
		"outcome": func() { Outcome(5) },
		"kind":    func() { Kind("drift") },
		"state":   func() { State(0) },
		"body":    func() { Body("mail") },
	} {
		func() {
			defer func() {
				if p, ok := recover().(string); !ok || !strings.HasPrefix(p, "convert: unknown "+name) {
					t.Errorf("%s: panic %q, want one that names it", name, p)
				}
			}()
			f()
		}()
	}
}

func noise() model.Alert {
	return model.Alert{
		Kind: drift.KindLabelNoise, Body: model.BodyText, State: drift.Raised, Event: 6250, Incident: 6250, Transition: 1,
		Status:    drift.Status{Raised: true, Since: 6250, Known: true, Level: -4, Reference: -3.5, Threshold: .2},
		Diagnosis: drift.LabelsWentBad,
		Report: &drift.Report{
			SNR: 9, Grade: -.5, FlipRate: .03, HamCalledSpam: drift.FlipRate{Known: true, Rate: .19, Low: .15, High: .24},
			SpamCalledHam: drift.FlipRate{Known: true, Rate: .01, High: .02},
			Suspects:      []drift.Suspect{{ID: "a", Source: "bad", Label: 1, Phi: .01}},
			Sources: []drift.SourceRate{
				{Source: "bad", Events: 50, Rate: .3, Low: .2, High: .4},
				{Source: "good", Events: 450, Rate: .001, Low: 0, High: .01},
			},
		},
	}
}

// The words of the model are those of the wire.
func TestAlert(t *testing.T) {
	a := noise()
	want := stream.Alert{
		Incident: 6250, Transition: 1, Kind: stream.AlertLabelNoise, State: stream.AlertRaised, Event: 6250, Level: -4, Reference: -3.5, Threshold: .2,
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
	if d := cmp.Diff(want, Alert(&a)); d != "" {
		t.Errorf("Alert (-want +got):\n%s", d)
	}
	// A class with few recent labels has no rate, and the alert says so.
	a.Report.HamCalledSpam = drift.FlipRate{Rate: .3, High: 1}
	want.Labels.HamCalledSpam = stream.FlipRate{High: 1}
	want.Reading = "labels went bad; too little recent ham to say how much of it is called spam"
	if d := cmp.Diff(want, Alert(&a)); d != "" {
		t.Errorf("Alert with an unknown rate (-want +got):\n%s", d)
	}
	for _, c := range []struct {
		state drift.State
		kind  string
	}{{drift.Suspected, drift.KindUnknown}, {drift.Withdrawn, drift.KindUnknown}, {drift.Cleared, drift.KindSource}} {
		b := model.Alert{Kind: c.kind, Body: model.BodyText, State: c.state, Event: 2, Incident: 1, Transition: 2, Diagnosis: drift.SomethingChanged}
		if c.state == drift.Suspected {
			b.Incident, b.Transition = 2, 1
		}
		if c.kind == drift.KindSource {
			b.Source = "desk"
		}
		out := Alert(&b)
		if err := out.Validate(); err != nil || out.IncidentID() != fmt.Sprintf("default.0.%d", b.Incident) || out.Accused != b.Source {
			t.Errorf("%s %s: %+v, %v", c.kind, c.state, out, err)
		}
	}
	for _, kind := range []string{drift.KindCovariate, drift.KindConcept} {
		for _, body := range []string{model.BodyText, model.BodyVector} {
			b := model.Alert{Kind: kind, Body: body, State: drift.Cleared, Event: 2, Incident: 1, Transition: 2, Diagnosis: drift.Nothing}
			out := Alert(&b)
			if err := out.Validate(); err != nil || out.State != stream.AlertCleared || out.Labels != nil || out.Reading != "nothing" {
				t.Errorf("%s, %s: %+v, %v", kind, body, out, err)
			}
		}
	}
}

// An open incident has the id and the words of its alerts.
func TestIncident(t *testing.T) {
	for _, c := range []struct {
		in   drift.OpenIncident
		want stream.OpenIncident
	}{
		{drift.OpenIncident{Kind: drift.KindUnknown, Incident: 70, Transition: 1},
			stream.OpenIncident{Incident: "news.0.70", Transition: 1, Kind: stream.AlertUnknown, State: stream.AlertSuspected, Body: stream.AlertVector}},
		{drift.OpenIncident{Kind: drift.KindSource, Incident: 70, Transition: 2, Source: "desk\xff"},
			stream.OpenIncident{Incident: "news.0.70", Transition: 2, Kind: stream.AlertSource, State: stream.AlertRaised, Accused: "desk?", Body: stream.AlertVector}},
	} {
		if d := cmp.Diff(c.want, Incident("news", &model.Incident{Body: model.BodyVector, OpenIncident: c.in})); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.in, d)
		}
	}
}

// Whatever an alarm says can go on the wire.
func TestAlertIsAlwaysValid(t *testing.T) {
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -1, 2}
	for i, v := range odd {
		for _, w := range odd[i:] {
			a := noise()
			a.Status.Level, a.Status.Reference, a.Status.Threshold = v, w, v
			r := a.Report
			r.SNR, r.Grade, r.FlipRate, r.HamCalledSpam.Rate, r.SpamCalledHam.Rate = v, w, v, w, v
			r.HamCalledSpam.Low, r.HamCalledSpam.High, r.SpamCalledHam.Known = v, w, v > 0
			r.Suspects[0].Phi = v
			r.Sources[0].Rate, r.Sources[0].Low, r.Sources[0].High = v, w, v
			out := Alert(&a)
			if _, err := out.AppendJSON(nil); err != nil {
				t.Errorf("%v and %v: %v", v, w, err)
			}
		}
	}
}
