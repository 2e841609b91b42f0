package now

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/show/chart"
	"hamlet/cmd/internal/web/page"
)

// A view is what the page shows.
type view struct {
	*Snapshot
	Tiles   []tile
	Figures []figure
	Doors   []door
	Alarms  []alarm // the newest mostAlarms
	More    int     // further ones
	Sampled string  // a sentence where counts are estimates
}

// A tile is a figure that one sees first.
type tile struct {
	Name, Value, Note string
	Age               time.Time // in place of Value
	Bad               bool
}

// A figure is one of how right the answers were.
type figure struct{ Name, Value, Interval, Meaning string }

// A door is a row of the table.
type door struct {
	Name              string
	Answers           int64
	SpamShare, Unsure float64
	Half, NineTenths  string // milliseconds
}

type alarm struct {
	Alarm
	Kind, Sentence string
}

const (
	mostAlarms   = 20
	alarmLetters = 1000
)

func newView(s *Snapshot) *view {
	v := &view{Snapshot: s}
	j := &s.Journal
	if j.Estimated {
		v.Sampled = "So many answers came in the last hour that not all lines of the journal were read. " +
			"These counts are estimates."
		if j.OneOf > 1 {
			v.Sampled = fmt.Sprintf("So many answers come that one of %d lines of the journal is read. "+
				"These counts are estimates, and of as many labels.", j.OneOf)
		}
	}
	v.Tiles = v.tiles()
	v.Figures = figures(&s.Labels.Figures)
	for _, d := range j.Doors {
		v.Doors = append(v.Doors,
			door{page.Visible(d.Name), count(d.Total()), d.SpamShare(), d.UnsureShare(), ms(d.Half), ms(d.NineTenths)})
	}
	for i := range s.Alarms.Open {
		if i == mostAlarms {
			v.More = len(s.Alarms.Open) - mostAlarms
			break
		}
		a := &s.Alarms.Open[i]
		kind := a.Kind
		if kind == "" {
			kind = "suspicion"
		}
		v.Alarms = append(v.Alarms, alarm{*a, page.Visible(kind), page.Clip(page.Visible(a.Sentence), alarmLetters)})
	}
	return v
}

func count(n float64) int64 { return int64(math.Round(n)) }

func (v *view) tiles() []tile {
	j, l, m := &v.Journal, &v.Labels, &v.Learnt
	hour := "in the last hour"
	if j.Cut {
		hour = "in the last " + strconv.Itoa(int(math.Ceil(v.read().Sub(j.Since).Minutes()))) + " min"
	}
	if j.Away != "" {
		hour = "as last read"
	}
	total, _ := page.Number(count(j.Hour.Total()))
	perMinute, _ := page.Number(count(j.LastMinute))
	about := ""
	if j.Estimated {
		about = "about "
	}
	rate := tile{Name: "Answers a minute", Value: about + perMinute, Note: about + total + " " + hour}
	if (j.Reading || j.Away != "") && j.Hour.Total() == 0 {
		rate.Value, rate.Note = "–", "not known"
	}
	alarms := tile{Name: "Open alarms", Value: strconv.Itoa(len(v.Snapshot.Alarms.Open)),
		Bad: len(v.Snapshot.Alarms.Open) > 0}
	switch a := &v.Snapshot.Alarms; {
	case a.Unread && a.Away != "":
		alarms.Value, alarms.Note = "–", "not known"
	case a.Away != "":
		alarms.Note = "as last read"
	}
	all := []tile{
		alarms,
		rate,
		{Name: "Spam", Value: page.Percent(j.Hour.SpamShare(), 1), Note: hour},
		{Name: "Unsure", Value: page.Percent(j.Hour.UnsureShare(), 1), Note: hour},
		v.lag(),
	}
	age := tile{Name: "Model saved", Value: "–", Note: "no model yet"}
	if !m.Saved.IsZero() {
		events, _ := page.Number(m.Events)
		age = tile{Name: "Model saved", Age: m.Saved, Note: events + " events"}
		if m.Pinned {
			age.Note += ", pinned"
		}
	} else if m.Away != "" {
		age.Note = "The store cannot be read"
	}
	labels, _ := page.Number(l.Labelled)
	of := "of " + labels + " labels"
	switch l.Labelled {
	case 0:
		of = "no labels yet"
	case 1:
		of = "of one label"
	}
	return append(all, age,
		tile{Name: "Log loss", Value: page.Decimal(float64(l.LogLoss.Value), 3), Note: withInterval(l.LogLoss, 3, of)},
		tile{Name: "Calibration slope", Value: page.Decimal(float64(l.Slope.Value), 2), Note: withInterval(l.Slope, 2, of)})
}

