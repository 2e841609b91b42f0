package bench

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The page has a table and four curves, and fetches nothing.
func TestPage(t *testing.T) {
	b := newBox(t)
	dir := filepath.Join(t.TempDir(), "new", "page")
	if _, err := b.bench(t.Context(), "--index", b.index, "--filter", "<b>="+b.script, "--report", dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	html := string(text)
	if n := strings.Count(html, `role="img"`); n != 4 {
		t.Errorf("%d curves, want 4", n)
	}
	for _, want := range []string{"1-ROCA%", "hamlet / &lt;b&gt;", "ham lost, %", "messages so far",
		"fraction of spam"} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(html, "<b>") || strings.Contains(html, "NaN") {
		t.Error("a name is not escaped, or a figure is no number")
	}
	if links := regexp.MustCompile(`(?:src|href)="?[^#]|@import|url\(`).FindString(html); links != "" {
		t.Errorf("the page fetches something: %s", links)
	}
}

// A mailbox of one class has a page without a ROC curve.
func TestPageOfOneClass(t *testing.T) {
	b := newBox(t)
	dir := t.TempDir()
	if _, err := b.bench(t.Context(), "--index", b.index, "--limit", "1", "--report", dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "index.html")); err != nil {
		t.Error(err)
	}
}

func TestROCCurve(t *testing.T) {
	// From the top: spam, ham, spam, ham.
	o := &outcome{logOdds: []float64{4, 3, 2, 1}, spam: make([]bool, 4), cpu: make([]time.Duration, 4)}
	truth := []bool{true, false, true, false}
	got := newRanking(truth, o, 0).rocCurve()
	want := []point{{25, 100}, {25, 50}, {50, 50}, {50, 25}, {100, 25}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// All tied: a straight line between the corners.
	o.logOdds = []float64{1, 1, 1, 1}
	got = newRanking(truth, o, 0).rocCurve()
	first, last := got[0], got[len(got)-1]
	if first != (point{25, 100}) || last != (point{100, 25}) {
		t.Fatalf("corners %v and %v", first, last)
	}
	for _, p := range got {
		if math.Abs(p.x+p.y-125) > 1e-9 {
			t.Errorf("%v is not on the line", p)
		}
	}
}

// The learning curve ends at the figures of the table.
func TestLearningCurve(t *testing.T) {
	var truth []bool
	o := &outcome{proper: true}
	for i := range 500 {
		truth = append(truth, i%3 == 0)
		z := float64(i%7) - 3
		if truth[i] {
			z += 2
		}
		o.add(z >= 0, z)
	}
	weights := make([]int32, len(truth))
	for i := range weights {
		weights[i] = 1
	}
	v := newRanking(truth, o, 0).measure(weights)
	l := learningCurve(truth, o)
	if last := l.roca[len(l.roca)-1]; last != (point{500, v[roca]}) {
		t.Errorf("1-ROCA%% ends at %v, want %v", last, v[roca])
	}
	if last := l.wrong[len(l.wrong)-1]; last.x != 500 || !agree(last.y, 100*v[wrongClass]) {
		t.Errorf("error ends at %v, want %v", last, 100*v[wrongClass])
	}
	if n := len(l.wrong); n < learningPoints/2 || n > 2*learningPoints {
		t.Errorf("%d points", n)
	}
}

func TestReliability(t *testing.T) {
	o := &outcome{logOdds: []float64{-20, -20, 0.1, 0.2}, spam: make([]bool, 4), cpu: make([]time.Duration, 4)}
	bins := newRanking([]bool{false, false, true, false}, o, 0).reliability()
	if len(bins) != 2 || bins[0].n != 2 || bins[0].fraction != 0 || bins[1].fraction != 0.5 || bins[1].p < 0.52 ||
		bins[1].p > 0.55 {
		t.Errorf("got %+v", bins)
	}
}
