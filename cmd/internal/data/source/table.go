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

// A table is the layout of a CSV, found from its first rows.
type table struct {
	rows    *splitter
	header  []string // the first row, if it names the columns
	columns []string // names of all columns
	label   int      // index of the label's column

	inputs []tableInput // the columns to learn from, sorted by name like an event's vector
	dense  []string     // names of all inputs that are numbers, or those of --dense, in the file's order

	mixed bool // some input is not one number, so a vector is sorted row by row

	labels *labelling
}

// A tableInput is a column to learn from.
type tableInput struct {
	name   string
	column int
	holds  columnKind
	gap    string // the name of the indicator of a gap; "" unless holds is gappy
}

// A columnKind says what a column holds.
type columnKind int

const (
	numbers columnKind = iota // a number in every row
	gappy                     // numbers and gaps
	words                     // text
)

// openTable finds the layout of in from its first rows.
func openTable(in *input, cfg *Config, labels *labelling) (*table, error) {
	head, err := in.head()
	if err != nil {
		return nil, err
	}
	t, err := newTable(firstLines(head, 2), cfg, labels)
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		errs := slices.Clone(list.Unwrap())
		for i := range errs {
			errs[i] = fmt.Errorf("%s: %w", in.name, errs[i])
		}
		return nil, errors.Join(errs...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	return t, nil
}

func newTable(rows []string, cfg *Config, labels *labelling) (*table, error) {
	if len(rows) == 0 {
		return nil, errors.New("no row, there is nothing to learn from")
	}
	t := &table{rows: newSplitter(separatorOf(rows[0])), labels: labels}
	row, err := t.rows.split(rows[0])
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if len(row) < 2 {
		return nil, errors.New("line 1 has one column: a label and at least one number are wanted, with , ; " +
			"tab or blanks between")
	}
	columns := len(row)
	if !slices.ContainsFunc(row, isNumber) {
		t.header = slices.Clone(row)
		if len(rows) < 2 {
			return nil, errors.New("a header and no row below it, there is nothing to learn from")
		}
		if row, err = t.rows.split(rows[1]); err != nil {
			return nil, fmt.Errorf("line 2: %w", err)
		}
	}
	if err := t.nameColumns(columns); err != nil {
		return nil, err
	}
	if err := t.choose(cfg); err != nil {
		return nil, err
	}
	return t, t.checkFirst(row)
}

// nameColumns takes the names from the header. A column without a name gets its number,
// from 1.
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

// choose finds the column of the label and the columns to learn from.
func (t *table) choose(cfg *Config) error {
	var errs []error
	// find returns the column that a flag names, or adds to errs.
	find := func(flag, name string) (column int, ok bool) {
		column, err := t.find(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flag, err))
		}
		return column, err == nil
	}
	t.label = len(t.columns) - 1
	if cfg.Label != "" {
		if i, ok := find("--label", cfg.Label); ok {
			t.label = i
		}
	}
	out := map[int]bool{t.label: true}
	for _, name := range list(cfg.Drop) {
		i, ok := find("--drop", name)
		if ok && i == t.label {
			errs = append(errs, usagef("--drop %s: that is the label's column; --label chooses another", name))
		} else if ok {
			out[i] = true
		}
	}
	kinds, err := t.kinds(cfg, out, find)
	errs = append(errs, err)
	for i, name := range t.columns {
		if out[i] {
			continue
		}
		in := tableInput{name: name, column: i, holds: kinds[i]}
		switch in.holds {
		case gappy:
			in.gap = name + "?"
			t.dense = append(t.dense, name, in.gap)
		case numbers:
			t.dense = append(t.dense, name)
		case words:
		default:
			panic("source: a column of unknown kind")
		}
		t.inputs = append(t.inputs, in)
		t.mixed = t.mixed || in.holds != numbers
	}
	if errors.Join(errs...) == nil && len(t.inputs) == 0 {
		errs = append(errs, usagef("--drop leaves no column to learn from"))
	}
	slices.SortFunc(t.inputs, func(a, b tableInput) int { return cmp.Compare(a.name, b.name) })
	if len(cfg.Dense) > 0 {
		t.dense = nil
	}
	for _, name := range cfg.Dense {
		i, ok := find("--dense", name)
		switch {
		case !ok:
		case out[i]:
			errs = append(errs, usagef("--dense %s: that column is the label or dropped", name))
		case kinds[i] == words:
			errs = append(errs, usagef("--dense %s: that column is text by --text, and words are hashed", name))
		default:
			if t.dense = append(t.dense, t.columns[i]); kinds[i] == gappy {
				t.dense = append(t.dense, t.columns[i]+"?")
			}
		}
	}
	return errors.Join(errs...)
}

// find returns the column of this name or, if there is none, of this number.
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

// checkFirst refuses a first row that contradicts the flags.
func (t *table) checkFirst(row []string) error {
	if len(row) != len(t.columns) {
		return fmt.Errorf("the header has %d columns and the first row %d", len(t.columns), len(row))
	}
	var errs []error
	for i, name := range t.columns {
		k := slices.IndexFunc(t.inputs, func(in tableInput) bool { return in.column == i })
		if k < 0 || t.inputs[k].holds == words || t.inputs[k].holds == gappy && isGap(row[i]) || isNumber(row[i]) {
			continue
		}
		what := "column " + name
		if t.header != nil {
			what = fmt.Sprintf("column %q (%d)", clip(name), i+1)
		}
		if isGap(row[i]) {
			errs = append(errs, usagef("%s has a gap in the first row: allow gaps with --missing %d, "+
				"or leave it out with --drop %d", what, i+1, i+1))
			continue
		}
		errs = append(errs, usagef("%s is not a number in the first row but %s: leave it out with --drop %d, "+
			"say that it is the label with --label %d, or that it is text with --text %d",
			what, word(row[i]), i+1, i+1, i+1))
	}
	return errors.Join(errs...)
}

// parse reads one row. It skips the header, also in later files.
func (t *table) parse(line []byte) (stream.Event, error) {
	fields, err := t.rows.split(string(line))
	switch {
	case err != nil:
		return stream.Event{}, err
	case t.header != nil && slices.Equal(fields, t.header):
		return stream.Event{}, errSkip
	case len(fields) != len(t.columns):
		return stream.Event{}, fmt.Errorf("%d fields, not %d", len(fields), len(t.columns))
	}
	e := stream.Event{Body: stream.Body{Kind: stream.Vector, Vector: make([]stream.Number, 0, len(t.inputs))}}
	if e.Label, err = t.labels.of(fields[t.label]); err != nil {
		return stream.Event{}, err
	}
	for _, in := range t.inputs {
		if e.Body.Vector, err = in.append(e.Body.Vector, fields[in.column]); err != nil {
			return stream.Event{}, fmt.Errorf("column %s: %w", in.name, err)
		}
	}
	if t.mixed {
		err = stream.SortVector(e.Body.Vector)
	}
	return e, err
}

// sameLabel compares a label with names, as text or as numbers.
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

// list splits s at commas. It leaves out empty parts.
func list(s string) []string {
	var words []string
	for w := range strings.SplitSeq(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

func some(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}
