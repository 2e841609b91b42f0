package fit

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A schema holds the fields of a request, as the tags of its struct declare them.
type schema struct {
	algorithm string
	fields    []*field
}

// A field is one name of a request.
type field struct {
	name     string
	index    []int           // in the struct; nil for seed if the algorithm draws nothing
	in       set             // of each number in it
	words    []string        // of a string: what it may be; the first is the default
	shape    []string        // of a list: a symbol for each dimension
	fallback json.RawMessage // default value; nil: the field must be given
}

// newSchema reads the tags of struct type t. It panics if one is wrong.
func newSchema(algorithm string, t reflect.Type) *schema {
	s := &schema{algorithm: algorithm}
	for _, sf := range reflect.VisibleFields(t) {
		if sf.Anonymous {
			continue
		}
		f, err := newField(sf)
		if err == nil && s.field(f.name) != nil {
			err = fmt.Errorf("a second field is called %q", f.name)
		}
		if err != nil {
			panic(fmt.Sprintf("fit: request of %s: %s: %v", algorithm, sf.Name, err))
		}
		s.fields = append(s.fields, f)
	}
	if s.field("seed") == nil {
		s.fields = append(s.fields, &field{name: "seed", in: anyNumber, fallback: []byte("1")})
	}
	return s
}

func newField(sf reflect.StructField) (*field, error) {
	name := sf.Tag.Get("json")
	if name == "" || name == "algorithm" || strings.Contains(name, ",") || !sf.IsExported() {
		return nil, fmt.Errorf("want an exported field with a name in json:%q", name)
	}
	f := &field{name: name, index: sf.Index, in: anyNumber}
	if text, ok := sf.Tag.Lookup("default"); ok {
		f.fallback = []byte(text)
	}
	in, bounded := sf.Tag.Lookup("in")
	switch reflect.New(sf.Type).Interface().(type) {
	case *string:
		if !bounded {
			return nil, fmt.Errorf("want the words in in:%q", "a|b")
		}
		f.words, bounded = strings.Split(in, "|"), false
		if f.fallback == nil {
			f.fallback = fmt.Appendf(nil, "%q", f.words[0])
		}
	case *[]float64, *[]int:
		f.shape = make([]string, 1)
	case *[][]float64:
		f.shape = make([]string, 2)
	case *float64, **float64, *int, **int, *uint64, *bool:
	default:
		return nil, fmt.Errorf("no request has fields of type %v", sf.Type)
	}
	if bounded {
		var err error
		if f.in, err = parseSet(in); err != nil {
			return nil, err
		}
	}
	if shape := sf.Tag.Get("shape"); shape != "" || f.shape != nil {
		dims := strings.Split(shape, "×")
		if len(dims) != len(f.shape) || slices.Contains(dims, "") {
			return nil, fmt.Errorf("shape:%q is not one for %v", shape, sf.Type)
		}
		f.shape = dims
	}
	if f.fallback == nil || string(f.fallback) == "null" {
		return f, nil
	}
	return f, f.decode(reflect.New(sf.Type).Interface(), f.fallback, sizes{})
}

