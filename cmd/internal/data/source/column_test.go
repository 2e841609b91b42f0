package source

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hamlet/cmd/internal/process/cli"
	"hamlet/stream"
)

func TestColumnsOfTextAndGaps(t *testing.T) {
	const header = "title,price,age,label\n"
	for _, tt := range []struct {
		test, content  string
		cfg            Config
		want, rejected []string
		dense          []string
	}{
		{
			test: "words", content: header + "\"Free, FREE money\",3,4,1\n,1,2,0\n!!,1,2,0\nÉté 2,1,2,0\n",
			cfg:   Config{Text: "title"},
			want:  []string{"spam age=4 price=3 title=free=1 title=money=1", "ham age=2 price=1", "ham age=2 price=1", "ham age=2 price=1 title=2=1 title=été=1"},
			dense: []string{"price", "age"},
		},
		{
			test: "gaps", content: header + "7,,4,1\n7,NA,?,0\n7,2.5,nan,0\n7,x,2,0\n?,1,2,0\n",
			cfg:      Config{Missing: "price,3"},
			want:     []string{"spam age=4 age?=0 price=0 price?=1 title=7", "ham age=0 age?=1 price=0 price?=1 title=7", "ham age=0 age?=1 price=2.5 price?=0 title=7"},
			rejected: []string{`rows.csv:5: column price: "x" is not a number`, `rows.csv:6: column title: "?" is not a number`},
			dense:    []string{"title", "price", "price?", "age", "age?"},
		},
		{
			test: "gaps everywhere, text and chosen inputs", content: header + "a b,,4,1\n",
			cfg:   Config{Text: "1", Missing: "*", Drop: "age", Dense: []string{"price"}},
			want:  []string{"spam price=0 price?=1 title=a=1 title=b=1"},
			dense: []string{"price", "price?"},
		},
		{
			test: "without a header", content: "buy now,?,1\nhi,2,0\n",
			cfg:   Config{Text: "1", Missing: "2"},
			want:  []string{"spam 1=buy=1 1=now=1 2=0 2?=1", "ham 1=hi=1 2=2 2?=0"},
			dense: []string{"2", "2?"},
		},
	} {
		t.Run(tt.test, func(t *testing.T) {
			tt.cfg.Paths = []string{write(t, t.TempDir(), "rows.csv", tt.content)}
			items, rejections := read(t, tt.cfg)
			if d := cmp.Diff(tt.want, brief(items)); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.rejected, rejections); d != "" {
				t.Errorf("rejected (-want +got):\n%s", d)
			}
			s, err := Open(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if !slices.Equal(s.Dense(), tt.dense) {
				t.Errorf("dense inputs %v, want %v", s.Dense(), tt.dense)
			}
		})
	}
}

// Wrong flags are told before anything is read.
func TestColumnFlagsThatContradict(t *testing.T) {
	for _, tt := range []struct {
		header, row string
		cfg         Config
		want        string
	}{
		{"a,b,label", "x,1,1", Config{}, "or that it is text with --text 1"},
		{"a,b,label", "1,,1", Config{}, `column "b" (2) has a gap in the first row: allow gaps with --missing 2`},
		{"a,b,label", "x,1,1", Config{Text: "c"}, `--text: no column "c"`},
		{"a,b,label", "x,1,1", Config{Text: "label"}, "--text label: that column is the label or dropped"},
		{"a,b,label", "x,1,1", Config{Missing: "b", Drop: "b"}, "--missing b: that column is the label or dropped"},
		{"a,b,label", "x,1,1", Config{Text: "a", Missing: "a"}, "--missing a: that column is text"},
		{"a,b,label", "x,1,1", Config{Text: "a", Dense: []string{"a"}}, "--dense a: that column is text"},
		{"a,a?,label", "1,1,1", Config{Missing: "a"}, `column "a?" would share a name`},
		{"a,a=b,label", "1,1,1", Config{Text: "a"}, `column "a=b" would share a name`},
	} {
		_, err := newTable([]string{tt.header, tt.row}, &tt.cfg, newLabelling(FormatCSV, ""))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %+v: %v, want %q", tt.header, tt.cfg, err, tt.want)
		}
	}
	_, err := Open(Config{Paths: []string{write(t, t.TempDir(), "a.svm", "1 1:2\n")}, Text: "a"})
	if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), "--text") {
		t.Errorf("--text with svmlight: %v", err)
	}
}

// However a row looks, its vector is sorted, and its names fit into an event.
func FuzzMixedRow(f *testing.F) {
	f.Add("some Words, words", "?", "3")
	f.Add(strings.Repeat("é", 300), "1e3", "")
	f.Add("a=b\xff\x00", "nan", "n/a")
	f.Fuzz(func(t *testing.T, text, price, age string) {
		table, err := newTable([]string{"text;price;age;label", "x;1;;1"}, &Config{Text: "text", Missing: "*"}, newLabelling(FormatCSV, ""))
		if err != nil {
			t.Fatal(err)
		}
		row := text + ";" + price + ";" + age + ";1"
		if strings.ContainsAny(row, "\r\n") {
			return
		}
		e, err := table.parse([]byte(row))
		if err != nil {
			return
		}
		check(t, e)
		if e.ID = "1"; e.Validate() != nil {
			t.Errorf("%q: %v", row, e.Validate())
		}
		missing := 0.0
		for _, n := range e.Body.Vector {
			if strings.HasSuffix(n.Name, "?") {
				missing += n.Value
			}
			if len(n.Name) > stream.MaxNameLength {
				t.Errorf("a name of %d bytes", len(n.Name))
			}
		}
		if want := float64(strings.Count(strings.Join([]string{gapText(price), gapText(age)}, ""), "gap")); !strings.ContainsAny(row, `"`) && strings.Count(row, ";") == 3 && missing != want {
			t.Errorf("%q: %v gaps, want %v", row, missing, want)
		}
	})
}

func gapText(field string) string {
	if isGap(strings.TrimSpace(field)) {
		return "gap"
	}
	return ""
}
