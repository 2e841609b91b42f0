package report

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/algos/stack"
)

// A, A, B, B, B, A: two of six labels differ from the one before.
func TestNoChange(t *testing.T) {
	var g NoChange
	if g.Error() != 0 {
		t.Error("without an event the error is not 0")
	}
	for _, spam := range []bool{true, true, false, false, false, true} {
		g.Add(spam)
	}
	if got := g.Error(); got != 2.0/6 {
		t.Errorf("error %v, want 2/6", got)
	}
}

func TestTableMentionsRunsOnlyWhereThereAre(t *testing.T) {
	for _, c := range []struct {
		noChange float64
		want     bool
	}{{0.1, true}, {0.5, false}} {
		m := eval.New()
		for i := range 100 {
			m.Add(i%2 == 0, 1)
		}
		r := Result{Summary: m.Summary(), NoChangeError: c.noChange, Learned: 100}
		var b bytes.Buffer
		if err := r.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "no change"); got != c.want {
			t.Errorf("no-change error %v: the table says\n%s", c.noChange, b.String())
		}
	}
}

func TestRejectionsShowTheFirstTen(t *testing.T) {
	var b bytes.Buffer
	r := Rejections{W: &b}
	for range 25 {
		r.Add(errors.New("line: bad"))
	}
	r.Close()
	if got := strings.Count(b.String(), "line: bad"); got != 10 {
		t.Errorf("%d reasons were shown, want 10", got)
	}
	if !strings.Contains(b.String(), "25 in all") {
		t.Errorf("the count is missing:\n%s", b.String())
	}
}

// The ten worst sources have a line each, the rest one together; JSON has the
// names even where there is none to tell.
func TestDoubtsAreShown(t *testing.T) {
	var d eval.Doubts
	for i := range 12 {
		for range 3 + i {
			d.Add(string(rune('a'+i)), 0.1)
		}
		d.Add(string(rune('a'+i)), 0.9)
	}
	var r Result
	r.SetDoubts(&d)
	var b bytes.Buffer
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"doubtful 102 labels learnt although more likely false than true",
		"14 from l: 93.33 % of its 15", "5 from c: 83.33 % of its 6", "7 from other sources",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	b.Reset()
	r.SetDoubts(&eval.Doubts{})
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if want := `"doubtful":0,"doubtful_sources":[]}`; !strings.Contains(b.String(), want) {
		t.Errorf("JSON lacks %s: %s", want, b.String())
	}
}

// No line is wider than a terminal of 80 columns, even with every row there is and
// numbers of the longest streams.
func TestTableFitsATerminal(t *testing.T) {
	m := eval.New()
	for i := range 100 {
		m.Add(i%2 == 0, 1)
	}
	r := Result{
		Summary: m.Summary(), Rejected: 123456789, Duplicates: 123456789, LeftOut: 123456789, ResumedAt: 123456789, Learned: 100,
		NoChangeError: 0.1, Reading: "the world changed", EventsPerSecond: 123456, Doubtful: 123456789,
		Sources: []eval.SourceDoubt{{Source: strings.Repeat("é", 100), Learnt: 123456789, Doubtful: 123456}},
	}
	r.Approximate = true
	r.Below = eval.Tail{Events: 123456789, Spam: 12345678, Slope: 0.123, Error: 0.12}
	r.Above = eval.Tail{Events: 123456789, Spam: 123456789, Slope: -1.123, Error: 10.12}
	r.First = eval.First{LogLoss: 0.12345, ROCA: 12.3456}
	r.InsideInterval, r.InsideCentral = 1, 1
	r.SetModel([32]byte{})
	var b bytes.Buffer
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{
		r.ModelSHA256, "the world changed",
		"  p < .05    0.123      slope there; ± 0.12; 123456789 events, 12345678 spam\n",
		"p inside     100.00 %   in its 90 % interval; before widening 100.00 %\n",
		"first 400    0.12345    log loss of the first 400 events; 1-ROCA% 12.3456\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %s:\n%s", want, b.String())
		}
	}
}

// The gates have a line each, in 80 columns. JSON has them where there are some.
func TestGatesAreShown(t *testing.T) {
	one := model.Gate{Body: model.BodyText, Events: 200, Gate: stack.Gate{Open: true, Lead: 3.25, Since: 50, Served: 150}}
	two := model.Gate{Body: model.BodyVector, Events: 1000, Gate: stack.Gate{Lead: -1, Since: 300, Served: 5}}
	for _, c := range []struct {
		gates []model.Gate
		want  []string
		json  string
	}{
		{nil, nil, ""},
		{[]model.Gate{one}, []string{"gate         open       text: stack ahead by 3.25 nats, answered 75.0 %"},
			`"gates":[{"partition":0,"body":"text","open":true,"lead":3.25,"since":50,"served":150,"events":200}]`},
		{[]model.Gate{one, two}, []string{
			"gate         open       text: stack ahead by 3.25 nats, answered 75.0 %",
			"gate         closed     vector: stack behind by 1.00 nats, answered 0.5 %",
		}, `{"partition":0,"body":"vector","open":false,"lead":-1,"since":300,"served":5,"events":1000}]`},
	} {
		var r Result
		r.AddGates(c.gates)
		var table, line bytes.Buffer
		if err := errors.Join(r.WriteTable(&table), r.WriteJSON(&line)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for l := range strings.Lines(table.String()) {
			if strings.HasPrefix(l, "gate") {
				got = append(got, strings.TrimSuffix(l, "\n"))
			}
			if utf8.RuneCountInString(l) > 81 {
				t.Errorf("a line of more than 80 columns: %s", l)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d gates: got %q, want %q", len(c.gates), got, c.want)
		}
		if has := strings.Contains(line.String(), `"gates"`); has != (c.json != "") || !strings.Contains(line.String(), c.json) {
			t.Errorf("%d gates: %s", len(c.gates), line.String())
		}
	}
}

// A tail without a slope shows its counts alone.
func TestTailWithoutSlope(t *testing.T) {
	m := eval.New()
	for range 30 {
		m.Add(true, 4)
	}
	r := Result{Summary: m.Summary()}
	var b bytes.Buffer
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  p < .05    –          slope there; 0 events, 0 spam\n", "  p > .95    –          slope there; 30 events, 30 spam\n",
		"first 400    –          log loss of the first 400 events; 1-ROCA% –\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
}

// A skewed belief leaves its central interval, and the one that is served holds it.
func TestIntervals(t *testing.T) {
	var c Intervals
	if inside, central := c.Shares(); inside.Defined() || central.Defined() {
		t.Errorf("without a prediction: %v, %v", inside, central)
	}
	c.Add(model.Prediction{LogOdds: 0.9, Mean: 1, Variance: 1})
	c.Add(model.Prediction{LogOdds: -4, Mean: -4, Variance: 0})
	c.Add(model.Prediction{LogOdds: -3, Mean: -3.1, Variance: 0.2})
	c.Add(model.Prediction{LogOdds: -22, Mean: -40, Variance: 36})
	var r Result
	if r.SetIntervals(&c); r.InsideInterval != 1 || r.InsideCentral != 0.75 {
		t.Errorf("inside %v, before widening %v; want 1 and .75", r.InsideInterval, r.InsideCentral)
	}
}
