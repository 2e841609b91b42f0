package fit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// write joins members to an object.
func write(list []member) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", m.name, m.value)
	}
	return b.String() + "}"
}

// with returns the request with one field set to value, or removed if value is empty.
func with(list []member, name, value string) []member {
	list = slices.DeleteFunc(slices.Clone(list), func(m member) bool { return m.name == name })
	if value != "" {
		list = append(list, member{name, []byte(value)})
	}
	return list
}

func valueOf(list []member, name string) []byte {
	for _, m := range list {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// Laws of every algorithm, on the requests of its golden file.
func TestLaws(t *testing.T) {
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			for _, request := range requestsOf(t, name) {
				want, failed := ask(t, request)
				list, err := members([]byte(request))
				if err != nil {
					continue
				}
				lawOfOrder(t, list, want)
				if failed {
					continue
				}
				lawOfDefaults(t, algorithms[name].request, list, want)
				lawOfNames(t, algorithms[name].request, list)
				for _, f := range algorithms[name].request.fields {
					lawOfTypes(t, f, list)
					lawOfRanges(t, f, list)
					lawOfShapes(t, f, list)
				}
				if algorithms[name].request.field("x_test") != nil {
					lawOfTests(t, list)
				}
			}
		})
	}
}

// The order of fields, space between them and repetition change no byte of a reply or
// an error.
func lawOfOrder(t *testing.T, list []member, want string) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	for range 3 {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		text := write(list)
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, []byte(text), "", "\t"); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{text, strings.ReplaceAll(spaced.String(), "\n", "\r ")} {
			if got, _ := ask(t, text); got != want {
				t.Fatalf("request %.200s\n got %s\nwant %s", text, got, want)
			}
		}
	}
}

// An explicit default changes nothing; any seed is accepted.
func lawOfDefaults(t *testing.T, s *schema, list []member, want string) {
	t.Helper()
	for _, f := range s.fields {
		if f.fallback == nil || string(f.fallback) == "null" || valueOf(list, f.name) != nil {
			continue
		}
		if got, _ := ask(t, write(with(list, f.name, string(f.fallback)))); got != want {
			t.Errorf("with %s %s\n got %s\nwant %s", f.name, f.fallback, got, want)
		}
	}
	for _, seed := range []string{"0", "2", "18446744073709551615"} {
		if got, failed := ask(t, write(with(list, "seed", seed))); failed {
			t.Errorf("seed %s: %s", seed, got)
		}
	}
}

// refused wants an error for the request that names the field.
func refused(t *testing.T, list []member, name string) {
	t.Helper()
	text := write(list)
	got, failed := ask(t, text)
	var r struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal([]byte(got), &r); !failed || err != nil {
		t.Errorf("request %.300s\n got %.200s\nwant an error that names %s", text, got, name)
	} else if !strings.Contains(r.Error, name) || strings.Contains(r.Error, "bug") {
		t.Errorf("request %.300s\n got the error %q, which does not name %s", text, r.Error, name)
	}
}

// A field that is missing, misspelt or given twice.
func lawOfNames(t *testing.T, s *schema, list []member) {
	t.Helper()
	for _, f := range append(slices.Clone(s.fields), &field{name: "algorithm"}) {
		value := string(valueOf(list, f.name))
		if f.fallback == nil {
			refused(t, with(list, f.name, ""), f.name)
		}
		if value == "" {
			continue
		}
		refused(t, append(slices.Clone(list), member{f.name, []byte(value)}), f.name)
		if f.name != "algorithm" { // without it, nothing else is looked at
			refused(t, with(with(list, f.name, ""), strings.ToUpper(f.name), value), strings.ToUpper(f.name))
		}
	}
	refused(t, with(list, "unheard_of", "1"), "unheard_of")
}

func lawOfTypes(t *testing.T, f *field, list []member) {
	t.Helper()
	for _, value := range []string{"null", "{}", `"unheard of"`, "[[[1]]]", `["1"]`, "[null]", "[true]", `[{"a":1}]`} {
		refused(t, with(list, f.name, value), f.name)
	}
	if f.words != nil {
		return
	}
	huge := "1e999"
	for range f.shape {
		huge = "[" + huge + "]"
	}
	refused(t, with(list, f.name, huge), f.name)
}

