package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/eval"
	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
)

// alarms runs `hamlet-lab bench alarms`.
func alarms(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var c Command
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	args = append([]string{"alarms", "--resamples", "20", "--table-bits", "8"}, args...)
	err = settings.Run(ctx, "bench", "", &c, args, stdio)
	return out.String(), errs.String(), err
}

// csvRows writes a CSV of two inputs that depend on the label and a few random counts,
// mostly 0.
func csvRows(t *testing.T, n int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 9))
	var b strings.Builder
	b.WriteString("a,b,c,d,spam\n")
	for range n {
		y := r.IntN(2)
		fmt.Fprintf(&b, "%.3f,%.3f,%d,%d,%d\n", float64(2*y-1)+r.NormFloat64(), r.NormFloat64(), max(0, r.IntN(9)-6),
			max(0, r.IntN(9)-5), y)
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shownAlarms is what tests read of --json.
type shownAlarms struct {
	Sets        []string `json:"sets"`
	CleanEvents int      `json:"clean_events"`
	Counted     int      `json:"counted_events"`
	Before      int      `json:"events_before_faults"`
	Detectors   []struct {
		Name        string `json:"name"`
		FalseAlarms int    `json:"false_alarms"`
		Rate        shown  `json:"per_100000"`
		Faults      []struct {
			Set    string `json:"set"`
			Fault  string `json:"fault"`
			Raised int    `json:"raised"`
			Right  *int   `json:"right_first"`
			Of     int    `json:"of"`
			Delay  shown  `json:"delay"`
		} `json:"faults"`
	} `json:"detectors"`
}

// A shown is an interval in JSON.
type shown struct {
	Value eval.Measure `json:"value"`
}

// The whole command, on a small set: all detectors, the faults that apply, and a page.
func TestAlarms(t *testing.T) {
	set := csvRows(t, 300)
	page := filepath.Join(t.TempDir(), "page")
	out, progress, err := alarms(t.Context(), "--no-generator", "--events", "4000", "--seeds", "2", "--report", page,
		"--json", set)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(progress, "clean streams") || !strings.Contains(progress, "10 faults") {
		t.Errorf("progress: %q", progress)
	}
	var got shownAlarms
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Detectors) != 2+len(peers)+len(ownDetectors) || got.CleanEvents != 4000 || got.Counted != 2500 ||
		got.Before != 7000 {
		t.Errorf("%d detectors, %d clean events, %d counted, %d before", len(got.Detectors), got.CleanEvents,
			got.Counted, got.Before)
	}
	for _, d := range got.Detectors {
		var names []string
		for _, f := range d.Faults {
			names = append(names, f.Fault)
			if f.Set != "rows" || f.Of != 2 {
				t.Errorf("%s: %+v", d.Name, f)
			}
		}
		if want := "5 % flips, 10 % flips, 20 % flips, 20 % of spam, 20 % of ham, bad source, new policy, class " +
			"balance, rescaled"; strings.Join(names, ", ") != want {
			t.Fatalf("%s: faults %s, want %s", d.Name, strings.Join(names, ", "), want)
		}
		switch d.Name {
		case "always":
			if d.FalseAlarms != got.Counted || d.Rate.Value != 100_000 || d.Faults[0].Raised != 2 ||
				d.Faults[0].Delay.Value != 1 {
				t.Errorf("always: %+v", d)
			}
		case "never":
			if d.FalseAlarms != 0 || d.Faults[0].Raised != 0 || d.Faults[0].Delay.Value.Defined() {
				t.Errorf("never: %+v", d)
			}
		case "suspected":
			if d.Faults[2].Raised != 2 || d.Faults[2].Right != nil {
				t.Errorf("20 %% flips: suspected in %+v", d.Faults[2])
			}
		case "named":
			if f := d.Faults[2]; f.Raised != 2 || f.Right == nil || *f.Right != 2 {
				t.Errorf("20 %% flips: named in %+v", f)
			}
			if f := d.Faults[7]; f.Right != nil {
				t.Errorf("class balance has a right name: %+v", f)
			}
		}
	}

	html, err := os.ReadFile(filepath.Join(page, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(html), `role="img"`); n != 9 {
		t.Errorf("%d plots, want 9", n)
	}
	if strings.Contains(string(html), "NaN") || strings.Contains(string(html), "http://") &&
		strings.Contains(string(html), "src=") {
		t.Error("the page has what is no number, or fetches something")
	}
}

// Wrong usage is reported before anything runs.
func TestAlarmsUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--events", "0"}, "--events"},
		{[]string{"--events", "2000"}, "--events"},
		{[]string{"--seeds", "0"}, "--seeds"},
		{[]string{"--resamples", "0"}, "--resamples"},
		{[]string{"--no-generator"}, "name a SOURCE"},
		{[]string{"--no-alarms"}, "--no-alarms"},
		{[]string{"--table-bits", "99"}, "table_bits"},
	} {
		_, _, err := alarms(t.Context(), c.args...)
		var usage *cli.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want wrong usage about %s", c.args, err, c.want)
		}
	}
	if _, _, err := alarms(t.Context(), "--no-generator", filepath.Join(t.TempDir(), "none.csv")); err == nil {
		t.Error("a file that is not there was taken")
	}
}

