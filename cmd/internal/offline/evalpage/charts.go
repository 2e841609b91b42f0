package evalpage

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"hamlet/algos/eval"
	"hamlet/cmd/internal/show/chart"
	"hamlet/cmd/internal/show/report"
	"hamlet/stream"
)

// charts returns what the page shows. A chart without data is nil.
func (r *Recorder) charts() []*chart.Chart {
	return []*chart.Chart{
		r.errorChart(), r.rankingChart(), r.rocChart(), r.reliabilityChart(),
		r.answersChart(), r.firstChart(), r.alarmChart(), r.sourceChart(),
	}
}

// late tells whether counting began after the stream's first event, as with eval --from.
func (r *Recorder) late() bool { return r.begin > 1 }

// soFar names the events that the learning curves are over.
func (r *Recorder) soFar() string {
	if r.late() {
		return "over the events measured so far"
	}
	return "over all events so far"
}

// errorChart is the learning curve of the error.
func (r *Recorder) errorChart() *chart.Chart {
	s := chart.Series{Name: "error so far", Kind: chart.Line}
	for _, c := range r.learning {
		s.X, s.Y = append(s.X, float64(c.n)), append(s.Y, 100*c.wrong)
		s.Lo, s.Hi = append(s.Lo, 100*c.wrongLo), append(s.Hi, 100*c.wrongHi)
	}
	floor, top := 50/max(float64(r.ham+r.spam), 1), 100.0 // half an event
	return &chart.Chart{
		Title: "Learning: error",
		Caption: "On the wrong side of ½, " + r.soFar() +
			", each scored before it was learnt. The band is the 95 % interval. Zero is drawn at the lower edge.",
		X: chart.Axis{Label: "events so far", Log: true},
		Y: chart.Axis{Label: "error, %", Log: true, Min: &floor, Max: &top}, Series: []chart.Series{s},
	}
}

// rankingChart is the learning curve of 1-ROCA%. It needs both classes.
func (r *Recorder) rankingChart() *chart.Chart {
	s := chart.Series{Name: "1-ROCA% so far", Kind: chart.Line}
	least, some := math.Inf(1), false
	for _, c := range r.learning {
		s.X, s.Y = append(s.X, float64(c.n)), append(s.Y, c.roca)
		s.Lo, s.Hi = append(s.Lo, c.rocaLo), append(s.Hi, c.rocaHi)
		some = some || !math.IsNaN(c.roca)
		for _, v := range []float64{c.roca, c.rocaLo} {
			if v > 0 {
				least = min(least, v)
			}
		}
	}
	if !some {
		return nil
	}
	floor := max(min(least, 1), 1e-4)
	top := 100.0
	return &chart.Chart{
		Title: "Learning: 1-ROCA%",
		Caption: "Pairs of ham and spam in the wrong order, " + r.soFar() +
			", with DeLong's 95 % interval. Zero is drawn at the lower edge.",
		X: chart.Axis{Label: "events so far", Log: true},
		Y: chart.Axis{Label: "1-ROCA%", Log: true, Min: &floor, Max: &top}, Series: []chart.Series{s},
	}
}

// rocChart shows every threshold. No event counts as half of one, for the log axes.
func (r *Recorder) rocChart() *chart.Chart {
	if r.ham == 0 || r.spam == 0 {
		return nil
	}
	s := chart.Series{Name: "every threshold", Kind: chart.Line}
	hamAbove, spamAbove := 0.0, 0.0
	add := func() {
		lost, missed := 100*max(hamAbove, 0.5)/float64(r.ham), 100*max(float64(r.spam)-spamAbove, 0.5)/float64(r.spam)
		if n := len(s.X); n > 1 && lost < 1.005*s.X[n-1] && 1.005*missed > s.Y[n-1] {
			return // too close to the last point to be seen
		}
		s.X, s.Y = append(s.X, lost), append(s.Y, missed)
	}
	add()
	for _, p := range slices.Backward(r.bins.points()) {
		hamAbove, spamAbove = hamAbove+p.Ham, spamAbove+p.Spam
		add()
	}
	s.X, s.Y = append(s.X, 100), append(s.Y, 50/float64(r.spam))
	top := 100.0
	return &chart.Chart{
		Title: "ROC",
		Caption: "Ham lost against spam missed, at every threshold. Lower and further left is better. " +
			"None counts as half an event.",
		X: chart.Axis{Label: "ham lost, %", Log: true, Max: &top},
		Y: chart.Axis{Label: "spam missed, %", Log: true, Max: &top}, Series: []chart.Series{s},
	}
}

// reliabilityChart shows how often it was spam where the answer was p.
func (r *Recorder) reliabilityChart() *chart.Chart {
	least, most := 0.0003, 0.9997
	s := chart.Series{Name: "share of spam", Kind: chart.Points}
	for _, f := range r.reliability {
		if f.n == 0 {
			continue
		}
		n := float64(f.n)
		share := float64(f.spam) / n
		lo, hi := report.Wilson(share, n)
		s.X, s.Y = append(s.X, f.p/n), append(s.Y, share)
		s.Lo, s.Hi = append(s.Lo, lo), append(s.Hi, hi)
	}
	axis := func(label string) chart.Axis { return chart.Axis{Label: label, Logit: true, Min: &least, Max: &most} }
	return &chart.Chart{
		Title: "Calibration",
		Caption: "How often it was spam where the answer was p, with 95 % intervals. On the diagonal p is right. " +
			"Values beyond the edges are drawn on them.",
		X: axis("p, the answer"), Y: axis("share of spam"),
		Series: []chart.Series{s,
			{Name: "p is right", Kind: chart.Line, X: []float64{least, most}, Y: []float64{least, most}, Faint: true}},
	}
}

