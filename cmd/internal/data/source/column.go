package source

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hamlet/stream"
)

// everyColumn in --missing means all columns of numbers.
const everyColumn = "*"

// kinds returns what each column holds, by --text and --missing. out has the columns that
// are the label or dropped.
func (t *table) kinds(cfg *Config, out map[int]bool, find func(flag, name string) (int, bool)) ([]columnKind, error) {
	kinds := make([]columnKind, len(t.columns))
	var errs []error
	set := func(flag, name string, kind columnKind) {
		i, ok := find(flag, name)
		switch {
		case !ok:
		case out[i]:
			errs = append(errs, usagef("%s %s: that column is the label or dropped", flag, name))
		case kind == gappy && kinds[i] == words:
			errs = append(errs, usagef("%s %s: that column is text by --text, and may be empty", flag, name))
		default:
			kinds[i] = kind
		}
	}
	for _, name := range list(cfg.Text) {
		set("--text", name, words)
	}
	for _, name := range list(cfg.Missing) {
		if name != everyColumn || slices.Contains(t.columns, everyColumn) {
			set("--missing", name, gappy)
			continue
		}
		for i := range kinds {
			if kinds[i] == numbers && !out[i] {
				kinds[i] = gappy
			}
		}
	}
	return kinds, errors.Join(append(errs, t.clashes(kinds, out))...)
}

// clashes refuses columns whose made names are those of another column.
func (t *table) clashes(kinds []columnKind, out map[int]bool) error {
	var errs []error
	for i, name := range t.columns {
		for k, other := range t.columns {
			switch {
			case out[k] || i == k:
			case kinds[i] == gappy && other == name+"?",
				kinds[i] == gappy && kinds[k] == words && strings.HasPrefix(name+"?", other+"="),
				kinds[i] == words && strings.HasPrefix(other, name+"="):
				errs = append(errs, fmt.Errorf("line 1: column %q would share a name with what is made of column %q",
					clip(other), clip(name)))
			}
		}
	}
	return errors.Join(errs...)
}

// append adds what a field holds to a vector: a number, a number and whether it is missing,
// or a name for each word.
func (in *tableInput) append(v []stream.Number, field string) ([]stream.Number, error) {
	switch in.holds {
	case words:
		return in.appendWords(v, field), nil
	case gappy:
		if isGap(field) {
			return append(v, stream.Number{Name: in.name}, stream.Number{Name: in.gap, Value: 1}), nil
		}
		v = append(v, stream.Number{Name: in.gap})
	case numbers:
	default:
		panic("source: a column of unknown kind")
	}
	x, err := parseNumber(field)
	switch {
	case err != nil:
		return v, err
	case math.IsNaN(x) || math.IsInf(x, 0):
		return v, fmt.Errorf("%v is not a finite number", x)
	}
	return append(v, stream.Number{Name: in.name, Value: x}), nil
}

// appendWords adds 1 for each different word of a text: a run of letters, marks and digits,
// in lower case. A name that is too long for an event is cut.
func (in *tableInput) appendWords(v []stream.Number, text string) []stream.Number {
	seen := map[string]bool{}
	for word := range strings.FieldsFuncSeq(strings.ToLower(strings.ToValidUTF8(text, " ")), notOfWord) {
		name := in.name + "=" + word
		if len(name) > stream.MaxNameLength {
			name = name[:stream.MaxNameLength]
			for !utf8.ValidString(name) {
				name = name[:len(name)-1]
			}
		}
		if !seen[name] {
			seen[name] = true
			v = append(v, stream.Number{Name: name, Value: 1})
		}
	}
	return v
}

func notOfWord(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) }

// isGap reports whether a field says that its value is missing.
func isGap(field string) bool {
	switch strings.ToLower(field) {
	case "", "?", "na", "n/a", "nan", "null", "none":
		return true
	}
	return false
}
