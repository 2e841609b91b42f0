package source

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"hamlet/cmd/internal/process/cli"
	"hamlet/stream"
)

// write makes a file under a directory of the test's own and returns its path.
func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// read returns all items of a source, and its rejections as text without the test's
// directory.
func read(t *testing.T, cfg Config) (items []Item, rejections []string) {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return drain(t, s)
}

func drain(t *testing.T, s *Source) (items []Item, rejections []string) {
	t.Helper()
	for item, err := range s.Events() {
		var r *Rejection
		switch {
		case errors.As(err, &r):
			rejections = append(rejections, filepath.Base(r.Error()))
		case err != nil:
			t.Fatal(err)
		default:
			items = append(items, item)
		}
	}
	return items, rejections
}

// brief describes events by label and body: "spam a=1 b=2", "ham text".
func brief(items []Item) (out []string) {
	for _, item := range items {
		e := item.Event
		s := e.Label.String()
		for _, n := range e.Body.Vector {
			s += fmt.Sprintf(" %s=%v", n.Name, n.Value)
		}
		if e.Body.Kind != stream.Vector {
			s += " " + e.Body.Text + string(e.Body.Mail)
		}
		out = append(out, s)
	}
	return out
}

func gzipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstandard(t *testing.T, s string) string {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return string(z.EncodeAll([]byte(s), nil))
}

