package model

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"hamlet/algos/ensemble"
	"hamlet/algos/text"
)

// A Field describes one field of a Config, for help texts and configuration files.
type Field struct {
	Key       string // as in the JSON of a Config, with dots: "vector_head.site"
	Help      string
	Default   string // what the zero value means; a description if it depends on other fields
	Adoptable bool   // Model.Adopt can change it
}

// Fields returns all fields of a Config, in its order.
func Fields() []Field {
	all := make([]Field, len(fields()))
	for i, f := range fields() {
		all[i] = f.Field
		if f.of(&Config{}).Kind() == reflect.Slice && f.words != nil {
			all[i].Help += ": " + strings.Join(f.words(), ", ") + "."
		}
	}
	return all
}

// A field is a Field with the rest of its struct tags. Its type is int, float64, bool,
// string or []string.
type field struct {
	Field
	index       []int           // for reflect.Value.FieldByIndex
	fallback    string          // the default, as text; "": the zero value, or filled sets it
	least, most int64           // bounds of an int
	words       func() []string // the valid values of a string or list element; nil: any
	some        bool            // an empty list means the default, so Set refuses it
}

// fields is made when it is first used: most commands start without.
var fields = sync.OnceValue(func() []field { return collect(reflect.TypeFor[Config](), "", nil) })

// collect returns the fields of a struct type and of the structs in it.
func collect(t reflect.Type, prefix string, index []int) (all []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		key, at := prefix+name, append(slices.Clone(index), i)
		if f.Type.Kind() == reflect.Struct {
			all = append(all, collect(f.Type, key+".", at)...)
			continue
		}
		fallback := f.Tag.Get("default")
		d := field{
			Field: Field{
				Key: key, Help: f.Tag.Get("help"), Adoptable: f.Tag.Get("adopt") == "yes",
				Default: cmp.Or(f.Tag.Get("shown"), fallback, format(reflect.Zero(f.Type))),
			},
			index: at, fallback: fallback,
			least: bound(f.Tag.Get("min"), math.MinInt64), most: bound(f.Tag.Get("max"), math.MaxInt64),
			some: f.Tag.Get("some") == "yes",
		}
		if words := f.Tag.Get("enum"); words != "" {
			d.words = func() []string { return strings.Split(words, ",") }
		}
		if registry := f.Tag.Get("each"); registry != "" {
			d.words = registries[registry]
		}
		all = append(all, d)
	}
	return all
}

// registries maps a tag each:"…" to the valid elements of a list.
var registries = map[string]func() []string{
	"expert":          func() []string { return append([]string{text.Full, text.Lean}, text.Names()...) },
	"personal expert": text.CanBePersonal,
	"ensemble": func() (names []string) {
		for _, kind := range ensemble.Kinds() {
			names = append(names, string(kind))
		}
		return names
	},
}

// bound returns the number in a tag, or none if the tag is empty.
func bound(tag string, none int64) int64 {
	if tag == "" {
		return none
	}
	n, err := strconv.ParseInt(tag, 10, 64)
	if err != nil {
		panic(err) // a tag of ours
	}
	return n
}

func (f *field) of(c *Config) reflect.Value { return reflect.ValueOf(c).Elem().FieldByIndex(f.index) }

// find returns the field of that key.
func find(key string) (*field, error) {
	i := slices.IndexFunc(fields(), func(f field) bool { return f.Key == key })
	if i < 0 {
		return nil, fmt.Errorf("%s: the configuration of a model has no such key", quote(key))
	}
	return &fields()[i], nil
}

// Set parses value into the field of that key: a number, true or false, a word, or a
// comma-separated list; "none" is the empty list. Names that hold a comma, or are "none",
// have no such format. An error names the key and the problem. New checks bounds.
func (c *Config) Set(key, value string) error {
	f, err := find(key)
	if err != nil {
		return err
	}
	to := f.of(c)
	if err := parse(to, value); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if f.some && to.Len() == 0 {
		return fmt.Errorf("%s: at least one of %s is wanted", key, strings.Join(f.words(), ", "))
	}
	return nil
}

// Get returns the value of the field of that key in the format of Set.
func (c Config) Get(key string) (string, error) {
	f, err := find(key)
	if err != nil {
		return "", err
	}
	return format(f.of(&c)), nil
}