// Every number of the field just outside its range, one at a time at either end.
func lawOfRanges(t *testing.T, f *field, list []member) {
	t.Helper()
	value := string(valueOf(list, f.name))
	if value == "" {
		value = string(f.fallback)
	}
	if f.words != nil || strings.Trim(value, "[]") == "" || value == "null" || value == "true" || value == "false" {
		return
	}
	var outside []float64
	switch {
	case f.in.label:
		outside = []float64{0, 2, -2, 0.5}
	default:
		for _, end := range []struct {
			v, beyond float64
			open      bool
		}{{f.in.lo, math.Inf(-1), f.in.openLo}, {f.in.hi, math.Inf(1), f.in.openHi}} {
			if math.IsInf(end.v, 0) {
				continue
			}
			outside = append(outside, math.Nextafter(end.v, end.beyond))
			if end.open {
				outside = append(outside, end.v)
			}
		}
	}
	for _, v := range outside {
		bad := strconv.FormatFloat(v, 'g', -1, 64)
		first := strings.IndexAny(value, "-0123456789")
		last := strings.LastIndexAny(value, "0123456789.eE+-") + 1
		start := strings.LastIndexAny(value[:last], "[, ") + 1
		end := first + strings.IndexAny(value[first:]+",", ",] ")
		refused(t, with(list, f.name, value[:first]+bad+value[end:]), f.name)
		refused(t, with(list, f.name, value[:start]+bad+value[last:]), f.name)
	}
}

// Lists that are empty, ragged, or one entry too long.
func lawOfShapes(t *testing.T, f *field, list []member) {
	t.Helper()
	value := string(valueOf(list, f.name))
	if len(f.shape) == 0 || value == "" {
		return
	}
	symbols := map[string]int{}
	for _, g := range algorithms[mustString(t, valueOf(list, "algorithm"))].request.fields {
		if valueOf(list, g.name) != nil {
			for _, s := range g.shape {
				symbols[s]++
			}
		}
	}
	tied := func(symbol string) bool {
		_, err := strconv.Atoi(symbol)
		return err == nil || symbol != "*" && symbols[symbol] > 1
	}
	if f.shape[0] != "*" {
		refused(t, with(list, f.name, "[]"), f.name)
	}
	entries := entriesOf(t, []byte(value))
	if len(entries) == 0 {
		return
	}
	longer := strings.TrimSuffix(value, "]") + "," + string(entries[len(entries)-1]) + "]"
	if tied(f.shape[0]) {
		refused(t, with(list, f.name, longer), f.name)
	}
	if len(f.shape) == 2 {
		refused(t, with(list, f.name, "[[]]"), f.name)
		refused(t, with(list, f.name, strings.TrimSuffix(longer, "]]")+",1]]"), f.name)
		refused(t, with(list, f.name, "[1]"), f.name)
	}
}

func mustString(t *testing.T, raw []byte) string {
	t.Helper()
	s, ok := parse(raw).(string)
	if !ok {
		t.Fatalf("%s is no string", raw)
	}
	return s
}

// entriesOf returns the entries of an array.
func entriesOf(t *testing.T, raw []byte) []json.RawMessage {
	t.Helper()
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// x_test gets one probability per row, and must have x's columns.
func lawOfTests(t *testing.T, list []member) {
	t.Helper()
	row := ""
	for _, name := range []string{"x", "x_test"} {
		if value := valueOf(list, name); value != nil && row == "" {
			rows := entriesOf(t, value)
			row = string(rows[0])
		}
	}
	far := "[1e300" + strings.Repeat(",-1e300", strings.Count(row, ",")) + "]"
	near := "[0" + strings.Repeat(",0", strings.Count(row, ",")) + "]"
	text, failed := ask(t, write(with(list, "x_test", "["+row+","+far+","+near+"]")))
	if failed && strings.Contains(text, "x_test") {
		// Extreme rows may be refused, if the error names them.
		text, failed = ask(t, write(with(list, "x_test", "["+row+","+near+","+near+"]")))
	}
	var r struct {
		P []float64 `json:"p_test"`
	}
	if err := json.Unmarshal([]byte(text), &r); failed || err != nil || len(r.P) != 3 {
		t.Errorf("x_test of three rows: %.300s, want three probabilities", text)
	}
	for _, p := range r.P {
		if !(p >= 0 && p <= 1) {
			t.Errorf("p_test has %v, want a probability", p)
		}
	}
	refused(t, with(list, "x_test", "["+strings.TrimSuffix(row, "]")+",1]]"), "x_test")
}
