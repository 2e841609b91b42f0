package source

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hamlet/stream"
)

// A table is how a CSV is to be read, found from its first rows.
type table struct {
	comma   rune     // ' ': any run of blanks
	header  []string // the first row, if it names the columns
	columns []string // names of all columns
	label   int      // place of the label's column

	// The columns that are learnt from, by name, as an event's vector is sorted.
	inputs []tableInput
	dense  []string // their names, or those that --dense chose, in the file's order

	positive []string
	anyOther bool // every other label is ham: --positive was given

	fields []string // scratch
}

type tableInput struct {
	name   string
	column int
}

// openTable looks at the first rows of in.
func openTable(in *input, cfg *Config) (*table, error) {
	head, err := in.head()
	if err != nil {
		return nil, err
	}
	t, err := newTable(firstLines(head, 2), cfg)
	if err != nil {
		return nil, prefixed(in.name, err)
	}
	return t, nil
}

// prefixed puts the name before every one of joined errors.
func prefixed(name string, err error) error {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range list.Unwrap() {
			errs = append(errs, fmt.Errorf("%s: %w", name, e))
		}
		return errors.Join(errs...)
	}
	return fmt.Errorf("%s: %w", name, err)
}

func newTable(rows []string, cfg *Config) (*table, error) {
	if len(rows) == 0 {
		return nil, errors.New("no row, there is nothing to learn from")
	}
	t := &table{comma: commaOf(rows[0]), positive: []string{"spam", "1", "+1"}}
	if cfg.Positive != "" {
		t.positive, t.anyOther = list(cfg.Positive), true
	}
	first, err := splitRow(nil, rows[0], t.comma)
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if len(first) < 2 {
		return nil, errors.New("line 1 has one column: a label and at least one number are wanted, with , ; tab or blanks between")
	}
	row := first
	if !slices.ContainsFunc(first, isNumber) {
		t.header = slices.Clone(first)
		if len(rows) < 2 {
			return nil, errors.New("a header and no row below it, there is nothing to learn from")
		}
		if row, err = splitRow(nil, rows[1], t.comma); err != nil {
			return nil, fmt.Errorf("line 2: %w", err)
		}
	}
	if err := t.nameColumns(len(first)); err != nil {
		return nil, err
	}
	if err := t.choose(cfg); err != nil {
		return nil, err
	}
	return t, t.checkFirst(row)
}

// nameColumns takes the names of the header, and the number, from 1, of a
// column that has none.
func (t *table) nameColumns(n int) error {
	var errs []error
	for i := range n {
		name := strconv.Itoa(i + 1)
		if t.header != nil && t.header[i] != "" {
			name = t.header[i]
		}
		if slices.Contains(t.columns, name) {
			errs = append(errs, fmt.Errorf("line 1: two columns are called %q", clip(name)))
		}
		t.columns = append(t.columns, name)
	}
	return errors.Join(errs...)
}

// choose settles which column is the label and which are learnt from.
func (t *table) choose(cfg *Config) error {
	var errs []error
	t.label = len(t.columns) - 1
	if cfg.Label != "" {
		i, err := t.find(cfg.Label)
		if err != nil {
			errs = append(errs, fmt.Errorf("--label: %w", err))
		} else {
			t.label = i
		}
	}
	out := map[int]bool{t.label: true}
	for _, name := range list(cfg.Drop) {
		i, err := t.find(name)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--drop: %w", err))
		case i == t.label:
			errs = append(errs, usagef("--drop %s: that is the label's column; --label chooses another", name))
		default:
			out[i] = true
		}
	}
	for i, name := range t.columns {
		if !out[i] {
			t.inputs = append(t.inputs, tableInput{name, i})
			t.dense = append(t.dense, name)
		}
	}
	if len(errs) == 0 && len(t.inputs) == 0 {
		errs = append(errs, usagef("--drop leaves no column to learn from"))
	}
	slices.SortFunc(t.inputs, func(a, b tableInput) int { return cmp.Compare(a.name, b.name) })
	if len(cfg.Dense) > 0 {
		t.dense = nil
		for _, name := range cfg.Dense {
			i, err := t.find(name)
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("--dense: %w", err))
			case out[i]:
				errs = append(errs, usagef("--dense %s: that column is the label or dropped", name))
			default:
				t.dense = append(t.dense, t.columns[i])
			}
		}
	}
	return errors.Join(errs...)
}

// find returns the column with this name or, where no name is like it, number.
func (t *table) find(name string) (int, error) {
	if i := slices.Index(t.columns, name); i >= 0 {
		return i, nil
	}
	n, err := strconv.Atoi(name)
	switch {
	case err == nil && n >= 1 && n <= len(t.columns):
		return n - 1, nil
	case err == nil:
		return 0, usagef("no column %d, the columns are 1 to %d", n, len(t.columns))
	case t.header == nil:
		return 0, usagef("no column %q: without a header, columns are numbered 1 to %d", clip(name), len(t.columns))
	}
	return 0, usagef("no column %q; the header has %s", clip(name), some(t.columns))
}