func parse(to reflect.Value, text string) error {
	switch to.Kind() {
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%s is not a whole number", quote(text))
		}
		to.SetInt(int64(n))
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || x-x != 0 {
			return fmt.Errorf("%s is not a finite number", quote(text))
		}
		to.SetFloat(x)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%s is neither true nor false", quote(text))
		}
		to.SetBool(b)
	case reflect.String:
		to.SetString(text)
	case reflect.Slice:
		list := []string{}
		if text != "" && text != "none" {
			list = strings.Split(text, ",")
		}
		to.Set(reflect.ValueOf(list))
	default:
		panic("model: a field of type " + to.Type().String())
	}
	return nil
}

func format(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.Slice:
		list := v.Interface().([]string)
		if len(list) == 0 {
			return "none"
		}
		return strings.Join(list, ",")
	default:
		return fmt.Sprint(v)
	}
}

// fillDefaults replaces zero fields by the defaults of their tags.
func fillDefaults(c *Config) {
	for i := range fields() {
		f := &fields()[i]
		if v := f.of(c); f.fallback != "" && v.IsZero() {
			if err := parse(v, f.fallback); err != nil {
				panic(err) // a tag of ours
			}
		}
	}
}

// checkTags checks a filled Config against the bounds and words of the tags.
func checkTags(c *Config) (errs []error) {
	for i := range fields() {
		f := &fields()[i]
		switch v := f.of(c); {
		case v.Kind() == reflect.Slice:
			errs = append(errs, f.checkList(v.Interface().([]string))...)
		case f.words != nil && !slices.Contains(f.words(), v.String()):
			errs = append(errs, fmt.Errorf("%s: %q is not one of %s", f.Key, v, strings.Join(f.words(), ", ")))
		case v.Kind() != reflect.Int || v.Int() >= f.least && v.Int() <= f.most:
		case f.most == math.MaxInt64:
			errs = append(errs, fmt.Errorf("%s: %d is below %d", f.Key, v.Int(), f.least))
		default:
			errs = append(errs, fmt.Errorf("%s: %d is not in %d…%d", f.Key, v.Int(), f.least, f.most))
		}
	}
	return errs
}

// checkList reports the elements that are not among the words, and repetitions.
func (f *field) checkList(list []string) (errs []error) {
	seen := make(map[string]bool, len(list))
	for _, name := range list {
		if f.words != nil && !slices.Contains(f.words(), name) {
			errs = append(errs, fmt.Errorf("%s: %q is not one of %s", f.Key, name, strings.Join(f.words(), ", ")))
		} else if name != "" && seen[name] {
			errs = append(errs, fmt.Errorf("%s: %q is given twice", f.Key, name))
		}
		seen[name] = true
	}
	return errs
}

// Differences returns one string for each field in which c and a model's configuration
// differ: "table_bits: 18 here, 20 in the model". Zero fields count as their defaults.
func (c Config) Differences(model Config) []string { return c.differences(model, false) }

// differences is Differences. If fixed, it omits Adoptable fields.
func (c Config) differences(model Config, fixed bool) (all []string) {
	c, model = c.filled(), model.filled()
	for i := range fields() {
		f := &fields()[i]
		here, there := f.of(&c), f.of(&model)
		if fixed && f.Adoptable || reflect.DeepEqual(here.Interface(), there.Interface()) {
			continue
		}
		a, b := format(here), format(there)
		if here.Kind() == reflect.Slice && max(here.Len(), there.Len()) > 4 {
			a, b = abridged(here, there), abridged(there, here)
		}
		all = append(all, fmt.Sprintf("%s: %s here, %s in the model", f.Key, cmp.Or(a, "none"), cmp.Or(b, "none")))
	}
	return all
}

// abridged formats a long list: its length, and up to three names that other lacks.
func abridged(list, other reflect.Value) string {
	names, others := list.Interface().([]string), other.Interface().([]string)
	var only []string
	for _, name := range names {
		if !slices.Contains(others, name) {
			only = append(only, strconv.Quote(name))
		}
	}
	s := fmt.Sprintf("%d names", len(names))
	if len(names) == 1 {
		s = "1 name"
	}
	if len(only) > 3 {
		only = append(only[:3], "…")
	}
	if len(only) > 0 {
		s += " (with " + strings.Join(only, ", ") + ")"
	}
	return s
}