func (s *schema) field(name string) *field {
	for _, f := range s.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// names lists the fields of a request, without algorithm.
func (s *schema) names() string {
	list := make([]string, len(s.fields))
	for i, f := range s.fields {
		list[i] = f.name
	}
	return strings.Join(list, ", ")
}

// decode fills q, an addressable struct of the schema's type. The error lists every
// mistake, in an order that does not depend on the request's.
func (s *schema) decode(q reflect.Value, given []member) error {
	var problems []error
	values := make(map[string]json.RawMessage, len(given))
	twice := make(map[string]bool)
	var strange []string
	for _, m := range given {
		if m.name == "algorithm" {
			continue
		}
		if _, ok := values[m.name]; ok {
			twice[m.name] = true
		} else if s.field(m.name) == nil {
			strange = append(strange, m.name)
		}
		values[m.name] = m.value
	}
	slices.Sort(strange)
	for _, name := range strange {
		problems = append(problems, fmt.Errorf("%s: unknown field; %s has %s", clip(name), s.algorithm, s.names()))
	}

	known := sizes{}
	for _, f := range s.fields {
		raw, ok := values[f.name]
		switch {
		case !ok:
			continue
		case twice[f.name]:
			problems = append(problems, wrong(f.name, "given twice"))
		default:
			if err := f.decode(f.target(q), raw, known); err != nil {
				problems = append(problems, err)
			}
		}
	}
	for _, f := range s.fields {
		switch _, ok := values[f.name]; {
		case ok, string(f.fallback) == "null":
		case f.fallback == nil:
			problems = append(problems, wrong(f.name, "missing"))
		default:
			if err := f.decode(f.target(q), f.fallback, known); err != nil {
				problems = append(problems, err)
			}
		}
	}
	return joined(problems)
}

// target returns a pointer to the field in q.
func (f *field) target(q reflect.Value) any {
	if f.index == nil {
		return new(uint64)
	}
	return q.FieldByIndex(f.index).Addr().Interface()
}

// A set holds the values that a number may have.
type set struct {
	text           string // as in the tag
	lo, hi         float64
	openLo, openHi bool // the end itself is excluded
	label          bool // -1 or 1, nothing between
}

// anyNumber holds every float64.
var anyNumber = set{text: "(-∞,∞)", lo: math.Inf(-1), hi: math.Inf(1)}

// parseSet reads an interval such as [0,1] or (0,∞), or ±1.
func parseSet(text string) (set, error) {
	if text == "±1" {
		return set{text: text, lo: -1, hi: 1, label: true}, nil
	}
	var ends []string
	if len(text) > 2 && strings.ContainsAny(text[:1], "[(") && strings.ContainsAny(text[len(text)-1:], "])") {
		ends = strings.Split(text[1:len(text)-1], ",")
	}
	if len(ends) != 2 {
		return set{}, fmt.Errorf("in:%q is neither an interval nor ±1", text)
	}
	s := set{text: text, openLo: text[0] == '(', openHi: text[len(text)-1] == ')'}
	for i, dst := range []*float64{&s.lo, &s.hi} {
		v, err := strconv.ParseFloat(strings.Replace(ends[i], "∞", "Inf", 1), 64)
		if err != nil {
			return set{}, fmt.Errorf("in:%q: %w", text, err)
		}
		*dst = v
	}
	if !(s.lo <= s.hi) {
		return set{}, fmt.Errorf("in:%q is empty", text)
	}
	return s, nil
}

// has reports whether v is in s. NaN is in none.
func (s set) has(v float64) bool {
	switch {
	case s.label:
		return v == -1 || v == 1
	case s.openLo && v == s.lo, s.openHi && v == s.hi:
		return false
	}
	return v >= s.lo && v <= s.hi
}

// check returns an error if s lacks v, a number that the request spells as text.
func (s set) check(v float64, text json.Number) error {
	switch {
	case s.has(v):
		return nil
	case s.label:
		return fmt.Errorf("%s is no label; 1 and -1 are", clip(string(text)))
	}
	return fmt.Errorf("%s is not in %s", clip(string(text)), s.text)
}

// Parts of requests that several algorithms embed.

// examples are labelled rows.
type examples struct {
	X [][]float64 `json:"x" shape:"N×D"`
	Y []float64   `json:"y" shape:"N" in:"±1"`
}

// weighted are sample weights. A weight of k is a row that stands there k times, except
// where an algorithm says that it counts rows.
type weighted struct {
	Weights []float64 `json:"weights" shape:"N" in:"[1e-6,1e6]" default:"null"`
}

// relative returns the weights for an algorithm that uses only their proportions: nil, the
// same as none, if all are equal.
func (w *weighted) relative() []float64 {
	if slices.ContainsFunc(w.Weights, func(v float64) bool { return v != w.Weights[0] }) {
		return w.Weights
	}
	return nil
}

// tested are rows to classify.
type tested struct {
	XTest [][]float64 `json:"x_test" shape:"M×D" default:"null"`
}

func (t *tested) testRows() [][]float64 { return t.XTest }

// seeded is the seed of an algorithm that draws random numbers. The others accept a
// seed without it.
type seeded struct {
	Seed uint64 `json:"seed" default:"1"`
}

func (s *seeded) source() rand.Source { return rand.NewPCG(s.Seed, 0) }