// small is a plan that takes a second.
var small = plan{events: 2_400, Seeds: 2, Seed: 1, resamples: 20, length: 1_200, learnt: 500, faultAt: 700,
	Horizon: 300}

// Concurrency does not affect the result. Until its fault, a stream equals the stream
// without fault.
func TestAlarmsAreReproducible(t *testing.T) {
	w := newGenerator(model.Config{TableBits: 10})
	first := (*recording)(nil)
	for range 2 {
		rec, err := small.collect(t.Context(), []*population{w}, newPhases(&bytes.Buffer{}))
		if err != nil {
			t.Fatal(err)
		}
		if len(rec.clean) != 2 || len(rec.clean[0].loss) != 1_200 || len(rec.trials) != len(faults) {
			t.Fatalf("%d clean streams of %d, %d trials", len(rec.clean), len(rec.clean[0].loss), len(rec.trials))
		}
		for k, streams := range rec.faulty {
			for i, s := range streams {
				if len(s.loss) != 1_000 || !slices.Equal(s.loss[:700], rec.faulty[0][i].loss[:700]) {
					t.Fatalf("%s: %d events, or others before the fault", rec.trials[k].fault.name, len(s.loss))
				}
			}
		}
		if slices.Equal(rec.faulty[0][0].loss, rec.faulty[0][1].loss) ||
			slices.Equal(rec.clean[0].loss[:1_000], rec.faulty[0][0].loss) {
			t.Error("two seeds give one stream")
		}
		if first != nil && (!slices.Equal(first.clean[1].loss, rec.clean[1].loss) ||
			!slices.Equal(first.faulty[5][1].loss, rec.faulty[5][1].loss)) {
			t.Error("two runs differ")
		}
		first = rec
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := small.collect(ctx, []*population{w}, newPhases(&bytes.Buffer{})); !errors.Is(err, context.Canceled) {
		t.Errorf("after an end: %v", err)
	}
}

// The model's own incidents are in the series where the model opened and named them.
func TestSeriesHoldsOwnAlarms(t *testing.T) {
	w, err := newSet("rows", source.Config{Paths: []string{csvRows(t, 400)}},
		func(dense []string) (model.Config, error) {
			return model.Config{TableBits: 8, Dense: dense}, nil
		}, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	p := small
	p.faultAt, p.Horizon, p.Seeds = 3_000, 1_000, 1
	rec, err := p.collect(t.Context(), []*population{w}, newPhases(&bytes.Buffer{}))
	if err != nil {
		t.Fatal(err)
	}
	s := rec.faulty[2][0] // 20 % flips
	suspected, named := s.own(ownSuspected), s.own(ownNamed)
	if len(named) == 0 || suspected[0] <= 3_000 || suspected[0] > named[0] || !slices.IsSorted(suspected) {
		t.Errorf("suspected at %v, named at %v, want after 3,000", suspected, named)
	}
	if kind, ok := s.firstName(3_000, 4_000); !ok || kind != s.names[0].kind {
		t.Errorf("the first name is %q", kind)
	}
	if _, ok := s.firstName(0, 3_000); ok {
		t.Errorf("names %v before the fault", s.names)
	}
}

// Each fault changes about 4,000 events as described, but not the shared bodies.
func TestFaults(t *testing.T) {
	v := func(c float64) []feature.Number {
		return []feature.Number{{Name: "a", Value: 1}, {Name: "c", Value: c}}
	}
	var set []model.Example
	for i := range 100 {
		set = append(set, model.Example{Spam: i%2 == 0, Body: model.Body{Vector: v(float64(i % 4 / 3 * 10))}})
	}
	w := &population{name: "set", model: model.Config{Dense: []string{"a", "c"}}, set: set, bad: synthetic.BadFeed,
		columns: columnsOf(set)}
	const n = 4_000
	for i := range faults {
		f := &faults[i]
		alter := f.of(w, rand.New(rand.NewPCG(7, uint64(i))))
		if alter == nil {
			if f.name != "new campaign" {
				t.Errorf("a set has no %s", f.name)
			}
			continue
		}
		next, err := w.open(3, 100, f)
		if err != nil {
			t.Fatal(err)
		}
		var flipped, spamFlipped, bad, badFlipped, spam, kept, mirrored, tripled float64
		for range n {
			ex, err := next()
			if err != nil {
				t.Fatal(err)
			}
			was := ex
			keep := alter(&ex)
			if was.Source == synthetic.BadFeed {
				bad++
			}
			if ex.Spam != was.Spam {
				flipped++
				if was.Spam {
					spamFlipped++
				}
				if was.Source == synthetic.BadFeed {
					badFlipped++
				}
			}
			if was.Spam {
				spam++
				if keep {
					kept++
				}
			} else if !keep {
				t.Fatalf("%s leaves ham out", f.name)
			}
			at, to := was.Body.Vector[1].Value, ex.Body.Vector[1].Value
			if at == 10 && to == 0 || at == 0 && to == 1 {
				mirrored++
			}
			if ex.Body.Vector[0].Value == 3 && to == 3*at {
				tripled++
			}
		}
		// Fractions of about 4,000 draws are within 4 standard deviations.
		near := func(what string, got, of, want float64) {
			if sd := math.Sqrt(want * (1 - want) / of); math.Abs(got/of-want) > 4*sd {
				t.Errorf("%s: %s is %.4f, want %.4f ± %.4f", f.name, what, got/of, want, 4*sd)
			}
		}
		wrong, left := 0., 1.
		switch f.name {
		case "5 % flips":
			wrong = .05
		case "10 % flips":
			wrong = .1
		case "20 % flips":
			wrong = .2
		case "20 % of spam", "20 % of ham":
			ofSpam := f.name == "20 % of spam"
			of := spam
			if !ofSpam {
				of = n - spam
			}
			near("flipped of the class", flipped, of, .2)
			if ofSpam != (spamFlipped > 0) || ofSpam && flipped != spamFlipped {
				t.Errorf("%s: %v are flipped, %v of them spam", f.name, flipped, spamFlipped)
			}
			wrong = flipped / n
		case "bad source":
			near("its share", bad, n, .25)
			near("what is flipped of it", badFlipped, bad, .5)
			if flipped != badFlipped {
				t.Error("other sources' labels are flipped")
			}
			wrong = flipped / n
		case "class balance":
			left = .25
		case "new policy":
			near("what is mirrored", mirrored, n, 1)
		case "rescaled":
			near("what is scaled", tripled, n, 1)
		}
		near("flipped", flipped, n, wrong)
		near("spam that stays", kept, spam, left)
	}
	for i := range set {
		if !slices.Equal(set[i].Body.Vector, v(float64(i%4/3*10))) {
			t.Fatalf("row %d of the set was changed: %v", i, set[i].Body.Vector)
		}
	}
}

// The fault of a bad source does not apply to a set without events of that source.
func TestBadSourceThatSaysNothing(t *testing.T) {
	events := func(sources ...string) (set []model.Example) {
		for _, s := range sources {
			set = append(set, model.Example{Source: s,
				Body: model.Body{Vector: []feature.Number{{Name: "a", Value: 1}}}})
		}
		return set
	}
	at := slices.IndexFunc(faults, func(f fault) bool { return f.name == "bad source" })
	for _, c := range []struct {
		sources []string
		bad     string
		tried   bool
	}{
		{[]string{"", ""}, synthetic.BadFeed, true},
		{[]string{"default"}, synthetic.BadFeed, true},
		{[]string{"desk", ""}, synthetic.BadFeed, true}, // what carries none is given the three
		{[]string{"desk", "trap"}, synthetic.BadFeed, false},
		{[]string{"desk", "trap"}, "trap", true},
		{[]string{"", ""}, "trap", false},
	} {
		w := &population{set: events(c.sources...), bad: c.bad}
		alter := faults[at].of(w, rand.New(rand.NewPCG(1, 1)))
		if (alter != nil) != c.tried {
			t.Errorf("sources %q, %q bad: tried %v, want %v", c.sources, c.bad, alter != nil, c.tried)
		}
		if alter == nil {
			continue
		}
		next, err := w.open(1, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		flipped := 0
		for range 200 {
			ex, err := next()
			if err != nil {
				t.Fatal(err)
			}
			if alter(&ex); ex.Spam { // the set is ham
				flipped++
			}
		}
		if flipped == 0 {
			t.Errorf("sources %q, %q bad: the fault does nothing", c.sources, c.bad)
		}
	}
}

// Two sets of one name get different names, and both count before their faults.
func TestSetsOfOneName(t *testing.T) {
	set := csvRows(t, 300)
	other := filepath.Join(t.TempDir(), filepath.Base(set))
	b, err := os.ReadFile(set)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, b, 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := alarms(t.Context(), "--no-generator", "--events", "6000", "--seeds", "1", "--json", set, other)
	if err != nil {
		t.Fatal(err)
	}
	var got shownAlarms
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Sets, []string{"rows", "rows (2)"}) || got.Before != 7_000 {
		t.Errorf("sets %q, %d events before the faults", got.Sets, got.Before)
	}
	for _, d := range got.Detectors {
		if d.Faults[0].Set != "rows" || d.Faults[len(d.Faults)-1].Set != "rows (2)" {
			t.Errorf("%s: %+v", d.Name, d.Faults)
		}
	}

	// A detector that raises one alarm in each stream before its fault.
	p := plan{learnt: 500, faultAt: 700, Horizon: 300, resamples: 20}
	rec := &recording{}
	for i := range 2 {
		for k := range 2 {
			rec.trials = append(rec.trials, trial{i, "rows", &faults[k]})
			rec.faulty = append(rec.faulty, []*series{{loss: make([]float64, 1_000)}})
		}
	}
	if d := p.judge(rec, detector{}, func(*series) []int { return []int{600} }); d.Beforehand != 2 {
		t.Errorf("%d alarms before the faults of two sets, want 2", d.Beforehand)
	}
	populations := []*population{{name: "a"}, {name: "a (2)"}, {name: "a"}, {name: "a"}}
	distinguish(populations)
	var names []string
	for _, w := range populations {
		names = append(names, w.name)
	}
	if want := []string{"a", "a (2)", "a (3)", "a (4)"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
}

// Hashed names are mirrored by adding and removing them.
func TestPolicyOfHashedNames(t *testing.T) {
	var set []model.Example
	for i := range 100 {
		var v []feature.Number
		if i%3 == 0 {
			v = append(v, feature.Number{Name: "m", Value: 1})
		}
		v = append(v, feature.Number{Name: "z", Value: 1})
		set = append(set, model.Example{Body: model.Body{Vector: v}})
	}
	w := &population{set: set, columns: columnsOf(set)}
	alter := policy(w, rand.New(rand.NewPCG(1, 1)))
	for i := range set {
		ex := set[i]
		alter(&ex)
		want := []string{"m", "z"}
		if i%3 == 0 {
			want = []string{"z"} // z is in all rows, and no candidate
		}
		var got []string
		for _, v := range ex.Body.Vector {
			got = append(got, v.Name)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("row %d: %v, want %v", i, got, want)
		}
	}
}
