package fit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A member is a name of an object with the text of its value.
type member struct {
	name  string
	value []byte
}

// members returns the members of the object that text is, in its order.
func members(text []byte) ([]member, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not JSON: not UTF-8")
	}
	if !json.Valid(text) {
		return nil, notJSON(text)
	}
	text = bytes.TrimSpace(text)
	if text[0] != '{' {
		return nil, fmt.Errorf("an object is wanted, not %s", describe(text))
	}
	var list []member
	name := ""
	for i, value := range parts(text) {
		if i%2 == 0 {
			name, _ = stringOf(value)
		} else {
			list = append(list, member{name, value})
		}
	}
	return list, nil
}

// notJSON says what is wrong with text, and in which field. What other languages
// write for numbers that JSON has not (NaN, Infinity) ends here.
func notJSON(text []byte) error {
	var v json.RawMessage
	err := json.Unmarshal(text, &v)
	place := ""
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		place = fmt.Sprintf(" (byte %d)", syntax.Offset)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	name, depth, value := "", 0, true // value: the next token is not a name of the outermost object
	for {
		token, tokenErr := d.Token()
		if tokenErr != nil {
			break
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth == 1 && token == json.Delim('[') {
				return fmt.Errorf("not JSON: %w%s", err, place)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		default:
			if s, ok := token.(string); ok && depth == 1 && !value {
				name, value = s, true
				continue
			}
		}
		if depth == 1 {
			name, value = "", false
		}
	}
	if name != "" {
		return fmt.Errorf("%s: not JSON: %w%s", clip(name), err, place)
	}
	return fmt.Errorf("not JSON: %w%s", err, place)
}

// parts yields the values of an array, or the names and values of an object by
// turns, as text. It relies on the text being JSON without space around it.
func parts(text []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		n := 0
		for i := 1; i < len(text)-1; {
			switch text[i] {
			case ' ', '\t', '\r', '\n', ',', ':':
				i++
				continue
			}
			end := i + lengthOf(text[i:])
			if !yield(n, text[i:end]) {
				return
			}
			i, n = end, n+1
		}
	}
}

// lengthOf returns the length of the value that text begins with.
func lengthOf(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
			continue
		case ']', '}':
			depth--
		default:
			if depth > 0 {
				continue
			}
			// A number or a word.
			n := bytes.IndexAny(text[i:], ",:]} \t\r\n")
			if n < 0 {
				return len(text)
			}
			return i + n
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(text)
}

// describe says what kind of value text is.
func describe(text []byte) string {
	switch text[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f', 'n':
		return string(text)
	}
	return "a number"
}

// clip shortens what a request wrote for an error.
func clip(s string) string {
	const most = 40
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

func stringOf(raw []byte) (s string, ok bool) {
	if raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// decode sets dst, a pointer to the field, to what raw says. known has the sizes
// of the fields before it. The error names the field.
func (f *field) decode(dst any, raw []byte, known sizes) error {
	var err error
	switch dst := dst.(type) {
	case *float64:
		*dst, err = f.number(raw)
	case **float64:
		*dst = new(float64)
		**dst, err = f.number(raw)
	case *int:
		*dst, err = f.whole(raw)
	case **int:
		*dst = new(int)
		**dst, err = f.whole(raw)
	case *uint64:
		*dst, err = f.natural(raw)
	case *bool:
		if *dst = raw[0] == 't'; !*dst && raw[0] != 'f' {
			err = fmt.Errorf("true or false is wanted, not %s", describe(raw))
		}
	case *string:
		*dst, err = f.word(raw)
	case *[]float64:
		*dst, err = list(raw, f.number)
		if err == nil {
			err = known.set(f.shape[0], len(*dst), f.name, "entries")
		}
	case *[]int:
		*dst, err = list(raw, f.whole)
		if err == nil {
			err = known.set(f.shape[0], len(*dst), f.name, "entries")
		}
	case *[][]float64:
		*dst, err = f.matrix(raw, known)
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
func (f *field) number(raw []byte) (float64, error) {
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, fmt.Errorf("a number is wanted, not %s", describe(raw))
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, fmt.Errorf("%s is beyond float64", clip(string(raw)))
	}
	return v, f.in.check(v, raw)
}

// maxWhole is the largest number up to which a float64 holds every whole one.
const maxWhole = 1 << 53

// whole reads a number without a fraction; 50.0 and 5e1 are 50.
func (f *field) whole(raw []byte) (int, error) {
	v, err := f.number(raw)
	n := int(v)
	switch {
	case err != nil:
	case v != math.Trunc(v):
		err = fmt.Errorf("%s is not a whole number", clip(string(raw)))
	case float64(n) != v || math.Abs(v) > maxWhole: // the first where an int has 32 bits
		err = fmt.Errorf("%s is beyond the whole numbers that a float64 can tell apart", clip(string(raw)))
	}
	return n, err
}

// natural is whole for numbers from 0 to 2⁶⁴−1.
func (f *field) natural(raw []byte) (uint64, error) {
	if n, err := strconv.ParseUint(string(raw), 10, 64); err == nil {
		return n, f.in.check(float64(n), raw)
	}
	n, err := f.whole(raw)
	if err == nil && n < 0 {
		err = fmt.Errorf("%s is negative", clip(string(raw)))
	}
	return uint64(n), err
}

// word reads one of the field's words. One that is a number needs no quotes.
func (f *field) word(raw []byte) (string, error) {
	s, ok := stringOf(raw)
	if !ok {
		v, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return "", fmt.Errorf("a string is wanted, not %s", describe(raw))
		}
		s = strconv.FormatFloat(v, 'g', -1, 64)
	}
	if !slices.Contains(f.words, s) {
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

// list reads an array, each entry by read.
func list[T any](raw []byte, read func(raw []byte) (T, error)) ([]T, error) {
	if raw[0] != '[' {
		return nil, fmt.Errorf("an array is wanted, not %s", describe(raw))
	}
	dst := []T{}
	for i, part := range parts(raw) {
		v, err := read(part)
		if err != nil {
			return nil, &entryError{i, err}
		}
		dst = append(dst, v)
	}
	return dst, nil
}

// matrix reads an array of rows of the same length.
func (f *field) matrix(raw []byte, known sizes) ([][]float64, error) {
	rows, err := list(raw, func(raw []byte) ([]float64, error) { return list(raw, f.number) })
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

// sizes holds what the letters of the shapes stand for in one request.
type sizes map[string]size

// A size is a number with the words for where it comes from.
type size struct {
	n  int
	of string
}

// set gives symbol the size n of a field, counted in what, unless it has another
// already. "*" stands for any size, also none; a number for itself; anything
// else for the same size, at least 1, wherever it occurs.
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
