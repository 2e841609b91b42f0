package fit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A member is a name in an object and the JSON text of its value.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of the JSON object text, in order, duplicates included.
func members(text []byte) ([]member, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not JSON: not UTF-8")
	}
	valid := json.Valid(text)
	d := json.NewDecoder(bytes.NewReader(text))
	var list []member
	broken := "" // the member whose value is not JSON
	start, _ := d.Token()
	for start == json.Delim('{') && d.More() {
		name, err := d.Token()
		if err != nil {
			break
		}
		m := member{name: name.(string)}
		if d.Decode(&m.value) != nil {
			broken = m.name
			break
		}
		list = append(list, m)
	}
	switch {
	case !valid:
		return nil, notJSON(text, broken)
	case start != json.Delim('{'):
		return nil, fmt.Errorf("an object is wanted, not %s", describe(parse(text)))
	}
	return list, nil
}

// notJSON returns the syntax error of text, in the named field. Examples are NaN and
// Infinity, which JSON lacks.
func notJSON(text []byte, field string) error {
	err := json.Unmarshal(text, new(json.RawMessage))
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		err = fmt.Errorf("%w (byte %d)", err, syntax.Offset)
	}
	if field != "" {
		return fmt.Errorf("%s: not JSON: %w", clip(field), err)
	}
	return fmt.Errorf("not JSON: %w", err)
}

// parse returns the value of text, which is valid JSON: nil, a bool, a string, a
// json.Number with the request's spelling, a []any or a map[string]any.
func parse(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

// describe says what kind of value v is.
func describe(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case bool:
		return strconv.FormatBool(v)
	}
	return "null"
}

// clip shortens part of a request for an error.
func clip(s string) string {
	const most = 40
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// decode sets dst, a pointer to the field, to the value of text. known has the
// sizes of the fields before it. The error names the field.
func (f *field) decode(dst any, text json.RawMessage, known sizes) error {
	var err error
	v := parse(text)
	switch dst := dst.(type) {
	case *float64:
		*dst, err = f.number(v)
	case **float64:
		*dst = new(float64)
		**dst, err = f.number(v)
	case *int:
		*dst, err = f.whole(v)
	case **int:
		*dst = new(int)
		**dst, err = f.whole(v)
	case *uint64:
		*dst, err = f.natural(v)
	case *bool:
		var ok bool
		if *dst, ok = v.(bool); !ok {
			err = fmt.Errorf("true or false is wanted, not %s", describe(v))
		}
	case *string:
		*dst, err = f.word(v)
	case *[]float64:
		*dst, err = list(v, f.number)
		if err == nil {
			err = known.set(f.shape[0], len(*dst), f.name, "entries")
		}
	case *[]int:
		*dst, err = list(v, f.whole)
		if err == nil {
			err = known.set(f.shape[0], len(*dst), f.name, "entries")
		}
	case *[][]float64:
		*dst, err = f.matrix(v, known)
	default:
		panic(fmt.Sprintf("fit: field %s of type %T", f.name, dst))
	}
	if err == nil {
		return nil
	}
	var at *entryError
	if errors.As(err, &at) {
		return fmt.Errorf("%s%w", f.name, err)
	}
	return wrong(f.name, "%w", err)
}

// number reads one number of the field.
func (f *field) number(v any) (float64, error) {
	text, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("a number is wanted, not %s", describe(v))
	}
	x, err := text.Float64()
	if err != nil {
		return 0, fmt.Errorf("%s is beyond float64", clip(string(text)))
	}
	return x, f.in.check(x, text)
}

// A float64 holds every whole number up to maxWhole.
const maxWhole = 1 << 53

// whole reads a whole number; 50.0 and 5e1 are 50.
func (f *field) whole(v any) (int, error) {
	x, err := f.number(v)
	n := int(x)
	switch {
	case err != nil:
	case x != math.Trunc(x):
		err = fmt.Errorf("%s is not a whole number", clip(fmt.Sprint(v)))
	case float64(n) != x || math.Abs(x) > maxWhole: // n differs from x where an int has 32 bits
		err = fmt.Errorf("%s is beyond the whole numbers that a float64 can tell apart", clip(fmt.Sprint(v)))
	}
	return n, err
}

// natural reads a whole number from 0 to 2⁶⁴−1.
func (f *field) natural(v any) (uint64, error) {
	if text, ok := v.(json.Number); ok {
		if n, err := strconv.ParseUint(string(text), 10, 64); err == nil {
			return n, f.in.check(float64(n), text)
		}
	}
	n, err := f.whole(v)
	if err == nil && n < 0 {
		err = fmt.Errorf("%s is negative", clip(fmt.Sprint(v)))
	}
	return uint64(n), err
}

// word reads one of the field's words. A word that is a number needs no quotes.
func (f *field) word(v any) (string, error) {
	s, ok := v.(string)
	if text, number := v.(json.Number); number {
		x, err := text.Float64()
		s, ok = strconv.FormatFloat(x, 'g', -1, 64), err == nil
	}
	switch {
	case !ok:
		return "", fmt.Errorf("a string is wanted, not %s", describe(v))
	case !slices.Contains(f.words, s):
		return "", fmt.Errorf("%q is not one of %s", clip(s), strings.Join(f.words, ", "))
	}
	return s, nil
}

// An entryError is about one entry of a list.
type entryError struct {
	index int
	err   error
}

func (e *entryError) Error() string {
	var inner *entryError
	if errors.As(e.err, &inner) {
		return fmt.Sprintf("[%d]%v", e.index, e.err)
	}
	return fmt.Sprintf("[%d]: %v", e.index, e.err)
}

func (e *entryError) Unwrap() error { return e.err }

// list reads an array, and each entry with read.
func list[T any](v any, read func(v any) (T, error)) ([]T, error) {
	entries, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("an array is wanted, not %s", describe(v))
	}
	dst := make([]T, len(entries))
	for i, entry := range entries {
		var err error
		if dst[i], err = read(entry); err != nil {
			return nil, &entryError{i, err}
		}
	}
	return dst, nil
}

// matrix reads an array of rows of the same length.
func (f *field) matrix(v any, known sizes) ([][]float64, error) {
	rows, err := list(v, func(row any) ([]float64, error) { return list(row, f.number) })
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		if len(row) != len(rows[0]) {
			return nil, fmt.Errorf("row %d has %d entries, row 0 has %d", i, len(row), len(rows[0]))
		}
	}
	if err := known.set(f.shape[0], len(rows), f.name, "rows"); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return rows, nil
	}
	return rows, known.set(f.shape[1], len(rows[0]), f.name, "columns")
}

// sizes maps the letters of the shapes to their sizes in one request.
type sizes map[string]size

// A size is a number with a description of its origin.
type size struct {
	n  int
	of string
}

// set checks that symbol allows size n of a field, counted in units of what. "*" allows
// any size, also 0; a number only itself. Any other symbol needs the same size ≥ 1 in
// the whole request, which its first use sets.
func (s sizes) set(symbol string, n int, field, what string) error {
	if symbol == "*" {
		return nil
	}
	if want, err := strconv.Atoi(symbol); err == nil {
		if n != want {
			return fmt.Errorf("%d %s where %d are wanted", n, what, want)
		}
		return nil
	}
	if n == 0 {
		return fmt.Errorf("empty, without %s", what)
	}
	if have, ok := s[symbol]; ok {
		if n != have.n {
			return fmt.Errorf("%d %s, but %s", n, what, have.of)
		}
		return nil
	}
	s[symbol] = size{n, fmt.Sprintf("%s has %d %s", field, n, what)}
	return nil
}
