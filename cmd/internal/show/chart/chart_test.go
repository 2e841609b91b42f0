package chart

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func ptr(v float64) *float64 { return &v }

var nan = math.NaN()

// examples are charts of every kind.
func examples() map[string]*Chart {
	curve := func(f func(x float64) float64) (xs, ys, lo, hi []float64) {
		for i := 1; i <= 40; i++ {
			x := float64(i) * 25
			xs, ys = append(xs, x), append(ys, f(x))
			lo, hi = append(lo, f(x)*0.8), append(hi, f(x)*1.2)
		}
		return
	}
	ax, ay, alo, ahi := curve(func(x float64) float64 { return 40 / math.Sqrt(x) })
	_, by, _, _ := curve(func(x float64) float64 { return 60 / math.Sqrt(x) })
	by[20] = nan
	names := []string{"header words", "word pairs of the text", "a", "<script>", "sender & host", "a source with a very long name that cannot be written at a tick"}
	return map[string]*Chart{
		"learning": {Title: "Learning", Caption: "Error over all messages so far.", X: Axis{Label: "messages so far", Log: true}, Y: Axis{Label: "error, %"},
			Series: []Series{{Name: "ours", Kind: Line, X: ax, Y: ay, Lo: alo, Hi: ahi}, {Name: "theirs", Kind: Steps, X: ax, Y: by},
				{Name: "paper", Kind: Points, X: []float64{100, 500}, Y: []float64{4, 2}, Lo: []float64{3, nan}, Hi: []float64{5, nan}, Reference: true},
				{Name: "paper's curve", Kind: Line, X: []float64{100, 500, 900}, Y: []float64{5, 3, 2}, Reference: true}, {Name: "truth", Kind: Line, X: []float64{25, 1000}, Y: []float64{1, 1}, Faint: true}}},
		"roc": {Title: "ROC", X: Axis{Label: "ham lost, %", Log: true, Min: ptr(0.004), Max: ptr(100)}, Y: Axis{Label: "spam missed, %", Log: true, Min: ptr(0.01), Max: ptr(100)},
			Series: []Series{{Name: "a", Kind: Line, X: []float64{0.004, 0.1, 1, 100}, Y: []float64{100, 2, 0.3, 0}}}},
		"reliability": {Title: "Reliability", X: Axis{Label: "probability", Logit: true, Min: ptr(0.0003), Max: ptr(0.9997)}, Y: Axis{Label: "fraction", Logit: true, Min: ptr(0.0003), Max: ptr(0.9997)},
			Series: []Series{{Kind: Line, X: []float64{0, 1}, Y: []float64{0, 1}, Faint: true}, {Name: "ours", Kind: Points, X: []float64{0.001, 0.1, 0.5, 0.99}, Y: []float64{0, 0.12, 0.45, 0.98}, Lo: []float64{0, 0.1, 0.4, 0.97}, Hi: []float64{0.01, 0.2, 0.5, 0.99}}}},
		"bars": {Title: "Bars", X: Axis{Categories: names}, Y: Axis{Label: "count"},
			Series: []Series{{Name: "ours", Kind: Bars, Y: []float64{12000, 5, -3000, 2, 9000, 1}, Lo: []float64{11000, 4, -4000, 1, 8000, nan}, Hi: []float64{13000, 6, -2000, 3, 9900, nan}}, {Name: "paper", Kind: Bars, Y: []float64{1, 2000, 3, 4, 5, nan}, Reference: true}}},
		"sideways": {Title: "Sideways", X: Axis{Label: "share"}, Y: Axis{Label: "source", Categories: names},
			Series: []Series{{Name: "ours", Kind: Bars, X: []float64{1, 2, 3, 4, 5, 6}, Y: []float64{0, 1, 2, 3, 4, 5}, Lo: []float64{0, 1, 2, 3, 4, 5}, Hi: []float64{2, 3, 4, 5, 6, 7}}, {Name: "paper", Kind: Points, X: []float64{2, 3}, Y: []float64{0, 1}, Lo: []float64{1, 2}, Hi: []float64{3, 4}, Reference: true}}},
		"histogram": {Title: "Histogram", X: Axis{Label: "margin"}, Y: Axis{Label: "records"}, Series: []Series{{Name: "n", Kind: Bars, X: []float64{-1, -0.5, 0, 0.5, 1}, Y: []float64{3, 8, 15, 9, 2}}}},
		"named":     {Title: "Named", X: Axis{Label: "false alarms", Log: true, Named: []Tick{{0.5, "0"}}}, Y: Axis{Label: "delay", Log: true, Named: []Tick{{1250, ">1000"}}}, Series: []Series{{Name: "page-hinkley", Kind: Points, X: []float64{0.5, 7, 30}, Y: []float64{1250, 80, 300}}, {Kind: Line, X: []float64{3, 12}, Y: []float64{80, 80}}}},
		"empty":     {Title: "Empty", X: Axis{Label: "x"}, Y: Axis{Label: "y"}},
		"one":       {Title: "One", X: Axis{}, Y: Axis{Log: true}, Series: []Series{{Name: "a", Kind: Line, Y: []float64{7}}}},
		"far":       {Title: "Far", X: Axis{Label: strings.Repeat("long words ", 40)}, Y: Axis{Label: strings.Repeat("W", 200)}, Series: []Series{{Name: strings.Repeat("name ", 50), Kind: Line, X: []float64{1e12, 1e12 + 1}, Y: []float64{1e-300, 1e300}}}},
		"constant":  {Title: "Constant", Series: []Series{{Name: "c", Kind: Line, X: []float64{1, 2, 3}, Y: []float64{1e6, 1e6, 1e6}}}},
		"decades":   {Title: "Decades", X: Axis{Log: true}, Y: Axis{Log: true}, Series: []Series{{Name: "c", Kind: Line, X: []float64{1e-12, 1e15}, Y: []float64{3, 5}}}},
	}
}