func TestFormats(t *testing.T) {
	for _, tt := range []struct {
		test, name, content string
		cfg                 Config
		want, rejected      []string
	}{
		{
			test: "text, told by its content", name: "sms",
			content: "ham\tOk lar\r\nspam\tYou won\tthis\n\nmaybe\tHm\nham\nspam\tcaf\xe9\nham\t\n",
			cfg:     Config{Format: "text"},
			want:    []string{"ham Ok lar", "spam You won\tthis", "spam caf\ufffd"},
			rejected: []string{
				`sms:4: label: "maybe" is neither spam nor ham`,
				`sms:5: no tab: label<TAB>text is wanted`,
				`sms:7: text: empty`,
			},
		},
		{
			test: "text without format", name: "collection", content: "\ufeffham\tOk\nspam\tWin",
			want: []string{"ham Ok", "spam Win"},
		},
		{
			test: "csv", name: "rows.csv", content: "1,2,3,0\r\n4,NaN,6,1\n7,8,9,1\n1,2,3\n1,2,3,4\n1,?,3,1\n-1,1e3,+.5,+1\n1,1e999,2,0\n",
			want: []string{"ham 1=1 2=2 3=3", "spam 1=7 2=8 3=9", "spam 1=-1 2=1000 3=0.5"},
			rejected: []string{
				"rows.csv:2: column 2: NaN is not a finite number",
				"rows.csv:4: 3 fields, not 4",
				`rows.csv:5: label: "4" is neither spam (spam, 1, +1) nor ham (ham, 0, -1); --positive names what is spam, --label the column`,
				`rows.csv:6: column 2: "?" is not a number`,
				"rows.csv:8: column 2: +Inf is not a finite number",
			},
		},
		{
			test: "csv with ; and a header", name: "wine.csv",
			content: "\"z acid\";\"a; \"\"b\"\"\";class\n1;2;good\n3;\"4\";bad\n",
			cfg:     Config{Positive: "good"},
			want:    []string{`spam a; "b"=2 z acid=1`, `ham a; "b"=4 z acid=3`},
		},
		{
			test: "csv with blanks, label by number, a column dropped", name: "heart.dat",
			content: "id7  yes  1.5 2\n id8\tno 2.5   3\n",
			cfg:     Config{Label: "2", Positive: "yes", Drop: "1", Format: "csv"},
			want:    []string{"spam 3=1.5 4=2", "ham 3=2.5 4=3"},
		},
		{
			test: "csv with quotes, by RFC 4180", name: "q.csv",
			content: "1,\"2\",0\n\" 3\", \"4\",\"spam\"\n5,\"6\" ,1\n5,6\",1\n5,\"6,1\n7,8,1\n",
			want:    []string{"ham 1=1 2=2", "spam 1=3 2=4", "spam 1=7 2=8"},
			rejected: []string{
				`q.csv:3: byte 5: extraneous or missing " in quoted-field`,
				`q.csv:4: byte 4: bare " in non-quoted-field`,
				`q.csv:5: byte 7: extraneous or missing " in quoted-field`,
			},
		},
		{
			test: "csv with blanks and quotes", name: "r.dat", content: "\"x\"  \"a b\" \"label\"\n 1 \t2 \"spam\" \n",
			cfg: Config{Format: "csv"}, want: []string{"spam a b=2 x=1"},
		},
		{
			test: "csv with tabs and named columns", name: "t.csv",
			content: "day\tlabel\tx\n5\t1\t2\n6\t0\t3\n",
			cfg:     Config{Label: "label", Drop: "day"},
			want:    []string{"spam x=2", "ham x=3"},
		},
		{
			test: "ten columns, sorted by name", name: "ten.csv", content: "1,2,3,4,5,6,7,8,9,10,1\n",
			want: []string{"spam 1=1 10=10 2=2 3=3 4=4 5=5 6=6 7=7 8=8 9=9"},
		},
		{
			test: "svmlight", name: "w8a",
			content: "-1 \n+1 3:1 017:2.5 # note\n0 10:1 9:-2\n# nothing\n2 1:1\n1 1:1 1:2\n1 x:1\n1 1:nan\n1 1:\n",
			want:    []string{"ham", "spam 17=2.5 3=1", "ham 10=1 9=-2"},
			cfg:     Config{Format: "svmlight"},
			rejected: []string{
				`w8a:5: label: "2" must be +1 or 1 (spam), -1 or 0 (ham)`,
				`w8a:6: vector: name "1" is given twice`,
				`w8a:7: "x:1": index:value is wanted, the index a whole number`,
				`w8a:8: vector: "1" is NaN, not a finite number`,
				`w8a:9: index 1: "" is not a number`,
			},
		},
		{
			test: "svmlight fills dense names with its zeros", name: "d.svm", content: "1 3:1\n0 2:5\n",
			cfg:  Config{Dense: []string{"2"}},
			want: []string{"spam 2=0 3=1", "ham 2=5"},
		},
		{
			test: "jsonl", name: "events.jsonl",
			content: `{"id":"a1","label":"spam","text":"You won"}` + "\n" +
				`{"label":"ham","vector":{"b":2,"a":1}}` + "\n" +
				`{"label":"ham","text":"x","colour":"red"}` + "\n" +
				`{"label":"spam"` + "\n" +
				`{"id":"u","text":"no label"}` + "\n" +
				`{"label":"ham","mail":"U3ViamVjdDogeAoKaGVsbG8K"}` + "\n",
			want: []string{"spam You won", "ham a=1 b=2", "ham Subject: x\n\nhello\n"},
			rejected: []string{
				`events.jsonl:3: event in JSON: unknown field "colour"`,
				`events.jsonl:4: event in JSON: `,
				`events.jsonl:5: label: missing`,
			},
		},
	} {
		for _, packed := range []struct {
			ext  string
			pack func(*testing.T, string) string
		}{{"", func(_ *testing.T, s string) string { return s }}, {".gz", gzipped}, {".zst", zstandard}} {
			t.Run(tt.test+packed.ext, func(t *testing.T) {
				cfg := tt.cfg
				cfg.Paths = []string{write(t, t.TempDir(), tt.name+packed.ext, packed.pack(t, tt.content))}
				items, rejections := read(t, cfg)
				if d := cmp.Diff(tt.want, brief(items)); d != "" {
					t.Errorf("events (-want +got):\n%s", d)
				}
				for i := range rejections {
					rejections[i] = strings.Replace(rejections[i], packed.ext+":", ":", 1)
				}
				if len(rejections) != len(tt.rejected) {
					t.Fatalf("rejected %q, want %q", rejections, tt.rejected)
				}
				for i, want := range tt.rejected {
					if !strings.HasPrefix(rejections[i], want) {
						t.Errorf("rejected %q, want %q", rejections[i], want)
					}
				}
			})
		}
	}
}

