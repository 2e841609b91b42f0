package pipe

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/offline/replay"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/jsonlines"
	"hamlet/stream"
)

// small is the configuration of the models here.
const small = `{"table_bits":8,"text_experts":["lean"],"dense":["a","b"]}`

// talk returns the replies to requests.
func talk(t *testing.T, requests ...string) []string {
	t.Helper()
	var out bytes.Buffer
	err := Serve(t.Context(), strings.NewReader(strings.Join(requests, "\n")), &out, func(err error) { t.Error(err) })
	if failed := new(jsonlines.FailedError); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	replies := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(replies) != len(requests) {
		t.Fatalf("%d replies to %d requests", len(replies), len(requests))
	}
	return replies
}

// read decodes a reply, which is no error.
func read[T any](t *testing.T, reply string) (v T) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(reply))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%.200s: %v", reply, err)
	}
	return v
}

func newRequest() string { return `{"op":"new","config":` + small + `}` }

// learnRequest is a request to learn the items.
func learnRequest(t *testing.T, items []source.Item) string {
	t.Helper()
	var events []string
	for i := range items {
		b, err := items[i].Event.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, string(b))
	}
	return `{"op":"learn","events":[` + strings.Join(events, ",") + `]}`
}

// mixed are n events of all kinds of bodies.
func mixed(n int) (items []source.Item) {
	for i := range n {
		e := stream.Event{ID: fmt.Sprint("e", i), Source: "desk", Tenant: stream.DefaultName, Label: stream.Ham}
		word := "lunch"
		if i%5 < 2 {
			e.Label, word = stream.Spam, "prize"
		}
		switch i % 3 {
		case 0:
			e.Body = stream.Body{Kind: stream.Text, Text: fmt.Sprint(word, " number ", i%7)}
		case 1:
			e.Body = stream.Body{Kind: stream.Mail, Mail: fmt.Appendf(nil, "From: a@example.org\r\nSubject: %s\r\n\r\nnumber %d\r\n", word, i%7)}
		case 2:
			e.Body = stream.Body{Kind: stream.Vector, Vector: []stream.Number{{Name: "a", Value: float64(len(word) - i%2)}, {Name: "b", Value: math.Sin(float64(i))}}}
		}
		items = append(items, source.Item{Ordinal: i, Event: e, Truth: e.Label})
	}
	return items
}

type effects struct{ Effects []effect }

type answers struct{ Answers []answer }

// The same events make the bytes and the answers that hamlet eval makes of them, however
// they are batched, and also if the model is saved and loaded on the way.
func TestSameBytesAsEval(t *testing.T) {
	items := mixed(300)
	var cfg model.Config
	if err := json.Unmarshal([]byte(small), &cfg); err != nil {
		t.Fatal(err)
	}
	var scores bytes.Buffer
	all := iter.Seq2[source.Item, error](func(yield func(source.Item, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	})
	want, _, err := replay.Run(t.Context(), replay.Config{Model: cfg, Scores: &scores}, all)
	if err != nil {
		t.Fatal(err)
	}
	first := talk(t, newRequest(), learnRequest(t, items[:1]), learnRequest(t, items[1:120]), `{"op":"save"}`)
	half := read[saved](t, first[3])
	second := talk(t, `{"op":"load","bytes":"`+base64.StdEncoding.EncodeToString(half.Bytes)+`"}`, learnRequest(t, items[120:]), `{"op":"save"}`)
	if got := read[saved](t, second[2]).SHA256; got != want.ModelSHA256 {
		t.Errorf("the model has SHA-256 %s, eval's %s", got, want.ModelSHA256)
	}
	var did []effect
	for _, reply := range []string{first[1], first[2], second[1]} {
		did = append(did, read[effects](t, reply).Effects...)
	}
	lines := strings.Split(scores.String(), "\n")[1:]
	for i, e := range did {
		p, logOdds := *e.P, *e.LogOdds
		if line := fmt.Sprintf("%s,%s,%v,%v,%v,%v", e.ID, items[i].Truth, p, logOdds, e.Interval[0], e.Interval[1]); line != lines[i] {
			t.Fatalf("event %d: %s, eval says %s", i, line, lines[i])
		}
	}
	if len(did) != len(items) || read[state](t, second[0]).Events != 120 {
		t.Errorf("%d effects, %s", len(did), second[0])
	}
}

// A file has the bytes that a line would have, and replaces another. What cannot be written or
// read is an error, and leaves nothing behind.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "model")
	in, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	save := `{"op":"save","file":` + string(in) + `}`
	replies := talk(t, newRequest(), save, learnRequest(t, mixed(20)), save, `{"op":"save"}`, `{"op":"load","file":`+string(in)+`}`, `{"op":"save"}`)
	want := read[saved](t, replies[4])
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want.Bytes) || replies[3] != `{"sha256":"`+want.SHA256+`"}` || replies[6] != replies[4] {
		t.Errorf("%v: %d bytes in the file and %s, want %d and %s", err, len(got), replies[3], len(want.Bytes), want.SHA256)
	}
	taken := filepath.Join(dir, "taken", "by", "a", "folder")
	if err := os.MkdirAll(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	replies = talk(t, newRequest(), fmt.Sprintf(`{"op":"save","file":%q}`, filepath.Dir(taken)), fmt.Sprintf(`{"op":"save","file":%q}`, filepath.Join(dir, "no", "model")),
		fmt.Sprintf(`{"op":"load","file":%q}`, filepath.Join(dir, "none")), `{"op":"load"}`, `{"op":"load","file":"a","bytes":"aGFtbGV0"}`)
	for _, reply := range replies[1:] {
		if !strings.HasPrefix(reply, `{"error":`) {
			t.Error(reply)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(taken)), "*")); err != nil || len(left) != 1 {
		t.Errorf("a save that failed left %v, %v", left, err)
	}
}