// placed is a text of a drawing.
type placed struct {
	x, y   float64
	anchor string
	turned bool
	text   string
}

func parse(t *testing.T, svg string) (width, height float64, all []placed) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(svg))
	var open *placed
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return width, height, all
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			attr := map[string]string{}
			for _, a := range e.Attr {
				attr[a.Name.Local] = a.Value
			}
			switch e.Name.Local {
			case "svg":
				var zero float64
				if _, err := fmt.Sscanf(attr["viewBox"], "%g %g %g %g", &zero, &zero, &width, &height); err != nil || attr["role"] != "img" {
					t.Fatalf("svg has %v: %v", attr, err)
				}
			case "text":
				open = &placed{anchor: attr["text-anchor"], turned: attr["transform"] != ""}
				open.x, _ = strconv.ParseFloat(attr["x"], 64)
				open.y, _ = strconv.ParseFloat(attr["y"], 64)
			case "path":
				if strings.ContainsAny(attr["d"], "NI") {
					t.Errorf("path %q", attr["d"])
				}
			}
		case xml.CharData:
			if open != nil {
				open.text += string(e)
			}
		case xml.EndElement:
			if e.Name.Local == "text" {
				all, open = append(all, *open), nil
			}
		}
	}
}

// checkText checks that all text is inside of the drawing and that no two touch.
func checkText(t *testing.T, svg string) {
	t.Helper()
	width, height, all := parse(t, svg)
	type box struct{ x0, y0, x1, y1 float64 }
	var boxes []box
	for _, p := range all {
		wide := textWidth(p.text)
		b := box{p.x, p.y - fontSize*0.8, p.x + wide, p.y + fontSize*0.25}
		switch p.anchor {
		case "middle":
			b.x0, b.x1 = p.x-wide/2, p.x+wide/2
		case "end":
			b.x0, b.x1 = p.x-wide, p.x
		}
		if p.turned {
			b = box{p.x - wide*math.Cos(tiltAngle) - fontSize, p.y - fontSize, p.x + fontSize/2, p.y + wide*math.Sin(tiltAngle)}
		}
		if b.x0 < 0 || b.y0 < 0 || b.x1 > width || b.y1 > height {
			t.Errorf("%q at %+v is outside of %g × %g", p.text, b, width, height)
		}
		for i, o := range boxes {
			if !p.turned && !all[i].turned && b.x0 < o.x1 && o.x0 < b.x1 && b.y0 < o.y1 && o.y0 < b.y1 {
				t.Errorf("%q touches %q", p.text, all[i].text)
			}
		}
		boxes = append(boxes, b)
	}
}

func TestTextIsInside(t *testing.T) {
	for name, c := range examples() {
		t.Run(name, func(t *testing.T) {
			for _, alone := range []bool{false, true} {
				svg, err := c.svg(alone)
				if err != nil {
					t.Fatal(err)
				}
				checkText(t, string(svg))
			}
		})
	}
}

// The last tick was once clipped: its text is centred on the edge of the plot.
func TestLastTickHasRoom(t *testing.T) {
	svg, err := examples()["roc"].svg(false)
	if err != nil {
		t.Fatal(err)
	}
	width, _, all := parse(t, string(svg))
	for _, p := range all {
		if p.anchor == "middle" && p.text == "100" {
			if end := p.x + textWidth("100")/2; end > width || end < width-60 {
				t.Errorf("100 ends at %g of %g", end, width)
			}
			return
		}
	}
	t.Errorf("no tick 100 in %+v", all)
}

