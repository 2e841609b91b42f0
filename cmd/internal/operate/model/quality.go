package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"hamlet/cmd/internal/operate/now"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/show/chart"
)

// answers are the labelled answers that are known.
type answers struct {
	matches []answered.Match
	since   time.Time // zero: not known
	quiet   string    // why there is no log loss, as a sentence; empty: there is
}

// answers returns what the feed knows of labels.
func (p *pages) answers(seen *now.Snapshot) (a answers) {
	a.since = seen.Labels.Since
	a.matches = slices.DeleteFunc(p.Matches(), func(m answered.Match) bool { return m.Decided().Before(a.since) })
	switch {
	case seen.Labels.Away != "":
		a.quiet = seen.Labels.Away
	case seen.Journal.None:
		a.quiet = "No scorer has written a journal of decisions yet, so there is no log loss. " +
			"Scorers write one unless told otherwise."
	case len(a.matches) == 0 && seen.Journal.Reading:
		a.quiet = "The journal of decisions is being read. Look again in a moment."
	case len(a.matches) == 0:
		a.quiet = "None of the answers that are remembered, of a day at most, has a label yet. So there is no log loss. " +
			"Labels come by hamlet learn, the folders of users, or the page Review."
	}
	return a
}

// A quality says how right labelled answers were: the log loss in nats with its 90 % interval.
type quality struct {
	Labelled       int
	Loss, Low, Top float64 // NaN without a labelled answer
}

func qualityOf(matches []answered.Match) quality {
	if len(matches) == 0 {
		return quality{Loss: math.NaN(), Low: math.NaN(), Top: math.NaN()}
	}
	loss := answered.FiguresOf(matches).LogLoss
	return quality{len(matches), float64(loss.Value), float64(loss.Low), float64(loss.High)}
}

// Interval reports whether there is one: of a single answer there is none.
func (q quality) Interval() bool { return !math.IsNaN(q.Low) && !math.IsNaN(q.Top) }

// A lossRow is the quality of a version: of its own answers, and of all since it was saved,
// whichever version gave them.
type lossRow struct{ Own, Since quality }

// A qualityCache computes the quality of versions at most every twenty seconds.
type qualityCache struct {
	mu    sync.Mutex
	at    time.Time
	of    string
	rows  map[int64]lossRow
	hours *chart.Chart
}

// get returns the quality of the versions, and of each hour.
func (c *qualityCache) get(now time.Time, model string, p *History, a answers) (map[int64]lossRow, *chart.Chart) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := fmt.Sprint(len(a.matches), p.Head, len(p.Versions))
	if c.of == of && now.Sub(c.at) < lossFor {
		return c.rows, c.hours
	}
	byTime := slices.Clone(a.matches)
	slices.SortStableFunc(byTime, func(x, y answered.Match) int { return x.Decided().Compare(y.Decided()) })
	own := map[string][]answered.Match{}
	for _, m := range byTime {
		if name, hash, ok := strings.Cut(m.Model, "/"); ok && name == model {
			own[hash] = append(own[hash], m)
		}
	}
	c.rows = map[int64]lossRow{}
	for _, v := range p.Versions {
		from, _ := slices.BinarySearchFunc(byTime, v.Saved,
			func(m answered.Match, saved time.Time) int { return m.Decided().Compare(saved) })
		row := lossRow{Since: qualityOf(byTime[from:]), Own: qualityOf(nil)}
		if len(v.SHA256) >= journalDigits {
			row.Own = qualityOf(own[v.SHA256[:journalDigits]])
		}
		c.rows[v.Version] = row
	}
	c.hours = lossByHour(now, byTime)
	c.of, c.at = of, now
	return c.rows, c.hours
}

// journalDigits is how many digits of a model's SHA-256 the journal has.
const journalDigits = 12

// lossByHour draws the log loss of each hour; nil if no hour has ten labelled answers.
func lossByHour(now time.Time, byTime []answered.Match) *chart.Chart {
	const hours, least = 24, 10
	series := chart.Series{Name: "log loss", Kind: chart.Points}
	for h := hours - 1; h >= 0; h-- {
		from, to := now.Add(-time.Duration(h+1)*time.Hour), now.Add(-time.Duration(h)*time.Hour)
		at := func(t time.Time) int {
			i, _ := slices.BinarySearchFunc(byTime, t, func(m answered.Match, t time.Time) int { return m.Decided().Compare(t) })
			return i
		}
		hour := byTime[at(from):at(to)]
		if len(hour) < least {
			continue
		}
		q := qualityOf(hour)
		series.X = append(series.X, -float64(h)-0.5)
		series.Y, series.Lo, series.Hi = append(series.Y, q.Loss), append(series.Lo, q.Low), append(series.Hi, q.Top)
	}
	if len(series.X) == 0 {
		return nil
	}
	zero, begin := 0.0, -float64(hours)
	return &chart.Chart{Title: "Log loss of labelled answers",
		Caption: "Each hour with at least ten labelled answers, with the 90 % interval. Lower is better; a coin has 0.69.",
		X:       chart.Axis{Label: "hours from now", Min: &begin, Max: &zero}, Y: chart.Axis{Label: "nats",
			Min: &zero}, Series: []chart.Series{series}}
}

// eventsChart draws how many events each kept version has learnt; nil of fewer than two.
func eventsChart(now time.Time, p *History) *chart.Chart {
	if len(p.Versions) < 2 {
		return nil
	}
	unit, name := time.Hour, "hours"
	switch oldest := now.Sub(p.Versions[len(p.Versions)-1].Saved); {
	case oldest < 2*time.Minute:
		unit, name = time.Second, "seconds"
	case oldest < 2*time.Hour:
		unit, name = time.Minute, "minutes"
	case oldest > 72*time.Hour:
		unit, name = 24*time.Hour, "days"
	}
	all := chart.Series{Name: "kept", Kind: chart.Points}
	served := chart.Series{Name: "answers come from", Kind: chart.Points}
	for i := len(p.Versions) - 1; i >= 0; i-- {
		v := &p.Versions[i]
		x, y := min(0, -float64(now.Sub(v.Saved))/float64(unit)), float64(v.Events)
		all.X, all.Y = append(all.X, x), append(all.Y, y)
		if v.Served {
			served.X, served.Y = append(served.X, x), append(served.Y, y)
		}
	}
	return &chart.Chart{Title: "Events learnt", Caption: "Each version that is kept, at the time at which it was saved.",
		X: chart.Axis{Label: name + " from now"}, Y: chart.Axis{Label: "events"}, Series: []chart.Series{all, served}}
}
