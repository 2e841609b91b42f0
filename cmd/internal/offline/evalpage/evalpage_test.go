package evalpage

import (
	"encoding/xml"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hamlet/algos/eval"
	"hamlet/cmd/internal/show/report"
	"hamlet/stream"
)

// recorded is a stream of n events, its metrics and their summary.
func recorded(n int) (*Recorder, *report.Result) {
	r, m := NewRecorder(), eval.New()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		spam := random.Float64() < 0.4
		z := 3 * random.NormFloat64()
		if spam {
			z += 2
		} else {
			z -= 2
		}
		r.Scored(i+1, []string{"desk", "<b>users</b>", "feed"}[random.IntN(3)], spam, z)
		m.Add(spam, z)
	}
	r.Alerted(&stream.Alert{Event: 120, Kind: stream.AlertLabelNoise, State: stream.AlertRaised, Body: "text", Accused: "<b>users</b>", Reading: "labels went bad"})
	r.Alerted(&stream.Alert{Event: 180, Kind: stream.AlertLabelNoise, State: stream.AlertCleared, Body: "text", Reading: "nothing"})
	return r, &report.Result{Summary: m.Summary(), Sources: []eval.SourceDoubt{{Source: "<b>users</b>", Doubtful: 3, Learnt: 100}}, ModelSHA256: "00ff"}
}

func written(t *testing.T, r *Recorder, result *report.Result) string {
	t.Helper()
	dir := t.TempDir()
	if err := r.Write(dir, result, "hamlet eval <x>", time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The page has all parts, escapes every name and fetches nothing.
func TestPage(t *testing.T) {
	r, result := recorded(1000)
	html := written(t, r, result)
	for _, want := range []string{"Learning: error", "Learning: 1-ROCA%", ">ROC<", "Calibration", "Answers", "The first 400", ">Alarms<", ">Sources<",
		"Steps of incidents", "<td>120</td><td>label-noise</td><td>raised</td>", "&lt;b&gt;users&lt;/b&gt;", "<td>3.00 %</td>", "hamlet eval &lt;x&gt; on 1970-01-01", "00ff"} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if n := strings.Count(html, `role="img"`); n != 8 {
		t.Errorf("%d charts, want 8", n)
	}
	if strings.Contains(html, "<b>") || strings.Contains(html, "NaN") || strings.Contains(html, "Inf") {
		t.Error("a name is not escaped, or a figure is no number")
	}
	if link := regexp.MustCompile(`(?:src|href)=|@import|url\(|<script`).FindString(html); link != "" {
		t.Errorf("the page has %q", link)
	}
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(html, -1) {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in %s", err, svg)
			}
		}
	}
}

// Where counting begins after the stream's first event, the page says so.
func TestPageOfLaterEvents(t *testing.T) {
	all := []string{"over all events so far, each", "over all events so far, with", ">The first 400<", "the cold start"}
	later := []string{"over the events measured so far, each", "over the events measured so far, with", ">The first 400 measured<", "the first events measured"}
	for _, c := range []struct {
		skipped         int
		wanted, foreign []string
	}{{0, all, later}, {1, later, all}} {
		r, m := NewRecorder(), eval.New()
		for i := range 40 {
			r.Scored(c.skipped+i+1, "", i%2 == 0, float64(i%5)-2)
			m.Add(i%2 == 0, float64(i%5)-2)
		}
		html := written(t, r, &report.Result{Summary: m.Summary()})
		for _, text := range c.wanted {
			if !strings.Contains(html, text) {
				t.Errorf("%d events skipped: %q is missing", c.skipped, text)
			}
		}
		for _, text := range c.foreign {
			if strings.Contains(html, text) {
				t.Errorf("%d events skipped: the page says %q", c.skipped, text)
			}
		}
	}
}

// Every stream has a page, however short, one-sided or sure it is.
func TestPageOfOddStreams(t *testing.T) {
	for name, zs := range map[string][]float64{
		"none": {}, "one": {1}, "sure": {math.Inf(1), math.Inf(-1), 700, -700}, "fifteen": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	} {
		for _, both := range []bool{false, true} {
			r, m := NewRecorder(), eval.New()
			for i, z := range zs {
				spam := !both || i%2 == 0
				r.Scored(i+1, "", spam, z)
				m.Add(spam, z)
			}
			if html := written(t, r, &report.Result{Summary: m.Summary()}); strings.Contains(html, "NaN") {
				t.Errorf("%s: the page has what is no number", name)
			}
		}
	}
}

// The curves end at the figures of the table, and the parts sum to the whole.
func TestCurvesAgreeWithTheTable(t *testing.T) {
	for _, n := range []int{7, 1000, 5000} {
		r, result := recorded(n)
		written(t, r, result)
		last := r.learning[len(r.learning)-1]
		if last.n != n || math.Abs(last.wrong-float64(result.Error)) > 1e-12 || last.wrongLo > last.wrong || last.wrongHi < last.wrong {
			t.Errorf("%d events: error ends at %+v, want %v", n, last, result.Error)
		}
		if math.Abs(last.roca-float64(result.ROCA)) > 0.01 || last.rocaLo > last.roca || last.rocaHi < last.roca {
			t.Errorf("%d events: 1-ROCA%% ends at %+v, want %v", n, last, result.ROCA)
		}
		events, wrong, forecasts := 0, 0, 0
		for _, w := range r.windows.all {
			events, wrong = events+w.events, wrong+w.wrong
		}
		for _, f := range r.reliability {
			forecasts += f.n
		}
		if events != n || wrong != r.wrong || forecasts != n || len(r.windows.all) > mostWindows {
			t.Errorf("%d events: %d in %d windows, %d in bins; %d wrong, want %d", n, events, len(r.windows.all), forecasts, wrong, r.wrong)
		}
		answers := 0.0
		for _, s := range r.answersChart().Series {
			for _, y := range s.Y {
				if !math.IsNaN(y) {
					answers += y
				}
			}
		}
		if int(answers) != n {
			t.Errorf("%d events: %v in the bars", n, answers)
		}
	}
}

// The area above the ROC curve is 1-ROCA%.
func TestROCArea(t *testing.T) {
	r, result := recorded(4000)
	s := r.rocChart().Series[0]
	area := 0.0
	for i := 1; i < len(s.X); i++ {
		area += (s.X[i] - s.X[i-1]) * (s.Y[i] + s.Y[i-1]) / 2
	}
	if got := area / 100; math.Abs(got-float64(result.ROCA)) > 0.05*float64(result.ROCA) {
		t.Errorf("area %v, want %v", got, result.ROCA)
	}
}

// A long stream of many sources and alerts stays within the bounds.
func TestBounds(t *testing.T) {
	r := NewRecorder()
	for i := range 3 * mostSources {
		r.Scored(i+1, "s"+strings.Repeat("x", i%(2*mostSources)), true, -1)
		r.Alerted(&stream.Alert{Kind: stream.AlertCovariate, State: stream.AlertRaised, Event: uint64(i)})
	}
	if len(r.sources) != mostSources || r.others.events != mostSources || len(r.alerts) != mostAlerts || r.unlisted != 3*mostSources-mostAlerts {
		t.Errorf("%d sources, %d others, %d alerts, %d unlisted", len(r.sources), r.others.events, len(r.alerts), r.unlisted)
	}
	html := written(t, r, &report.Result{Summary: eval.New().Summary()})
	if !strings.Contains(html, "events are of sources that are not counted by name") || !strings.Contains(html, "more are not listed") {
		t.Error("the page does not say what it leaves out")
	}
}