func TestStandardInput(t *testing.T) {
	s, err := Open(Config{Paths: []string{"-"}, Stdin: strings.NewReader(gzipped(t, "1,2,0\n3,4,1\n"))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	items, _ := drain(t, s)
	if d := cmp.Diff([]string{"ham 1=1 2=2", "spam 1=3 2=4"}, brief(items)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, err := range s.Events() {
		if err == nil || !strings.Contains(err.Error(), "name a file instead") {
			t.Errorf("read a second time: %v", err)
		}
	}
}

// Open needs only the first line of a pipe.
func TestPipeBeginsWithItsFirstLine(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fmt.Fprintln(w, "spam\tWin")
	s, err := Open(Config{Paths: []string{"-"}, Stdin: r})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for item, err := range s.Events() {
		if err != nil || item.Event.Body.Text != "Win" {
			t.Errorf("got %+v, %v", item, err)
		}
		break
	}
}

func TestDirectoryAndManyPaths(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rows/b.csv", "x,y\n3,1\n")
	write(t, dir, "rows/a.csv", "x,y\n1,0\n2,1\n")
	write(t, dir, "rows/.hidden", "not a table")
	more := write(t, dir, "more.csv", "x,y\n4,0\n")
	cfg := Config{Paths: []string{filepath.Join(dir, "rows"), more}}
	items, rejections := read(t, cfg)
	if d := cmp.Diff([]string{"ham x=1", "spam x=2", "spam x=3", "ham x=4"}, brief(items)); d != "" || rejections != nil {
		t.Errorf("(-want +got):\n%s%v", d, rejections)
	}
}

func TestIDs(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "a.txt", "ham\tsame\nham\tsame\nspam\tother\n")
	ids := func(cfg Config) (ids []string) {
		items, _ := read(t, cfg)
		for _, item := range items {
			ids = append(ids, item.Event.ID)
		}
		return ids
	}
	first := ids(Config{Paths: []string{path}})
	if again := ids(Config{Paths: []string{path}}); !slices.Equal(first, again) {
		t.Errorf("ids %v, then %v", first, again)
	}
	if first[0] == first[1] || len(first[0]) != 24 {
		t.Errorf("ids of two equal lines: %v", first[:2])
	}
	seed := int64(7)
	shuffled := ids(Config{Paths: []string{path}, Shuffle: &seed})
	slices.Sort(shuffled)
	slices.Sort(first)
	if !slices.Equal(first, shuffled) {
		t.Errorf("shuffled, the ids are %v, not %v", shuffled, first)
	}
	changed := ids(Config{Paths: []string{write(t, dir, "b.txt", "ham\tsame\nspam\tsame\nspam\tother\n")}})
	if slices.Contains(first, changed[1]) {
		t.Error("a changed label keeps the id")
	}
}

func TestShuffleAndLimit(t *testing.T) {
	var rows strings.Builder
	for i := range 200 {
		fmt.Fprintf(&rows, "%d,%d\n", i, i%2)
	}
	rows.WriteString("x,1\n")
	path := write(t, t.TempDir(), "a.csv", rows.String())
	seven, eight := int64(7), int64(8)
	a, rejections := read(t, Config{Paths: []string{path}, Shuffle: &seven})
	b, _ := read(t, Config{Paths: []string{path}, Shuffle: &seven})
	c, _ := read(t, Config{Paths: []string{path}, Shuffle: &eight})
	if !slices.Equal(brief(a), brief(b)) || slices.Equal(brief(a), brief(c)) {
		t.Error("the permutation is not a function of the seed")
	}
	sorted := brief(a)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) != 200 || len(rejections) != 1 {
		t.Errorf("%d events, rejected %v", len(sorted), rejections)
	}
	for i, item := range a {
		if item.Ordinal != i+1 { // the rejection comes first
			t.Fatalf("ordinal of item %d is %d", i, item.Ordinal)
		}
	}
	limited, _ := read(t, Config{Paths: []string{path}, Shuffle: &seven, Limit: 10})
	if d := cmp.Diff(a[:10], limited); d != "" {
		t.Errorf("limit 10 (-want +got):\n%s", d)
	}
}

func TestFlips(t *testing.T) {
	var rows strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&rows, "%s\tmessage %d\n", []string{"ham", "spam"}[i%2], i)
	}
	path := write(t, t.TempDir(), "a.txt", rows.String())
	flipped := func(cfg Config) (ham, spam int, ids []string) {
		cfg.Paths = []string{path}
		items, _ := read(t, cfg)
		for i, item := range items {
			if want := []stream.Label{stream.Ham, stream.Spam}[item.Event.Body.Text[len(item.Event.Body.Text)-1]&1]; item.Truth != want {
				t.Fatalf("truth of %d is %v", i, item.Truth)
			}
			if item.Event.Label == item.Truth {
				continue
			}
			if item.Ordinal+1 < cfg.Flip.From || cfg.Flip.Source != "" && item.Event.Source != cfg.Flip.Source {
				t.Fatalf("event %d of %s is flipped", i+1, item.Event.Source)
			}
			ids = append(ids, item.Event.ID)
			if item.Truth == stream.Ham {
				ham++
			} else {
				spam++
			}
		}
		return ham, spam, ids
	}
	near := func(what string, got int, want float64) {
		t.Helper()
		if d := float64(got) - want; d < -0.2*want-1 || d > 0.2*want+1 {
			t.Errorf("%s: %d flipped, want about %v", what, got, want)
		}
	}
	ham, spam, ids := flipped(Config{Flip: FlipConfig{Rate: 0.2, Seed: 1}})
	near("ham", ham, 400)
	near("spam", spam, 400)
	seed := int64(3)
	_, _, shuffled := flipped(Config{Flip: FlipConfig{Rate: 0.2, Seed: 1}, Shuffle: &seed})
	slices.Sort(ids)
	slices.Sort(shuffled)
	if !slices.Equal(ids, shuffled) {
		t.Error("in another order other events are flipped")
	}
	if _, _, other := flipped(Config{Flip: FlipConfig{Rate: 0.2, Seed: 2}}); slices.Equal(slices.Sorted(slices.Values(other)), ids) {
		t.Error("another seed flips the same events")
	}
	ham, spam, _ = flipped(Config{Flip: FlipConfig{Rate: 0.5, From: 2001, Kind: "spam"}})
	near("only spam from the middle", spam, 500)
	near("only spam: ham", ham, 0)
	ham, spam, _ = flipped(Config{
		Flip:   FlipConfig{Rate: 1, Kind: "ham", Source: "bad"},
		Assign: []Assignment{{Name: "good"}, {"bad", 0.25}},
	})
	near("one source's ham", ham, 500)
	near("one source's spam", spam, 0)
}