// A score changes nothing. An explanation has the same answer, and its reasons sum to the
// mean of the belief; its words are as many as were asked for.
func TestAnswers(t *testing.T) {
	body := `"events":[{"text":"a prize"},{"vector":{"a":1,"b":2}}]`
	replies := talk(t, newRequest(), learnRequest(t, mixed(100)), `{"op":"save"}`,
		`{"op":"score",`+body+`}`, `{"op":"explain",`+body+`}`, `{"op":"explain","words":1,`+body+`}`, `{"op":"explain","words":0,`+body+`}`,
		`{"op":"score","level":0.5,`+body+`}`, `{"op":"score","events":[]}`, `{"op":"save"}`)
	if replies[2] != replies[9] {
		t.Error("answers changed the model")
	}
	if replies[8] != `{"answers":[]}` {
		t.Errorf("no events: %s", replies[8])
	}
	scored, halves := read[answers](t, replies[3]).Answers, read[answers](t, replies[7]).Answers
	for k, reply := range replies[4:7] {
		for i, a := range read[answers](t, reply).Answers {
			if a.P != scored[i].P || a.LogOdds != scored[i].LogOdds || a.Interval != scored[i].Interval || len(a.Reasons) < 3 {
				t.Errorf("explained %+v, scored %+v", a, scored[i])
			}
			if want := [...]int{2, 1, 0}[k]; i == 0 && len(a.Words) != want {
				t.Errorf("%d words, want %d", len(a.Words), want)
			}
		}
	}
	for i, a := range scored {
		h := halves[i].Interval
		if !(a.Interval[0] < h[0] && h[0] <= a.P && a.P <= h[1] && h[1] < a.Interval[1]) {
			t.Errorf("p %v, 50 %% interval %v, 90 %% interval %v", a.P, h, a.Interval)
		}
	}
}

// An event without an id gets one, also beside a copy. Withdrawals and corrections find it.
func TestIDs(t *testing.T) {
	replies := talk(t, newRequest(),
		`{"op":"learn","events":[{"id":"x","label":"spam","text":"a"},{"id":"x","label":"spam","text":"a"},{"label":"ham","text":"b"}]}`,
		`{"op":"learn","events":[{"label":"ham","text":"c"},{"action":"unlearn","of":"#2","text":"b"},{"action":"unlearn","of":"#2","text":"b"},{"action":"correct","label":"ham","text":"a"}]}`,
		`{"op":"info"}`)
	var ids []string
	for _, reply := range replies[1:3] {
		for _, e := range read[effects](t, reply).Effects {
			ids = append(ids, e.ID)
		}
	}
	if got := strings.Join(ids, " "); got != "x x #2 #3 #4 #5 #5" {
		t.Errorf("ids %s", got)
	}
	if e := read[effects](t, replies[1]).Effects; !e[1].Duplicate || e[1].P != nil || e[2].Duplicate {
		t.Errorf("%s", replies[1])
	}
	e := read[effects](t, replies[2]).Effects
	if e[1].Outcome != stream.OutcomeWithdrawn || e[1].Withdrawn != 1 || e[1].P != nil ||
		!strings.Contains(e[2].Error, "withdrawn already") || e[3].Outcome != stream.OutcomeReplaced {
		t.Errorf("%s", replies[2])
	}
	if got := read[state](t, replies[3]); got.Events != 5 || got.Numerics != model.CurrentNumerics() {
		t.Errorf("%s", replies[3])
	}
}

