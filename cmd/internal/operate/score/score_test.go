package score_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hamlet/cmd/internal/operate/score"
	"hamlet/cmd/internal/process/cli"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// wordy is a scorer that looks for one word: "prize" is spam, "perhaps" is
// unsure, all else is ham.
type wordy struct{ down bool }

func (w wordy) Score(_ context.Context, requests []*stream.Event, explain bool) ([]stream.Verdict, error) {
	if w.down {
		return nil, &questions.Refusal{Code: questions.Unavailable, Text: "no model yet"}
	}
	verdicts := make([]stream.Verdict, len(requests))
	for i, r := range requests {
		v := stream.Verdict{ID: r.ID, P: 0.1, Interval: [2]float64{0.05, 0.2}, Model: stream.ModelRef{Name: "default", SHA256: "0123456789abcdef", AgeMS: 1500}}
		body := r.Body.Text + string(r.Body.Mail)
		switch {
		case strings.Contains(body, "refuse"):
			return nil, &questions.Refusal{Code: questions.BadRequest, Text: "refused: too rude"}
		case strings.Contains(body, "prize"), r.Tenant == "eve":
			v.P, v.Interval = 0.97, [2]float64{0.8, 0.99}
		case strings.Contains(body, "perhaps"):
			v.P, v.Interval = 0.7, [2]float64{0.3, 0.9}
		}
		v.Decision = stream.Decide(v.P, v.Interval[0], 0.9, 0.5)
		if explain {
			v.Reasons = []stream.Reason{{Name: "text words", Contribution: 2.5, SD: 0.25}, {Name: "bias", Contribution: -1, SD: 0.1}}
			v.Words = []stream.Word{{Text: "prize", Where: "subject", Contribution: 1.25, Shared: true}, {Text: "win.example", Where: "link", Contribution: -0.5}}
		}
		verdicts[i] = v
	}
	return verdicts, nil
}

func (wordy) Info(context.Context) (stream.Info, error) { return stream.Info{}, nil }

// start runs a NATS server with a scorer and returns its address.
func start(t *testing.T, w wordy) string {
	t.Helper()
	url := listen(t, server.RANDOM_PORT)
	serve(t, url, w)
	return url
}

// listen runs a NATS server and returns its address.
func listen(t *testing.T, port int) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the nats server doesn't listen")
	}
	return s.ClientURL()
}