func TestEscapes(t *testing.T) {
	const evil = `</title><script>alert("x")</script>&'` + "\x00\xff"
	c := &Chart{Title: evil, Caption: evil, X: Axis{Label: evil}, Y: Axis{Categories: []string{evil}},
		Series: []Series{{Name: evil, Kind: Points, X: []float64{1}, Y: []float64{0}}}}
	var svg strings.Builder
	if err := c.WriteSVG(&svg); err != nil {
		t.Fatal(err)
	}
	checkText(t, svg.String())
	page, err := c.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{svg.String(), string(page)} {
		if strings.Contains(text, "<script") || strings.Contains(text, "\x00") {
			t.Errorf("not escaped: %s", text)
		}
		if !strings.Contains(text, "&lt;script") {
			t.Errorf("the name is missing: %s", text)
		}
	}
}

func TestValidate(t *testing.T) {
	one := []float64{1}
	for want, c := range map[string]*Chart{
		"kind":           {Series: []Series{{Kind: "pie", Y: one}}},
		"Y has 2 values": {Series: []Series{{Kind: Line, X: one, Y: []float64{1, 2}}}},
		"X[0] is NaN":    {Series: []Series{{Kind: Line, X: []float64{nan}, Y: one}}},
		"Y[0] is +Inf":   {Series: []Series{{Kind: Line, X: one, Y: []float64{math.Inf(1)}}}},
		"Hi has 0":       {Series: []Series{{Kind: Line, X: one, Y: one, Lo: one}}},
		"from 2 to 1":    {Series: []Series{{Kind: Line, Y: one, Lo: []float64{2}, Hi: one}}},
		"scale":          {X: Axis{Log: true, Min: ptr(0)}},
		"ends at":        {X: Axis{Min: ptr(1), Max: ptr(1)}},
		"one of log":     {X: Axis{Log: true, Categories: []string{"a"}}},
		"both axes":      {X: Axis{Categories: []string{"a"}}, Y: Axis{Categories: []string{"a"}}},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if err := c.WriteSVG(io.Discard); err == nil {
			t.Errorf("%q: it was drawn", want)
		}
	}
	for name, c := range examples() {
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A chart survives JSON, with its gaps.
func TestJSON(t *testing.T) {
	for name, c := range examples() {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var back Chart
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %v in %s", name, err, text)
		}
		first, err1 := c.HTML()
		second, err2 := back.HTML()
		if err1 != nil || err2 != nil || first != second {
			t.Errorf("%s: %v, %v; got %s, want %s", name, err1, err2, second, first)
		}
	}
}

// Where values stand, by hand.
func TestScale(t *testing.T) {
	for _, test := range []struct {
		axis   Axis
		values []float64
		v      float64
		want   float64
	}{
		{Axis{}, []float64{0, 10}, 5, 0.5},
		{Axis{Log: true}, []float64{1, 100}, 10, 0.5},
		{Axis{Log: true}, []float64{1, 100}, 0, 0},
		{Axis{Min: ptr(0), Max: ptr(4)}, nil, 9, 1},
		{Axis{Logit: true, Min: ptr(0.1), Max: ptr(0.9)}, nil, 0.5, 0.5},
		{Axis{Categories: []string{"a", "b"}}, nil, 0, 0.25},
	} {
		if got := newScale(&test.axis, test.values, false).at(test.v); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%+v: %v is at %v, want %v", test.axis, test.v, got, test.want)
		}
	}
}

