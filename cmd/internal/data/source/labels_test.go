package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rows returns n lines: label is what line i is labelled.
func rows(n int, format string, label func(i int) string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", label(i), i)
	}
	return b.String()
}

const (
	textRow = "%s\ttext %d"
	csvRow  = "%[2]d,%[1]s"
	svmRow  = "%s 1:%d"
)

func every(n int, usual, other string) func(int) string {
	return func(i int) string {
		if i%n == n-1 {
			return other
		}
		return usual
	}
}

// Labels that are probably misunderstood end a source before its first event. The error
// shows them, and the flag that would do.
func TestMisunderstoodLabels(t *testing.T) {
	always := func(s string) func(int) string { return func(int) string { return s } }
	for _, c := range []struct {
		name, data string
		cfg        Config
		want       []string // in the error; none: it is read
	}{
		{"1 and 2", rows(270, csvRow, every(2, "1", "2")), Config{Format: FormatCSV},
			[]string{"135 of 270 labels are unknown", `"1" 135 times (spam), "2" 135 times (unknown)`, "--positive 2"}},
		{"1 and 2, told", rows(270, csvRow, every(2, "1", "2")), Config{Format: FormatCSV, Positive: "2"}, nil},
		{"2 and 4 in svmlight", rows(100, svmRow, every(2, "2", "4")), Config{Format: FormatSVMLight}, []string{"100 of 100", "--positive 2"}},
		{"2 and 4 in svmlight, told", rows(100, svmRow, every(2, "2", "4")), Config{Format: FormatSVMLight, Positive: "4"}, nil},
		{"text", rows(100, textRow, every(2, "good", "junk")), Config{Format: FormatText}, []string{`"junk" 50 times`, "--positive"}},
		{"text, told", rows(100, textRow, every(2, "good", "junk")), Config{Format: FormatText, Positive: "junk"}, nil},
		{"more than a tenth", rows(45, csvRow, func(i int) string { return []string{"1", "0", "0", "1", "0", "1", "1", "0", "7"}[i%9] }), Config{Format: FormatCSV}, []string{"5 of 45"}},
		{"a tenth", rows(50, csvRow, func(i int) string { return []string{"1", "0", "0", "1", "0", "1", "1", "0", "1", "7"}[i%10] }), Config{Format: FormatCSV}, nil},
		{"a bad row of few", "1,spam\n2,ham\n3,spma\n", Config{Format: FormatCSV}, nil},
		{"one class", rows(50, csvRow, always("1")), Config{Format: FormatCSV}, []string{"all 50 known labels mean spam", "--positive"}},
		{"one class, few rows", rows(49, csvRow, always("1")), Config{Format: FormatCSV}, nil},
		{"one class, to a limit", rows(100, csvRow, always("1")), Config{Format: FormatCSV, Limit: 60}, nil},
		{"one class at first", rows(100, csvRow, every(100, "1", "0")), Config{Format: FormatCSV}, nil},
		{"one class, told", rows(100, csvRow, always("1")), Config{Format: FormatCSV, Positive: "1"}, nil},
		{"no label is positive", rows(100, csvRow, every(2, "yes", "no")), Config{Format: FormatCSV, Positive: "Yes"}, []string{"all 100 known labels mean ham", `"no" 50 times (ham)`}},
		{"shuffled", rows(270, csvRow, every(2, "1", "2")), Config{Format: FormatCSV, Shuffle: new(int64)}, []string{"135 of 270"}},
		{"no labels to name", rows(100, csvRow, func(i int) string { return fmt.Sprint(i) }), Config{Format: FormatCSV}, []string{"98 of 100", "and 90 more"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "data")
			if err := os.WriteFile(file, []byte(c.data), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, once := range []bool{false, true} {
				cfg := c.cfg
				cfg.Paths = []string{file}
				if once {
					cfg.Paths, cfg.Stdin = []string{"-"}, strings.NewReader(c.data)
				}
				events, err := readAll(t, cfg)
				var labels *LabelsError
				switch {
				case (len(c.want) > 0) != errors.As(err, &labels):
					t.Errorf("read once: %v: after %d events: %v", once, events, err)
				case err == nil:
				case !once && events > 0:
					t.Errorf("%d events came before the error", events)
				case !once && slices.ContainsFunc(c.want, func(s string) bool { return !strings.Contains(err.Error(), s) }):
					t.Errorf("%v\nwant %q", err, c.want)
				}
			}
		})
	}
}

// readAll returns how many events a source yields, and its last error.
func readAll(t *testing.T, cfg Config) (events int, err error) {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, err := range s.Events() {
		if err != nil && !isRejection(err) {
			return events, err
		}
		if err == nil {
			events++
		}
	}
	return events, nil
}

// A class in a file of its own is none alone: a command's files are judged together.
func TestOneFilePerClass(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for _, label := range []string{"0", "1"} {
		path := filepath.Join(dir, label+".csv")
		if err := os.WriteFile(path, []byte(rows(80, csvRow, func(int) string { return label })), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	if events, err := readAll(t, Config{Paths: paths}); events != 160 || err != nil {
		t.Errorf("%d events, %v", events, err)
	}
	if _, err := readAll(t, Config{Paths: paths[:1]}); err == nil || !strings.HasPrefix(err.Error(), paths[0]+": ") {
		t.Errorf("one of them alone: %v", err)
	}
}

// A source that can be read only once ends before all of it is sent.
func TestMisunderstoodPipeEndsEarly(t *testing.T) {
	data := rows(100_000, csvRow, every(2, "1", "2"))
	events, err := readAll(t, Config{Paths: []string{"-"}, Format: FormatCSV, Stdin: strings.NewReader(data)})
	if events > 2*judgedEarly || err == nil || !strings.HasPrefix(err.Error(), "-: ") {
		t.Errorf("%d events, then %v", events, err)
	}
}
