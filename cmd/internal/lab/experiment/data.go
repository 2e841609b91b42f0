package experiment

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Data reads the sets of a folder. It is for several goroutines.
type Data struct {
	folder string

	mu   sync.Mutex
	sums map[string]string // SHA-256 by path, of files that were read
}

// NewData returns the sets of a folder.
func NewData(folder string) *Data { return &Data{folder: folder, sums: map[string]string{}} }

// A MissingError says that a set's file is not in the folder, or is another one.
type MissingError struct {
	Set   Set
	Path  string // on this machine
	Other bool   // the file is there, but differs from the documented one
}

func (e *MissingError) Error() string {
	what := "is missing"
	if e.Other {
		what = "is not the documented file (its SHA-256 differs)"
	}
	return fmt.Sprintf("data set %s: %s %s; it may be had from %s", e.Set.Name, e.Path, what, e.Set.Where)
}

// Check returns a MissingError if a file of the set is not there.
func (d *Data) Check(name string) error {
	_, err := d.Hash(name)
	return err
}

// Hash returns what identifies the contents of a set.
func (d *Data) Hash(name string) (string, error) {
	s, ok := sets[name]
	if !ok {
		return "", fmt.Errorf("there is no data set %q", name)
	}
	var all []string
	for _, f := range s.Files {
		sum, err := d.sum(f.Path)
		s.Name = name
		if errors.Is(err, fs.ErrNotExist) {
			return "", &MissingError{Set: s, Path: d.path(f.Path)}
		}
		if err != nil {
			return "", fmt.Errorf("data set %s: %w", name, err)
		}
		if f.SHA256 != "" && sum != f.SHA256 {
			return "", &MissingError{Set: s, Path: d.path(f.Path), Other: true}
		}
		all = append(all, sum)
	}
	return strings.Join(all, "+"), nil
}

func (d *Data) path(name string) string { return filepath.Join(d.folder, filepath.FromSlash(name)) }

func (d *Data) sum(name string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if sum, ok := d.sums[name]; ok {
		return sum, nil
	}
	file, err := os.Open(d.path(name))
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	d.sums[name] = hex.EncodeToString(h.Sum(nil))
	return d.sums[name], nil
}

// Read returns a set's file, unpacked if its name ends in .gz.
func (d *Data) Read(path string) ([]byte, error) {
	text, err := os.ReadFile(d.path(path))
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return text, err
	}
	in, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// A layout is a file of numbers and a label in columns that commas, semicolons or
// blanks separate. Columns count from 1.
type layout struct {
	header   bool  // the first line names the columns
	label    int   // column of the label; 0 is the last
	drop     []int // columns that are no inputs
	positive func(label string) bool
}

func is(label string) func(string) bool { return func(s string) bool { return s == label } }

// Table returns the rows of a set in the file's order, without rows that hold "?", and
// their labels ±1. The caller owns them.
func (d *Data) Table(name string) (x [][]float64, y []float64, err error) {
	s, ok := sets[name]
	if !ok || s.table == nil {
		return nil, nil, fmt.Errorf("data set %q is no table", name)
	}
	text, err := d.Read(s.Files[0].Path)
	if err != nil {
		return nil, nil, err
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if number == 1 && s.table.header || strings.Contains(line, "?") || strings.TrimSpace(line) == "" {
			continue
		}
		row, label, err := s.table.parse(line)
		if err != nil {
			return nil, nil, fmt.Errorf("%s, line %d: %w", s.Files[0].Path, number, err)
		}
		x, y = append(x, row), append(y, label)
	}
	return x, y, nil
}

func (l *layout) parse(line string) (row []float64, label float64, err error) {
	fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(",; \t\r\n", r) })
	at := l.label - 1
	if at < 0 {
		at = len(fields) - 1
	}
	if at >= len(fields) {
		return nil, 0, errors.New("too few columns")
	}
	for j, field := range fields {
		if j == at || slices.Contains(l.drop, j+1) {
			continue
		}
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, 0, err
		}
		row = append(row, v)
	}
	if l.positive(fields[at]) {
		return row, 1, nil
	}
	return row, -1, nil
}

// A SparseRow is a row of an svmlight file: indices count from 0 and rise.
type SparseRow struct {
	Index []int
	Value []float64
}

// Sparse reads a set's svmlight file: `label index:value …`, indices from 1. width is one
// more than the largest index.
func (d *Data) Sparse(path string) (x []SparseRow, y []float64, width int, err error) {
	text, err := d.Read(path)
	if err != nil {
		return nil, nil, 0, err
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		row, label, err := parseSparse(fields)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("%s, line %d: %w", path, number, err)
		}
		if n := len(row.Index); n > 0 {
			width = max(width, row.Index[n-1]+1)
		}
		x, y = append(x, row), append(y, label)
	}
	return x, y, width, nil
}

// mostIndex bounds the width of a sparse row: experiments hold a vector of it.
const mostIndex = 1 << 24

func parseSparse(fields []string) (row SparseRow, label float64, err error) {
	if label, err = strconv.ParseFloat(fields[0], 64); err != nil {
		return row, 0, err
	}
	if label > 0 {
		label = 1
	} else {
		label = -1
	}
	last := 0
	for _, field := range fields[1:] {
		index, value, ok := strings.Cut(field, ":")
		j, err := strconv.Atoi(index)
		if !ok || err != nil || j <= last || j > mostIndex {
			return row, 0, fmt.Errorf("%q is not index:value with an index that rises", field)
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return row, 0, err
		}
		last = j
		row.Index, row.Value = append(row.Index, j-1), append(row.Value, v)
	}
	return row, label, nil
}
