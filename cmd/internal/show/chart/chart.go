// Package chart draws line charts, points with intervals and bars as SVG. A figure of
// HTML adds a legend, a caption and the numbers. It needs no script and no network.
//
//	c := chart.Chart{
//		Title: "Learning curve",
//		X:     chart.Axis{Label: "messages so far", Log: true},
//		Y:     chart.Axis{Label: "error, %"},
//		Series: []chart.Series{
//			{Name: "ours", Kind: "line", X: n, Y: wrong, Lo: lo, Hi: hi},
//			{Name: "paper", Kind: "points", X: []float64{1000}, Y: []float64{2.5}, Reference: true},
//		},
//	}
//	figure, err := c.HTML() // for a page that holds Style
//	err = c.WriteSVG(file)  // for a file of its own
//
// # Rules
//
//   - Each name has a colour, a dash and a mark of its own. Series of one name share them.
//     A series without a name belongs to the one before it and has no entry in the legend.
//   - A NaN in Y is a gap. A NaN in Lo or Hi is a point without an interval.
//   - A value beyond an end of its axis is drawn at that end. So is zero on a log axis.
//   - The drawing is 400 units wide, and its text is 11 units high. On a narrow telephone
//     it is as legible as the text around it.
//   - Text has the font of the page. So its width is an estimate, from above.
package chart

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// A Chart is one drawing: two axes and what is drawn between them.
type Chart struct {
	Title   string   `json:"title,omitempty"`
	Caption string   `json:"caption,omitempty"`
	X       Axis     `json:"x,omitzero"`
	Y       Axis     `json:"y,omitzero"`
	Series  []Series `json:"series,omitempty"`
}

// An Axis has numbers or names. The zero Axis is linear and as long as its values need.
type Axis struct {
	Label string `json:"label,omitempty"`
	Log   bool   `json:"log,omitempty"`
	// Logit spaces probabilities by their log-odds.
	Logit bool     `json:"logit,omitempty"`
	Min   *float64 `json:"min,omitempty"`
	Max   *float64 `json:"max,omitempty"`
	// Categories are the names of the positions 0, 1, 2, …. Bars stand on the axis that
	// has them; without any, on X.
	Categories []string `json:"categories,omitempty"`
	// Named are positions with a text of their own, beside the computed ticks. Ticks
	// whose text would touch theirs are left out.
	Named []Tick `json:"named,omitempty"`
}

// A Tick is a position on an axis and its text.
type Tick struct {
	At   float64 `json:"at"`
	Text string  `json:"text"`
}

// A Kind says how a series is drawn.
type Kind string

const (
	Line   Kind = "line"   // joined; an interval is a band behind it
	Steps  Kind = "steps"  // a value holds until the next one
	Points Kind = "points" // marks; an interval is an error bar
	Bars   Kind = "bars"   // from zero, or from the end of a log axis
)

// A Series is values of one kind. X may be missing: its values are then 0, 1, 2, ….
type Series struct {
	Name string    `json:"name,omitempty"`
	Kind Kind      `json:"kind,omitempty"`
	X    []float64 `json:"x,omitempty"`
	Y    []float64 `json:"y,omitempty"`
	// Lo and Hi are the interval of each value: both or neither.
	Lo []float64 `json:"lo,omitempty"`
	Hi []float64 `json:"hi,omitempty"`
	// Faint series stay in the background.
	Faint bool `json:"faint,omitempty"`
	// Reference marks values of somebody else, such as a paper's: hollow and dashed.
	Reference bool `json:"reference,omitempty"`
}

// largest bounds the values, so that no difference of two of them overflows.
const largest = 1e300