// A wrong request says what is wrong, changes nothing, and does not stop the others.
func TestRefused(t *testing.T) {
	good := `{"label":"spam","text":"a"}`
	cases := []struct{ request, want string }{
		{`what`, "not an object in JSON"},
		{`[]`, "not an object in JSON"},
		{`{}`, "op: missing"},
		{`{"op":"forget"}`, `op: "forget" is not one of new, load, learn`},
		{`{"op":"save","bytes":"x"}`, `save: there is no field "bytes"`},
		{`{"op":"learn"}`, "learn: events: missing"},
		{`{"op":"learn","events":null}`, "learn: events: missing"},
		{`{"op":"learn","event":` + good + `}`, `learn: events: missing; there is no field "event"`},
		{`{"op":"learn","events":[` + good + `,{"text":"a"}]}`, "learn: events[1]: label: missing"},
		{`{"op":"learn","events":[` + good + `,{"label":"spam","vector":{"a":1}}]}`, "learn: events[1]: refused"},
		{`{"op":"learn","events":[` + good + `,{"label":"spam","words":"a"}]}`, `learn: events[1]: event in JSON: unknown field "words"`},
		{`{"op":"learn","events":[{"id":"#1","label":"spam","text":"a"}]}`, `events[0]: id: "#" is for events without an id`},
		{`{"op":"score","events":[` + good + `]}`, "score: events[0]: label: a score request has none"},
		{`{"op":"score","events":[{"vector":{"a":1}}]}`, "score: events[0]: refused"},
		{`{"op":"score","events":[],"level":1}`, "score: level: 1 is not between 0 and 1"},
		{`{"op":"score","events":[],"words":1}`, `score: there is no field "words"`},
		{`{"op":"explain","events":[],"words":21}`, "explain: words: 21 is not in 0…20"},
		{`{"op":"new","config":{"table_bits":99}}`, "new: config: "},
		{`{"op":"new","config":{"tables":9}}`, "unknown field"},
		{`{"op":"load","bytes":"aGFtbGV0"}`, "load: bytes: "},
		{`{"op":"load","bytes":"?"}`, "load: bytes: "},
	}
	requests := []string{`{"op":"info"}`, newRequest(), `{"op":"save"}`}
	for _, c := range cases {
		requests = append(requests, c.request)
	}
	replies := talk(t, append(requests, `{"op":"save"}`)...)
	if want := `{"error":"info: there is no model yet: new or load comes first"}`; replies[0] != want {
		t.Errorf("%s, want %s", replies[0], want)
	}
	for i, c := range cases {
		if got := read[struct{ Error string }](t, replies[3+i]).Error; !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.request, got, c.want)
		}
	}
	if replies[2] != replies[len(replies)-1] {
		t.Error("a refused request changed the model")
	}
	err := Serve(t.Context(), strings.NewReader("what"), new(bytes.Buffer), nil)
	if cli.Status(err) != cli.StatusFailed {
		t.Errorf("exit status %d after a refused request, want 1", cli.Status(err))
	}
}

// The help has a line for each operation and a request that works.
func TestHelp(t *testing.T) {
	help := Command{}.Help()
	for _, o := range operations {
		if !strings.Contains(help, "\n  "+o.name+" ") {
			t.Errorf("the help lacks %s", o.name)
		}
	}
	_, example, _ := strings.Cut(help, "echo '")
	example, _, _ = strings.Cut(example, "' |")
	if replies := talk(t, strings.Split(example, "\n")...); !strings.HasPrefix(replies[len(replies)-1], `{"answers":`) {
		t.Errorf("%q", replies)
	}
}

// Whatever a line holds, the reply is one line of JSON, and no bug.
func FuzzAnswer(f *testing.F) {
	for _, line := range []string{
		newRequest(), `{"op":"learn","events":[{"label":"spam","text":"a"},{"action":"unlearn","of":"#1","text":"a"}]}`,
		`{"op":"learn","events":[{"label":"ham","vector":{"a":1e308,"b":-1}}]}`, `{"op":"explain","level":0.99,"words":20,"events":[{"mail":"RnJvbTogYQoKYg=="}]}`,
		`{"op":"load","bytes":"aGFtbGV0"}`, `{"op":"save"}`, `{"op":"info"}`, "{\"op\":\"\\u0000\"}", `{"op":["new"]}`, "\xff",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.TrimSpace(line) == "" || strings.ContainsAny(line, "\n") || strings.Contains(line, "file") || strings.Contains(line, "table_bits") || strings.Contains(line, "\\u") {
			t.Skip("no request, or files or large tables")
		}
		for _, reply := range talk(t, newRequest(), line)[1:] {
			if !json.Valid([]byte(reply)) || strings.Contains(reply, "a bug in hamlet") {
				t.Fatalf("%q: %s", line, reply)
			}
		}
	})
}