func TestAssignments(t *testing.T) {
	var a []Assignment
	for _, s := range []string{"desk=0.5", "users", "traps"} {
		var one Assignment
		if err := one.UnmarshalText([]byte(s)); err != nil {
			t.Fatal(err)
		}
		if text, err := one.MarshalText(); string(text) != s || err != nil {
			t.Errorf("%s is written %s, %v", s, text, err)
		}
		a = append(a, one)
	}
	counts := map[string]int{}
	for i := range 10000 {
		counts[assign(a, fmt.Sprint(i))]++
	}
	for name, want := range map[string]int{"desk": 5000, "users": 2500, "traps": 2500} {
		if n := counts[name]; n < want-200 || n > want+200 {
			t.Errorf("%s has %d, want about %d", name, n, want)
		}
	}
	part := 0
	for i := range 1000 {
		if assign([]Assignment{{"few", 0.1}}, fmt.Sprint(i)) == stream.DefaultName {
			part++
		}
	}
	if part < 850 || part > 950 {
		t.Errorf("%d keep the default source, want about 900", part)
	}
	for _, bad := range []string{"", "=0.5", "a=", "a=0", "a=2", "a=x", "a=NaN"} {
		if err := new(Assignment).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is an assignment", bad)
		}
	}
	// An event with a source keeps it.
	path := write(t, t.TempDir(), "e.jsonl", `{"id":"1","label":"ham","text":"x","source":"mine"}`+"\n"+`{"label":"ham","text":"x"}`+"\n")
	items, _ := read(t, Config{Paths: []string{path}, Assign: []Assignment{{Name: "given"}}})
	if items[0].Event.Source != "mine" || items[1].Event.Source != "given" || items[0].Event.ID != "1" || items[1].Event.ID == "" {
		t.Errorf("got %+v", items)
	}
}