// Validate reports every fault of the chart.
func (c *Chart) Validate() error {
	errs := []error{c.X.validate("x"), c.Y.validate("y")}
	if len(c.X.Categories) > 0 && len(c.Y.Categories) > 0 {
		errs = append(errs, errors.New("both axes have categories"))
	}
	for i := range c.Series {
		if err := c.Series[i].validate(); err != nil {
			errs = append(errs, fmt.Errorf("series %d, %q: %w", i, c.Series[i].Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("chart %q: %w", c.Title, err)
	}
	return nil
}

func (a *Axis) validate(name string) error {
	var errs []error
	kinds := 0
	for _, is := range []bool{a.Log, a.Logit, len(a.Categories) > 0} {
		if is {
			kinds++
		}
	}
	if kinds > 1 {
		errs = append(errs, errors.New("an axis is one of log, logit and categories"))
	}
	ends := []float64{}
	for _, end := range []*float64{a.Min, a.Max} {
		if end != nil {
			ends = append(ends, *end)
		}
	}
	for _, t := range a.Named {
		ends = append(ends, t.At)
	}
	for _, v := range ends {
		switch {
		case !usable(v):
			errs = append(errs, fmt.Errorf("%v is not a position", v))
		case a.Log && v < 1/largest, a.Logit && (v < 1/largest || v >= 1):
			errs = append(errs, fmt.Errorf("%v is not on this scale", v))
		}
	}
	if a.Min != nil && a.Max != nil && *a.Min >= *a.Max {
		errs = append(errs, fmt.Errorf("it ends at %v, not above its start, %v", *a.Max, *a.Min))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("axis %s: %w", name, err)
	}
	return nil
}

func (s *Series) validate() error {
	var errs []error
	switch s.Kind {
	case Line, Steps, Points, Bars:
	default:
		errs = append(errs, fmt.Errorf("kind %q: want line, steps, points or bars", s.Kind))
	}
	n := s.len()
	for _, part := range []struct {
		name   string
		values []float64
		needed bool
	}{{"X", s.X, false}, {"Y", s.Y, true}, {"Lo", s.Lo, len(s.Hi) > 0}, {"Hi", s.Hi, len(s.Lo) > 0}} {
		if len(part.values) != n && (part.needed || len(part.values) > 0) {
			errs = append(errs, fmt.Errorf("%s has %d values, want %d", part.name, len(part.values), n))
		}
		for i, v := range part.values {
			if part.name != "X" && math.IsNaN(v) {
				continue
			}
			if !usable(v) {
				errs = append(errs, fmt.Errorf("%s[%d] is %v", part.name, i, v))
				break
			}
		}
	}
	for i := range min(len(s.Lo), len(s.Hi)) {
		if s.Lo[i] > s.Hi[i] {
			errs = append(errs, fmt.Errorf("interval %d is from %v to %v", i, s.Lo[i], s.Hi[i]))
			break
		}
	}
	return errors.Join(errs...)
}

// len is how many values the series should have.
func (s *Series) len() int {
	if len(s.X) > 0 {
		return len(s.X)
	}
	return len(s.Y)
}

func (s *Series) x(i int) float64 {
	if len(s.X) == 0 {
		return float64(i)
	}
	return s.X[i]
}

// at returns v[i], or NaN where v has no values.
func at(v []float64, i int) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return v[i]
}

func usable(v float64) bool { return math.Abs(v) <= largest }

// gaps are values as JSON: NaN is null.
type gaps []float64

func (g gaps) MarshalJSON() ([]byte, error) {
	out := make([]*float64, len(g))
	for i := range g {
		if !math.IsNaN(g[i]) {
			out[i] = &g[i]
		}
	}
	return json.Marshal(out)
}

func (g *gaps) UnmarshalJSON(text []byte) error {
	var in []*float64
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*g = nil
	for _, v := range in {
		if v == nil {
			*g = append(*g, math.NaN())
		} else {
			*g = append(*g, *v)
		}
	}
	return nil
}

// seriesJSON is a Series whose gaps JSON can hold. Its fields hide those of the same name.
type seriesJSON struct {
	*plainSeries
	X  gaps `json:"x,omitempty"`
	Y  gaps `json:"y,omitempty"`
	Lo gaps `json:"lo,omitempty"`
	Hi gaps `json:"hi,omitempty"`
}

type plainSeries Series // without the methods

// MarshalJSON writes NaN as null.
func (s Series) MarshalJSON() ([]byte, error) {
	p := plainSeries(s)
	return json.Marshal(seriesJSON{&p, gaps(s.X), gaps(s.Y), gaps(s.Lo), gaps(s.Hi)})
}

// UnmarshalJSON reads null as NaN.
func (s *Series) UnmarshalJSON(text []byte) error {
	in := seriesJSON{plainSeries: &plainSeries{}}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*s = Series(*in.plainSeries)
	s.X, s.Y, s.Lo, s.Hi = in.X, in.Y, in.Lo, in.Hi
	return nil
}