// answersChart counts ham and spam by the answer.
func (r *Recorder) answersChart() *chart.Chart {
	const width, side = 2, 7 // nats; bars on either side of 0
	var counts [2][2 * side]float64
	for _, p := range r.bins.points() {
		k := min(max(int(math.Floor(p.LogOdds/width))+side, 0), 2*side-1)
		counts[0][k] += p.Ham
		counts[1][k] += p.Spam
	}
	least := 0.5
	c := &chart.Chart{
		Title: "Answers",
		Caption: "Events by the log-odds of the answer: right of 0 it is called spam. " +
			"Values beyond the ends are counted there.",
		X: chart.Axis{Label: "log-odds of spam, nats"}, Y: chart.Axis{Label: "events", Log: true, Min: &least},
	}
	for class, name := range []string{"ham", "spam"} {
		s := chart.Series{Name: name, Kind: chart.Bars}
		for k, n := range counts[class] {
			if n == 0 {
				n = math.NaN()
			}
			s.X, s.Y = append(s.X, (float64(k)-side+0.5)*width), append(s.Y, n)
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// firstChart shows the log loss of the first events, beside that of guessing the share of
// spam so far. It is the cold start if they are the stream's first.
func (r *Recorder) firstChart() *chart.Chart {
	const begin = 10 // fewer are too noisy
	ours := chart.Series{Name: "the model", Kind: chart.Line}
	guess := chart.Series{Name: "share of spam so far as p", Kind: chart.Line, Faint: true}
	var sum, squares, guessed, spam float64
	for i, e := range r.first {
		loss := eval.LogLoss(e.spam, e.logOdds)
		sum, squares = sum+loss, squares+loss*loss
		share := (spam + 0.5) / (float64(i) + 1)
		if e.spam {
			guessed -= math.Log(share)
			spam++
		} else {
			guessed -= math.Log1p(-share)
		}
		n := float64(i + 1)
		if i+1 < begin {
			continue
		}
		mean := sum / n
		half := z95 * math.Sqrt(max(squares/n-mean*mean, 0)/n)
		ours.X, ours.Y = append(ours.X, n), append(ours.Y, mean)
		ours.Lo, ours.Hi = append(ours.Lo, max(mean-half, 0)), append(ours.Hi, mean+half)
		guess.X, guess.Y = append(guess.X, n), append(guess.Y, guessed/n)
	}
	if len(ours.X) == 0 {
		return nil
	}
	title, of, axis := "The first 400", "the cold start", "events so far"
	if r.late() {
		title, of, axis = "The first 400 measured", "the first events measured", "events measured so far"
	}
	return &chart.Chart{
		Title:   title,
		Caption: "Log loss of " + of + ": the mean so far with its 95 % interval.",
		X:       chart.Axis{Label: axis}, Y: chart.Axis{Label: "log loss, nats an event", Min: new(float64)},
		Series: []chart.Series{ours, guess},
	}
}

// alarmChart shows the error along the stream and where alarms were.
func (r *Recorder) alarmChart() *chart.Chart {
	s := chart.Series{Name: "error in a part of the stream", Kind: chart.Line}
	top := 0.0
	for _, w := range r.windows.all {
		share := float64(w.wrong) / float64(w.events)
		lo, hi := report.Wilson(share, float64(w.events))
		s.X, s.Y = append(s.X, float64(w.to)), append(s.Y, 100*share)
		s.Lo, s.Hi = append(s.Lo, 100*lo), append(s.Hi, 100*hi)
		top = max(top, 100*hi)
	}
	c := &chart.Chart{
		Title: "Alarms",
		Caption: "Error in parts of the stream, with 95 % intervals. Marks above it are alarms that were raised, " +
			"at the model's count of events.",
		X: chart.Axis{Label: "events"}, Y: chart.Axis{Label: "error, %", Min: new(float64)}, Series: []chart.Series{s},
	}
	var kinds []string
	for _, a := range r.alerts {
		if a.state == stream.AlertRaised && !slices.Contains(kinds, a.kind) {
			kinds = append(kinds, a.kind)
		}
	}
	for k, kind := range kinds {
		marks := chart.Series{Name: kind, Kind: chart.Points}
		for _, a := range r.alerts {
			if a.state == stream.AlertRaised && a.kind == kind {
				marks.X, marks.Y = append(marks.X, float64(a.event)), append(marks.Y, top*(1.05+0.07*float64(k)))
			}
		}
		c.Series = append(c.Series, marks)
	}
	return c
}

// mostShown is how many sources the chart has.
const mostShown = 20

// sourceChart shows the error of the largest sources. One source alone has none.
func (r *Recorder) sourceChart() *chart.Chart {
	if len(r.sources) < 2 {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(r.sources), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.sources[b].events, r.sources[a].events), cmp.Compare(a, b))
	})
	names = names[:min(mostShown, len(names))]
	slices.Reverse(names) // the largest stands at the top
	s := chart.Series{Name: "error", Kind: chart.Points}
	for i, name := range names {
		n := float64(r.sources[name].events)
		share := float64(r.sources[name].wrong) / n
		lo, hi := report.Wilson(share, n)
		s.X, s.Y = append(s.X, 100*share), append(s.Y, float64(i))
		s.Lo, s.Hi = append(s.Lo, 100*lo), append(s.Hi, 100*hi)
	}
	for i, name := range names {
		if name == "" {
			names[i] = "(no name)"
		}
	}
	return &chart.Chart{
		Title:   "Sources",
		Caption: "Error on the events of the largest sources, by the true label, with 95 % intervals.",
		X:       chart.Axis{Label: "error, %", Min: new(float64)}, Y: chart.Axis{Categories: names},
		Series: []chart.Series{s},
	}
}
