package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"hamlet/algos/eval"
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