func (v *view) lag() tile {
	m := &v.Learnt
	if !m.LagKnown {
		return tile{Name: "Lag", Value: "–", Note: "not known"}
	}
	lag, _ := page.Number(m.Lag)
	return tile{Name: "Lag", Value: lag, Note: "records not in the saved model"}
}

// withInterval returns "0.041 to 0.062, of 120 labels".
func withInterval(e answered.Interval, digits int, of string) string {
	if in := interval(e, 1, digits, ""); in != "" {
		return in + ", " + of
	}
	return of
}

func interval(e answered.Interval, unit float64, digits int, sign string) string {
	if !e.Low.Defined() || !e.High.Defined() {
		return ""
	}
	return page.Decimal(unit*float64(e.Low), digits) + " to " + page.Decimal(unit*float64(e.High), digits) + sign
}

// figures returns how right the answers were; nothing without a label.
func figures(f *answered.Figures) (all []figure) {
	if f.Labelled == 0 {
		return nil
	}
	for _, one := range []struct {
		name, meaning, sign string
		e                   answered.Interval
		unit                float64
		digits              int
	}{
		{"Error", "p was on the wrong side of ½", " %", f.Error, 100, 2},
		{"Log loss", "in nats; always saying ½ has 0.693", "", f.LogLoss, 1, 4},
		{"p less the share of spam", "0 is calibrated; above, p is too high", " %", f.Bias, 100, 2},
		{"Calibration slope", "1 is calibrated; below, the answers are too sure", "", f.Slope, 1, 2},
		{"1-ROCA%", "pairs of ham and spam in the wrong order", "", f.ROCA, 1, 3},
	} {
		value, in := "–", interval(one.e, one.unit, one.digits, one.sign)
		if one.e.Value.Defined() {
			value = page.Decimal(one.unit*float64(one.e.Value), one.digits) + one.sign
		}
		all = append(all, figure{one.name, value, in, one.meaning})
	}
	return all
}

// ms returns milliseconds with two digits that count.
func ms(t float64) string {
	switch {
	case math.IsNaN(t):
		return "–"
	case t < 1:
		return page.Decimal(t, 2)
	case t < 10:
		return page.Decimal(t, 1)
	}
	return page.Decimal(t, 0)
}

// Chart returns the answers of each minute of the last hour; nil without any.
func (v *view) Chart() *chart.Chart {
	if v.Journal.Hour.Total() == 0 {
		return nil
	}
	spam, ham, unsure := chart.Series{Name: "spam", Kind: chart.Line}, chart.Series{Name: "ham", Kind: chart.Line},
		chart.Series{Name: "unsure", Kind: chart.Line}
	n := len(v.Journal.Minutes)
	for i, m := range v.Journal.Minutes {
		at, known := float64(i-n+1), 1.0
		if v.Journal.Cut && m.Start.Before(v.Journal.Since) {
			known = math.NaN() // a gap
		}
		for _, one := range []struct {
			series *chart.Series
			n      float64
		}{{&spam, m.Spam}, {&ham, m.Ham}, {&unsure, m.Unsure}} {
			one.series.X, one.series.Y = append(one.series.X, at), append(one.series.Y, known*math.Round(one.n))
		}
	}
	zero := 0.0
	return &chart.Chart{
		Title:   "Answers a minute, by verdict",
		Caption: "The minute 0 is not over.",
		X:       chart.Axis{Label: "minutes, until now"}, Y: chart.Axis{Label: "answers", Min: &zero},
		Series: []chart.Series{ham, spam, unsure}, // in the colours of the other pages
	}
}

// read returns when the counts end.
func (v *view) read() time.Time {
	if v.Journal.Away == "" || v.Journal.Read.IsZero() {
		return v.At
	}
	return v.Journal.Read
}

// Since returns how far back the labels go, where that is less than a day.
func (v *view) Since() string {
	if age := v.read().Sub(v.Labels.Since); age < 24*time.Hour {
		return fmt.Sprintf("the last %.1f hours", age.Hours())
	}
	return "the last day"
}