// A share is that of every label but those that say themselves how they were asked for. It changes no id.
func TestSampled(t *testing.T) {
	path := write(t, t.TempDir(), "e.jsonl", `{"label":"ham","text":"x"}
{"label":"ham","text":"x","sampled":{"probability":0.5,"why":"review"}}
{"action":"unlearn","of":"1","text":"x"}
{"action":"correct","of":"1","label":"spam","text":"x"}
{"action":"assume","of":"1","label":"spam","text":"x"}
`)
	share := 0.02
	items, rejections := read(t, Config{Paths: []string{path}, Sampled: &share})
	plain, _ := read(t, Config{Paths: []string{path}})
	if len(items) != 5 || len(rejections) > 0 {
		t.Fatalf("%d items, rejected %v", len(items), rejections)
	}
	all := stream.SampledShare(0.02, stream.SampledAll)
	for i, want := range []stream.Sampled{all, stream.SampledShare(0.5, stream.SampledReview), {}, all, {}} {
		if got := items[i].Event.Sampled; got != want {
			t.Errorf("event %d was asked for as %+v, want %+v", i, got, want)
		}
		if items[i].Event.ID != plain[i].Event.ID {
			t.Errorf("event %d is %s, and %s without a share", i, items[i].Event.ID, plain[i].Event.ID)
		}
	}
	if (plain[0].Event.Sampled != stream.Sampled{}) {
		t.Errorf("without a share it was asked for as %+v", plain[0].Event.Sampled)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	table := write(t, dir, "a.csv", "id1,yes,3,0\n")
	header := write(t, dir, "h.csv", "a,b\n1,0\n")
	empty := write(t, dir, "empty.csv", "")
	riddle := write(t, dir, "riddle", "what am I?\n")
	message := write(t, dir, "m", "From: a\nSubject: b\n\nhi\n")
	twice := write(t, dir, "twice.csv", "a,a,b\n1,2,0\n")
	tooMuch := 1.5
	if err := os.Mkdir(filepath.Join(dir, "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cfg   Config
		usage bool
		want  []string
	}{
		{Config{}, true, []string{"no source"}},
		{Config{Paths: []string{dir + "/none", empty, dir + "/void"}}, false, []string{"none: no such file", "empty.csv: the file is empty", "void: the directory holds no file"}},
		{Config{Paths: []string{riddle}}, true, []string{"--format"}},
		{Config{Paths: []string{message}}, true, []string{"--spam PATH", "--index"}},
		{Config{Paths: []string{header, message}}, true, []string{"one format at a time"}},
		{Config{Paths: []string{table}, Format: "cvs", Limit: -1, Sampled: &tooMuch, Flip: FlipConfig{Rate: 2, Kind: "x", From: -1}}, true,
			[]string{"--format cvs", "--limit -1", "--sampled 1.5", "--flip 2", "--flip-kind x", "--flip-from -1"}},
		{Config{Paths: []string{table}}, true, []string{"column 1 is not a number in the first row but \"id1\"", "--drop 1", "--drop 2", "--label 2"}},
		{Config{Paths: []string{table}, Label: "7", Drop: "b,9"}, true, []string{"--label: no column 7", "--drop: no column \"b\"", "--drop: no column 9"}},
		{Config{Paths: []string{header}, Label: "c"}, true, []string{`no column "c"; the header has a, b`}},
		{Config{Paths: []string{header}, Drop: "a"}, true, []string{"no column to learn from"}},
		{Config{Paths: []string{header}, Dense: []string{"b", "z"}}, true, []string{"--dense b", "--dense: no column \"z\""}},
		{Config{Paths: []string{twice}}, false, []string{`two columns are called "a"`}},
		{Config{Paths: []string{message}, Format: "text", Label: "x"}, true, []string{"--label is about CSV"}},
		{Config{Paths: []string{table}, Assign: []Assignment{{"a", 0.7}, {"b", 0.7}, {"b", 0.1}, {"x@y", 0}}}, true,
			[]string{"sum to 1.5", "b: given twice", "not an address"}},
		{Config{Paths: []string{"-", "-"}, Stdin: strings.NewReader("")}, true, []string{"given twice"}},
		{Config{Paths: []string{"-"}, Stdin: strings.NewReader("")}, false, []string{"standard input: empty"}},
		{Config{Paths: []string{write(t, dir, "broken.csv.gz", "\x1f\x8bnothing")}}, false, []string{"broken.csv.gz: unpack gzip"}},
	} {
		_, err := Open(tt.cfg)
		if err == nil {
			t.Errorf("Open(%+v) finds nothing wrong, want %q", tt.cfg, tt.want)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %q, want %q in it", err, want)
			}
		}
		var usage *cli.UsageError
		if errors.As(err, &usage) != tt.usage {
			t.Errorf("wrong usage: %v, want %v: %v", !tt.usage, tt.usage, err)
		}
	}
}

// A truncated stream ends with an error.
func TestTruncatedArchive(t *testing.T) {
	packed := gzipped(t, strings.Repeat("ham\thello there\nspam\tbuy\n", 1000)+"ham\tlast\n")
	s, err := Open(Config{Paths: []string{write(t, t.TempDir(), "a.gz", packed[:len(packed)-12])}, Format: "text"})
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range s.Events() {
		last = err
	}
	if last == nil || !strings.Contains(last.Error(), "a.gz: read line") {
		t.Errorf("the last error is %v", last)
	}
}

func TestLongLines(t *testing.T) {
	text := strings.Repeat("x", 100_000)
	want := []string{"short", text, "", "end"}
	n := 0
	for line, err := range Lines(strings.NewReader("\ufeffshort\n"+text+"\r\n"+strings.Repeat("y", 300_000)+"\nend"), 200_000) {
		if n == len(want) || string(line) != want[n] || (n == 2) != errors.Is(err, ErrLineTooLong) {
			t.Errorf("line %d: %d bytes, %v", n+1, len(line), err)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d lines, want %d", n, len(want))
	}
}

func TestSpoolGoesToDisk(t *testing.T) {
	s := newSpool()
	defer s.close()
	s.limit = 1000
	const n = 100
	for i := range n {
		e := stream.Event{ID: fmt.Sprint(i), Label: stream.Spam, Body: stream.Body{Kind: stream.Text, Text: strings.Repeat("t", i)}}
		if err := s.add(&e); err != nil {
			t.Fatal(err)
		}
	}
	if s.file == nil || len(s.memory) > s.limit {
		t.Fatalf("%d bytes in memory", len(s.memory))
	}
	for i := n - 1; i >= 0; i-- {
		e, err := s.at(i)
		if err != nil || e.ID != fmt.Sprint(i) || len(e.Body.Text) != i {
			t.Fatalf("event %d: %+v, %v", i, e, err)
		}
	}
}

const standingLine = `{"type":"hamlet.standing.v1","id":"s","source":"a","role":"muted"}`

// A standing keeps its place between events. It is none of the events that limits and flips
// count. Commands that do not ask for standings get an error that says who can use them.
func TestStandingsBetweenEvents(t *testing.T) {
	event := `{"id":"e","label":"ham","text":"x"}`
	path := write(t, t.TempDir(), "e.jsonl", strings.Join([]string{event, standingLine, event,
		strings.Replace(standingLine, "muted", "loud", 1), standingLine, event}, "\n"))
	cfg := Config{Paths: []string{path}, Standing: true, Limit: 2, Flip: FlipConfig{Rate: 1, From: 2}}
	items, rejections := read(t, cfg)
	if len(items) != 3 || len(rejections) != 0 || items[1].Standing == nil || items[1].Standing.Role != stream.Muted || items[1].ID() != "s" ||
		items[2].Event.Label != stream.Spam || items[2].Ordinal != 2 || items[0].ID() != "e" {
		t.Errorf("items %+v, rejected %q", items, rejections)
	}
	cfg.Limit = 0
	items, rejections = read(t, cfg)
	if len(items) != 5 || len(rejections) != 1 || !strings.Contains(rejections[0], `:4: standing in JSON: role: "loud"`) {
		t.Errorf("%d items, rejected %q", len(items), rejections)
	}
	seed := int64(1)
	for want, cfg := range map[string]Config{
		"e.jsonl:2: this is no event but hamlet.standing.v1, which eval, up and ingest alone can use":      {Paths: []string{path}},
		"e.jsonl:2: hamlet.standing.v1 holds from its place in the stream on, and --shuffle would move it": {Paths: []string{path}, Standing: true, Shuffle: &seed},
	} {
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, err = range s.Events() {
		}
		if err == nil || isRejection(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