func TestTicks(t *testing.T) {
	text := func(a Axis, n int, values ...float64) string {
		var all []string
		for _, tick := range newScale(&a, values, false).ticks(n) {
			all = append(all, tick.Text)
		}
		return strings.Join(all, " ")
	}
	for _, test := range []struct{ got, want string }{
		{text(Axis{}, 5, 0, 1), "0 0.2 0.4 0.6 0.8 1.0"},
		{text(Axis{}, 5, -3, 97), "−20 0 20 40 60 80 100"},
		{text(Axis{}, 5, 0, 23000), "0 5000 10,000 15,000 20,000 25,000"},
		{text(Axis{}, 5, 0, 3e7), "0 10⁷ 2×10⁷ 3×10⁷"},
		{text(Axis{}, 3, 0, 0.00004), "0 0.00001 0.00002 0.00003 0.00004"},
		{text(Axis{Log: true}, 6, 1, 1000), "1 10 100 1000"},
		{text(Axis{Log: true}, 6, 0.02, 0.5), "0.02 0.05 0.1 0.2 0.5"},
		{text(Axis{Log: true}, 5, 1e-9, 1), "10⁻⁸ 10⁻⁶ 0.0001 0.01 1"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

// A figure's table has the values, and its legend each name once.
func TestHTML(t *testing.T) {
	page, err := examples()["learning"].HTML()
	if err != nil {
		t.Fatal(err)
	}
	text := html.UnescapeString(string(page))
	for want, n := range map[string]int{"<figure": 1, "</span>": 5, "<details>": 1, `<th scope="row">paper</th><td>100</td><td>4 (3 to 5)</td>`: 1, `tabindex="0" role="region"`: 1, "role=\"img\"": 1} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%q stands %d times, want %d", want, got, n)
		}
	}
	if link := regexp.MustCompile(`(?:src|href)=|@import|url\(|<script|NaN`).FindString(text + Style); link != "" {
		t.Errorf("the figure has %q", link)
	}
}

// A row of an axis with categories starts with its category. One series needs no column of names.
func TestTableOfCategories(t *testing.T) {
	c := &Chart{Y: Axis{Label: "source", Categories: []string{"desk", "feed"}}, X: Axis{Label: "rate"},
		Series: []Series{{Name: "rate", Kind: Points, X: []float64{-1, 2}, Y: []float64{0, 1}, Lo: []float64{-2, 1}, Hi: []float64{0, 3}}}}
	head, rows, _ := c.table()
	if got, want := fmt.Sprint(head, rows), "[source rate] [[desk −1 (−2 to 0)] [feed 2 (1 to 3)]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.Series = append(c.Series, Series{Name: "before", Kind: Points, X: []float64{4}, Y: []float64{1}})
	head, rows, _ = c.table()
	if got, want := fmt.Sprint(head, rows[2]), "[source series rate] [feed before 4]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Series of one name share a colour; a series without one has that of the last.
func TestColours(t *testing.T) {
	c := &Chart{Series: []Series{{Name: "a"}, {Name: "b"}, {}, {Name: "a", Reference: true}, {Name: "c"}}}
	var got []int
	for _, s := range c.styles() {
		got = append(got, s.colour)
	}
	if want := []int{0, 1, 1, 0, 2}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzSVG(f *testing.F) {
	f.Add("title", "label", 1.0, 2.0, 3.0, true, false, uint8(0))
	f.Add("<&>", strings.Repeat("漢", 99), -1e300, 1e300, 0.0, false, false, uint8(1))
	f.Add("", "a b c", 5e-324, 1e-300, 1e300, true, true, uint8(3))
	f.Add("", "a b c", 1e6, 1e6, 1e6+1e-9, false, true, uint8(4))
	f.Fuzz(func(t *testing.T, title, label string, a, b, c float64, logX, logY bool, kind uint8) {
		kinds := []Kind{Line, Steps, Points, Bars}
		values := []float64{a, b, c}
		chart := &Chart{Title: title, Caption: label, X: Axis{Label: label, Log: logX}, Y: Axis{Label: title, Log: logY},
			Series: []Series{{Name: label, Kind: kinds[int(kind)%len(kinds)], X: values, Y: values, Lo: values, Hi: values}}}
		if kind >= 128 {
			chart.X.Categories, chart.X.Log = []string{label, title, label + title}, false
		}
		if kind >= 192 {
			chart.X, chart.Y = chart.Y, chart.X
		}
		if chart.Validate() != nil {
			return
		}
		svg, err := chart.svg(true)
		if err != nil {
			t.Fatal(err)
		}
		checkText(t, string(svg))
		if _, err := chart.HTML(); err != nil {
			t.Fatal(err)
		}
	})
}

// A narrow axis of probabilities keeps ½ and as many others as have room.
func TestTicksOfProbabilities(t *testing.T) {
	s := newScale(&Axis{Logit: true}, []float64{1e-6, 0.999999}, false)
	for n, want := range map[int]string{
		7: "0.000001 0.00001 0.0001 0.001 0.01 0.1 0.5 0.9 0.99 0.999 0.9999 0.99999 0.999999", 5: "0.000001 0.00001 0.0001 0.001 0.01 0.1 0.5 0.9 0.99 0.999 0.9999 0.99999 0.999999",
		4: "0.000001 0.0001 0.01 0.5 0.99 0.9999 0.999999", 3: "0.000001 0.001 0.5 0.999 0.999999", 1: "0.00001 0.5 0.99999",
	} {
		var got []string
		for _, tick := range s.ticks(n) {
			got = append(got, tick.Text)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%d ticks: %s, want %s", n, text, want)
		}
	}
}
