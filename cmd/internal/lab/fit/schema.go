package fit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
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
