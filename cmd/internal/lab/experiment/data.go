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
	"maps"
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

// A Set is a public data set: files with known contents.
type Set struct {
	Name  string
	What  string // rows, inputs, classes
	Where string // where it may be had
	Files []File
	table *layout // how Table reads it; nil: Table does not
}

// A File is a part of a set. Its path is below the data folder.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256,omitempty"` // "": any file in the documented form is taken
}

// Sets returns all data sets by name.
func Sets() []Set {
	var all []Set
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		s := sets[name]
		s.Name = name
		all = append(all, s)
	}
	return all
}

// uci is where most sets come from. Files elsewhere often have a header, other line
// ends or another order of rows.
const uci = "archive.ics.uci.edu"

var sets = map[string]Set{
	"spambase": {What: "4,601 mails of 57 numbers, 1,813 spam", Where: uci + ", Spambase",
		Files: []File{{"spambase/spambase.data", "b1ef93de71f97714d3d7d4f58fc9f718da7bbc8ac8a150eff2778616a8097b12"}},
		table: &layout{positive: is("1")}},
	"ionosphere": {What: "351 radar returns of 34 numbers, 225 good", Where: uci + ", Ionosphere",
		Files: []File{{"ionosphere/ionosphere.data",
			"46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd"}},
		table: &layout{drop: []int{2}, positive: is("g")}},
	"wdbc": {What: "569 tumours of 30 numbers, 212 malignant", Where: uci + ", Breast Cancer Wisconsin (Diagnostic)",
		Files: []File{{"wdbc/wdbc.data", "d606af411f3e5be8a317a5a8b652b425aaf0ff38ca683d5327ffff94c3695f4a"}},
		table: &layout{label: 2, drop: []int{1}, positive: is("M")}},
	"breast": {What: "683 tumours of 9 integers, 239 malignant (16 more have gaps)",
		Where: uci + ", Breast Cancer Wisconsin (Original)",
		Files: []File{{"breast-cancer-wisconsin/breast-cancer-wisconsin.data",
			"402c585309c399237740f635ef9919dc512cca12cbeb20de5e563a4593f22b64"}},
		table: &layout{drop: []int{1}, positive: is("4")}},
	"pima": {What: "768 patients of 8 numbers, 268 with diabetes", Where: "OpenML, diabetes; UCI has withdrawn it",
		Files: []File{{"pima/pima-indians-diabetes.data",
			"06f5b7c2cd7bca686fda4f92eab5f61e7ff6426a9acefa2e3dda04fc54293cf5"}},
		table: &layout{positive: is("1")}},
	"letter-ab": {What: "1,555 letters A and B of 16 integers, 789 A", Where: uci + ", Letter Recognition; the rows " +
		"of A and B alone",
		Files: []File{{"letter-ab/letter-ab.data", "3317c6464e5469072696397acb8b179154d448f3f0f5166a65fd0181bca092bb"}},
		table: &layout{label: 1, positive: is("A")}},
	"wine-red": {What: "1,599 wines of 11 numbers; quality 5 and more is +1", Where: uci + ", Wine Quality",
		Files: []File{{"wine-red/winequality-red.csv",
			"4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e"}},
		table: &layout{header: true, positive: func(quality string) bool { return quality >= "5" }}},
	"heart": {What: "270 patients of 13 numbers, 120 with disease", Where: uci + ", Statlog (Heart)",
		Files: []File{{"heart/heart.dat", "f5f3b4204c285bafadd85cb735f38b47689f2be7047feb172dcbeab648110bf9"}},
		table: &layout{positive: is("2")}},
	"liver": {What: "345 men of 6 numbers, 200 of selector 2", Where: uci + ", Liver Disorders",
		Files: []File{{"liver/bupa.data", "a166a3e7a6f4dc41aaaedc59a107e57d8adcaeb8821f0873d756982f1ea74c92"}},
		table: &layout{positive: is("2")}},
	"w8a": {What: "49,749 + 14,951 web pages of 300 binary features", Where: "LIBSVM's collection, w8a; gzip",
		Files: []File{
			{"w8a/w8a.gz", "96662ca00ad3620d18e30f9359627aeacebcda9be9381005c551e405220cc9d9"},
			{"w8a/w8a.t.gz", "d66cdbb04d6bed2f4402ec9e34fb484ea5f71474db626a6ba46dcc2b9f44dc71"}}},
	"sms": {What: "5,574 texts, 747 spam", Where: uci + ", SMS Spam Collection",
		Files: []File{{"sms/SMSSpamCollection", "7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d"}}},
	"state": {What: "145 documents of 22,648 words, about Illinois (+1) or Michigan (−1), as svmlight",
		Where: "the documents of reference [8] of the VIBoost paper, one line `±1 index:1 …` a document",
		Files: []File{{Path: "state/state.svm"}}},
	"reviews-books":       review("books"),
	"reviews-dvd":         review("dvd"),
	"reviews-electronics": review("electronics"),
	"reviews-kitchen":     review("kitchen"),
}

// review is a domain of the reviews of products by Blitzer, Dredze and Pereira (2007).
func review(domain string) Set {
	return Set{What: "reviews of products, domain " + domain + ", ±1 and word counts as svmlight",
		Where: "the multi-domain sentiment data set of Blitzer, Dredze and Pereira (2007), its processed form, " +
			"one line `±1 index:count …` a review",
		Files: []File{{Path: "reviews/" + domain + ".svm"}}}
}