// checkFirst refuses a first row that shows what the flags got wrong.
func (t *table) checkFirst(row []string) error {
	if len(row) != len(t.columns) {
		return fmt.Errorf("the header has %d columns and the first row %d", len(t.columns), len(row))
	}
	var errs []error
	for i, name := range t.columns {
		if !slices.ContainsFunc(t.inputs, func(in tableInput) bool { return in.column == i }) || isNumber(row[i]) {
			continue
		}
		what := fmt.Sprintf("column %s", name)
		if t.header != nil {
			what = fmt.Sprintf("column %q (%d)", clip(name), i+1)
		}
		errs = append(errs, usagef("%s is not a number in the first row but %s: leave it out with --drop %d, or say that it is the label with --label %d",
			what, word(row[i]), i+1, i+1))
	}
	return errors.Join(errs...)
}

// parse reads one row. The header is none, whichever file repeats it.
func (t *table) parse(line []byte, _ int) (stream.Event, error) {
	var err error
	t.fields, err = splitRow(t.fields[:0], string(line), t.comma)
	switch {
	case err != nil:
		return stream.Event{}, err
	case t.header != nil && slices.Equal(t.fields, t.header):
		return stream.Event{}, errSkip
	case len(t.fields) != len(t.columns):
		return stream.Event{}, fmt.Errorf("%d fields, not %d", len(t.fields), len(t.columns))
	}
	e := stream.Event{Body: stream.Body{Kind: stream.Vector, Vector: make([]stream.Number, len(t.inputs))}}
	if e.Label, err = t.labelOf(t.fields[t.label]); err != nil {
		return stream.Event{}, err
	}
	for i, in := range t.inputs {
		v, err := parseNumber(t.fields[in.column])
		if err != nil {
			return stream.Event{}, fmt.Errorf("column %s: %w", in.name, err)
		}
		if err := finite(in.name, v); err != nil {
			return stream.Event{}, err
		}
		e.Body.Vector[i] = stream.Number{Name: in.name, Value: v}
	}
	return e, nil
}

// labelOf reads a label: spam if it is a positive one, as text or as a number;
// else ham, if --positive was given or it is one of the usual names of ham.
func (t *table) labelOf(s string) (stream.Label, error) {
	if sameLabel(s, t.positive) {
		return stream.Spam, nil
	}
	if t.anyOther && s != "" && s != "?" && !strings.EqualFold(s, "nan") || sameLabel(s, []string{"ham", "0", "-1"}) {
		return stream.Ham, nil
	}
	if t.anyOther {
		return 0, fmt.Errorf("label: %s says nothing", word(s))
	}
	return 0, fmt.Errorf("label: %s is neither spam (spam, 1, +1) nor ham (ham, 0, -1); --positive names what is spam, --label the column", word(s))
}

func sameLabel(s string, names []string) bool {
	if slices.Contains(names, s) {
		return true
	}
	v, err := parseNumber(s)
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		w, err := parseNumber(name)
		return err == nil && v == w
	})
}

// commaOf tells what separates the fields of a row.
func commaOf(row string) rune {
	quoted := false
	found := map[rune]bool{}
	for _, r := range row {
		if r == '"' {
			quoted = !quoted
		}
		if !quoted {
			found[r] = true
		}
	}
	for _, r := range ";\t," {
		if found[r] {
			return r
		}
	}
	return ' '
}

// splitRow appends row's fields to dst, unquoted and without the blanks around
// them. A quoted field may hold the separator, and a quote as two.
func splitRow(dst []string, row string, comma rune) ([]string, error) {
	for {
		row = strings.TrimLeft(row, " ")
		if comma == ' ' {
			if row = strings.TrimLeft(row, " \t\r"); row == "" {
				return dst, nil
			}
		}
		var (
			field string
			more  bool
		)
		if strings.HasPrefix(row, `"`) {
			var err error
			if field, row, err = unquote(row); err != nil {
				return dst, err
			}
			row = strings.TrimLeft(row, " ")
			switch {
			case row == "":
			case comma == ' ':
				more = true
			case strings.HasPrefix(row, string(comma)):
				row, more = row[1:], true
			default:
				return dst, fmt.Errorf("field %d goes on behind its closing quote", len(dst)+1)
			}
		} else {
			i := strings.IndexRune(row, comma)
			if comma == ' ' {
				i = strings.IndexAny(row, " \t\r")
			}
			if i >= 0 {
				field, row, more = row[:i], row[i+1:], true
			} else {
				field, row = row, ""
			}
		}
		dst = append(dst, strings.TrimSpace(field))
		if !more {
			return dst, nil
		}
	}
}

// unquote returns the content of the quoted field that s begins with, and what
// follows it.
func unquote(s string) (field, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] != '"':
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == '"':
			b.WriteByte('"')
			i++
		default:
			return b.String(), s[i+1:], nil
		}
	}
	return "", "", errors.New("a quote is not closed")
}

// list splits what commas separate.
func list(s string) []string {
	var words []string
	for w := range strings.SplitSeq(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// some names the first few of many.
func some(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}