// serve runs a scorer.
func serve(t *testing.T, url string, scorer questions.Answerer) {
	t.Helper()
	conn, err := nats.Connect(nats.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	service, err := nats.NewService(conn, nats.ServiceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Serve(ctx, scorer, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		conn.Close()
	})
	<-service.Ready()
}

// run is `hamlet score` with these arguments.
func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var g struct {
		Score score.Command `cmd:""`
		Eval  struct{}      `cmd:""`
	}
	var out, errs bytes.Buffer
	args = append([]string{"score"}, args...)
	if _, err := cli.Parse(cli.Program{Name: "hamlet", Grammar: &g}, args, cli.IO{Out: &out, Err: &errs}); err != nil {
		return out.String(), errs.String(), score.UsageStatus(args, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err = g.Score.Run(ctx, cli.IO{In: strings.NewReader(stdin), Out: &out, Err: &errs})
	return out.String(), errs.String(), err
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func letter(word string) string {
	return "From: a@example.org\nSubject: a letter\n\nThere is a " + word + " in it.\n"
}

const envelope = "From a@example.org Mon Jan  1 00:00:00 2001\n"

func TestForPeople(t *testing.T) {
	server := start(t, wordy{})
	file := write(t, filepath.Join(t.TempDir(), "m.eml"), letter("prize"))
	out, _, err := run(t, "", "--server", server, file)
	if err != nil {
		t.Fatal(err)
	}
	want := "spam    p = 0.970  (90 %: 0.800 to 0.990)  " + file + "\n" +
		"         +2.50 ± 0.25  text words\n" +
		"         -1.00 ± 0.10  bias\n" +
		"         +1.25         subject: prize (shared)\n" +
		"         -0.50         link: win.example\n" +
		"model default 0123456789ab, saved 1.5s ago\n"
	if out != want {
		t.Errorf("printed\n%swant\n%s", out, want)
	}
	if out, _, err := run(t, "", "--server", server, "--words", "0", "--reasons", "1", file); err != nil || strings.Contains(out, "prize (") || strings.Contains(out, "bias") {
		t.Errorf("--words 0 --reasons 1 printed\n%s%v", out, err)
	}
}

// verdicts reads the JSON Lines that --json prints as "verdict place" or "error
// place", with the folder taken off.
func verdicts(t *testing.T, out, folder string) []string {
	t.Helper()
	var list []string
	for line := range strings.Lines(out) {
		var v struct {
			File    string
			Verdict string
			Error   string
			P       *float64
			LogOdds *float64 `json:"log_odds"`
			Reasons []stream.Reason
			Words   []stream.Word
			Model   stream.ModelRef
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if v.Error != "" {
			v.Verdict = "error"
		} else if v.P == nil || v.LogOdds == nil || len(v.Reasons) != 2 || len(v.Words) != 2 || v.Model.SHA256 == "" {
			t.Errorf("%s: a field is missing", line)
		}
		list = append(list, v.Verdict+" "+strings.TrimPrefix(strings.TrimPrefix(v.File, folder), "/"))
	}
	return list
}

func TestEverySource(t *testing.T) {
	server := start(t, wordy{})
	dir := t.TempDir()
	mbox := write(t, dir+"/box", envelope+letter("prize")+"\n"+envelope+letter("cat")+"\n"+envelope+letter("perhaps"))
	write(t, dir+"/maildir/cur/1.a:2,S", letter("prize"))
	write(t, dir+"/maildir/new/2.b", letter("cat"))
	if err := os.MkdirAll(dir+"/maildir/tmp", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/folder/one", letter("cat"))
	write(t, dir+"/folder/two", envelope+letter("prize"))
	text := write(t, dir+"/text", "you won a prize")
	long := write(t, dir+"/long", `{"text": "prize"}`+"\n"+`{"text": "`+strings.Repeat("x", 1<<20+1<<17)+`"}`+"\n"+`{"text": "cat"}`+"\n"+`{"text": "prize"}`)
	jsonl := write(t, dir+"/requests", `{"id": "a", "text": "prize"}`+"\n\n"+`{"txet": "prize"}`+"\n"+`{"vector": {"x": 1}}`+"\n")

	for _, tt := range []struct {
		name  string
		stdin string
		args  []string
		want  []string
		fails string
	}{
		{"mbox", "", []string{mbox}, []string{"spam box:message 1", "ham box:message 2", "unsure box:message 3"}, ""},
		{"maildir", "", []string{dir + "/maildir"}, []string{"spam maildir/cur/1.a:2,S", "ham maildir/new/2.b"}, ""},
		{"folder", "", []string{dir + "/folder"}, []string{"ham folder/one", "spam folder/two"}, ""},
		{"stdin", letter("prize"), []string{"-"}, []string{"spam standard input"}, ""},
		{"text", "", []string{"--text", text}, []string{"spam text"}, ""},
		{"text on stdin", "a prize", []string{"--format", "text", "-"}, []string{"spam standard input"}, ""},
		{"mail of a tenant", "", []string{"--tenant", "eve", dir + "/folder/one"}, []string{"spam folder/one"}, ""},
		{"mail of nobody", "", []string{dir + "/folder/one"}, []string{"ham folder/one"}, ""},
		{"text of a tenant", "a cat", []string{"--text", "--tenant", "eve", "-"}, []string{"spam standard input"}, ""},
		{"text of a tenant, not UTF-8", "a \xff", []string{"--text", "--tenant", "eve", "-"}, []string{"error standard input"}, "not UTF-8"},
		{"a long line", "", []string{"--format", "jsonl", long}, []string{"spam long:1", "error long:2", "ham long:3", "spam long:4"}, "more than"},
		{"jsonl", "", []string{"--format", "jsonl", jsonl}, []string{"spam requests:1", "error requests:3", "ham requests:4"}, `"txet"`},
		{"refused", "", []string{dir + "/folder/one", write(t, dir+"/rude", letter("refuse"))}, []string{"ham folder/one", "error rude"}, "rude: refused: too rude"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, _, err := run(t, tt.stdin, append([]string{"--server", server, "--json"}, tt.args...)...)
			if got := verdicts(t, out, dir); strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if tt.fails == "" && err != nil || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
				t.Errorf("error %v, want %q", err, tt.fails)
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	server := start(t, wordy{})
	dir := t.TempDir()
	spam, ham, unsure := write(t, dir+"/spam", letter("prize")), write(t, dir+"/ham", letter("cat")), write(t, dir+"/unsure", letter("perhaps"))
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{spam}, 0},
		{[]string{ham}, 1},
		{[]string{unsure}, 2},
		{[]string{ham, unsure}, 2},
		{[]string{ham, unsure, spam}, 0},
		{[]string{dir + "/missing"}, 3},
		{[]string{spam, dir + "/missing"}, 3},
		{[]string{"--unknown-flag", spam}, 3},
		{nil, 3},
		{[]string{"--timeout", "100ms", "--server", "nats://127.0.0.1:1", spam}, 3},
		{[]string{"--timeout", "100ms", "--model", "nobody", spam}, 3},
		{[]string{"--text", "--format", "jsonl", spam}, 3},
		{[]string{"--timeout", "-1s", spam}, 3},
	} {
		_, _, err := run(t, "", append([]string{"--exit-code", "--server", server}, tt.args...)...)
		if got := cli.Status(err); got != tt.want {
			t.Errorf("%q: status %d (%v), want %d", tt.args, got, err, tt.want)
		}
		var exit *score.ExitError
		if tt.want < 3 && errors.As(err, &exit) && err.Error() != "" {
			t.Errorf("%q: an answer prints %q", tt.args, err)
		}
	}
	// Without the flag, an answer is success, and mistakes are as everywhere.
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{ham}, 0},
		{[]string{dir + "/missing"}, 1},
		{[]string{"--unknown-flag", ham}, 2},
		{[]string{"--text", "--format", "jsonl", ham}, 2},
		{[]string{"--timeout", "-1s", ham}, 2},
		{[]string{"--reasons", "-1", ham}, 2},
		{[]string{"--words", "-1", ham}, 2},
	} {
		if _, _, err := run(t, "", append([]string{"--server", server}, tt.args...)...); cli.Status(err) != tt.want {
			t.Errorf("%q without --exit-code: status %d (%v), want %d", tt.args, cli.Status(err), err, tt.want)
		}
	}
}

// Each mistake of a user's has its name, and what to do.
func TestMistakes(t *testing.T) {
	server := start(t, wordy{})
	dir := t.TempDir()
	for _, tt := range []struct {
		name string
		args []string
		says []string
	}{
		{"no server", []string{"--timeout", "100ms", "--server", "nats://127.0.0.1:1", "-"}, []string{"nats://127.0.0.1:1", "no server answers", "hamlet up"}},
		{"no scorer", []string{"--timeout", "100ms", "--server", server, "--model", "nobody", "-"}, []string{"no scorer answers", "nobody", "start a scorer"}},
		{"missing file", []string{"--server", server, dir + "/missing"}, []string{"missing", "no such file"}},
		{"empty file", []string{"--server", server, write(t, dir+"/empty", "")}, []string{"empty, there is nothing to score"}},
		{"blank mailbox", []string{"--server", server, write(t, dir+"/blank", "\n\n\n")}, []string{"blank", "empty"}},
		{"empty text", []string{"--server", server, "--text", write(t, dir+"/notext", " \n")}, []string{"notext", "empty, there is nothing to score"}},
		{"empty jsonl", []string{"--server", server, "--format", "jsonl", write(t, dir+"/nojson", "\n")}, []string{"nojson", "empty, there is nothing to score"}},
		{"array in jsonl", []string{"--server", server, "--format", "jsonl", write(t, dir+"/array", "[]\n")}, []string{"array:1", "one event a line"}},
		{"a folder as text", []string{"--server", server, "--text", dir}, []string{"cannot be read", "directory"}},
		{"two formats", []string{"--server", server, "--text", "--format", "jsonl", "-"}, []string{"contradict"}},
		{"tenant twice", []string{"--server", server, "--tenant", "eve", "--format", "jsonl", "-"}, []string{"--tenant", "of its own"}},
		{"several", []string{"--server", server, dir + "/missing", dir + "/gone"}, []string{"2 of 2", "missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, stderr, err := run(t, letter("cat"), tt.args...)
			if err == nil {
				t.Fatalf("no error; printed %s%s", out, stderr)
			}
			for _, want := range tt.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q doesn't say %q", err, want)
				}
			}
		})
	}
}

func TestNoModelYet(t *testing.T) {
	_, _, err := run(t, letter("cat"), "--timeout", "300ms", "--server", start(t, wordy{down: true}), "-")
	var e *questions.Refusal
	if !errors.As(err, &e) || e.Code != 503 {
		t.Errorf("error %v, want 503", err)
	}
}

func TestWanted(t *testing.T) {
	for args, want := range map[string]bool{
		"score --exit-code m": true, "--exit-code score": true, "score m": false,
		"eval --exit-code": false, "score -- --exit-code": false, "": false,
	} {
		if got := score.Wanted(strings.Fields(args)); got != want {
			t.Errorf("Wanted(%q) = %v", args, got)
		}
	}
}
