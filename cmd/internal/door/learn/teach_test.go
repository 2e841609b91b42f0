package learn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/tokens"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/stream"
)

const letter = "Message-ID: <1@example.org>\r\nFrom: a@example.org\r\nSubject: lunch\r\n\r\nCheap pills for lunch on friday?\r\n"

// A log is a learner behind the HTTP door of ingest: it applies what is published.
type log struct {
	t      *testing.T
	mu     sync.Mutex
	model  *model.Model
	failed int  // requests that fail before one succeeds
	full   bool // the disk has no room
	keys   map[string]bool
	users  string   // a token that may correct, and not unlearn, as users
	took   []string // action, label, source and outcome of each event
}

func (l *log) Append(_ context.Context, records ...stream.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed > 0 {
		l.failed--
		return errors.New("no leader")
	}
	if l.full {
		return fmt.Errorf("append: %w", stream.ErrFull)
	}
	for _, r := range records {
		e, err := stream.DecodeRecord(r.Headers, r.Value)
		if err != nil {
			l.t.Error(err)
			continue
		}
		ex, _, err := example.Of(&e)
		if err != nil {
			l.t.Error(err)
			continue
		}
		effect, err := l.model.Apply(&ex)
		if err != nil {
			l.t.Error(err)
		}
		what := e.Action.String() + " " + e.Label.String() + " " + e.Source
		if effect.Duplicate {
			what += " again"
		}
		if effect.Receipt != nil {
			what += []string{" withdrawn", " replaced", " outweighed", " unchanged", " not allowed"}[effect.Receipt.Outcome]
		}
		l.took = append(l.took, what)
		l.keys[string(r.Key)] = true
	}
	return nil
}

func newLog(t *testing.T) (*log, string) {
	t.Helper()
	l, door := newDoor(t)
	mux := http.NewServeMux()
	mux.Handle("POST /v1/events", door)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return l, server.URL
}

func newDoor(t *testing.T) (*log, http.Handler) {
	t.Helper()
	m, err := model.New(model.Config{TableBits: 8})
	if err != nil {
		t.Fatal(err)
	}
	l := &log{t: t, model: m, keys: map[string]bool{}}
	secret, line, err := tokens.New(tokens.Rights{Name: "users", Sources: []string{"users"}, Tenants: []string{stream.DefaultName}, Actions: []string{stream.Correct.String()}})
	if err != nil {
		t.Fatal(err)
	}
	l.users = secret
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, line, 0o600); err != nil {
		t.Fatal(err)
	}
	discard := slog.New(slog.DiscardHandler)
	file, err := tokens.Open(path, discard)
	if err != nil {
		t.Fatal(err)
	}
	door := ingest.NewHTTP(ingest.HTTPConfig{Events: l, Token: "secret", Tokens: file, Log: discard})
	return l, door
}

func run(t *testing.T, c Command, stdin string) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if c.Timeout == 0 {
		c.Timeout = 20 * time.Second
	}
	err = c.Run(t.Context(), cli.IO{In: strings.NewReader(stdin), Out: &stdout, Err: &stderr})
	return stdout.String(), stderr.String(), err
}

// Spam, then ham, spam and ham again by copies, is ham; then it is forgotten.
func TestEachLabelReplacesTheOneBefore(t *testing.T) {
	l, url := newLog(t)
	l.failed = 1 // the service is busy at first
	body, _, err := example.Body("", &stream.Body{Kind: stream.Mail, Mail: []byte(letter)})
	if err != nil {
		t.Fatal(err)
	}
	copied := "Received: by there\r\nDelivered-To: b@example.org\r\n" + letter
	for _, c := range []struct {
		command Command
		message string
		out     string
		spam    bool
	}{
		{Command{Spam: true}, letter, "1 spam\n", true},
		{Command{Ham: true}, copied, "1 ham\n", false},
		{Command{Spam: true}, letter, "1 spam\n", true},
		{Command{Spam: true}, letter, "1 spam\n", true},
		{Command{Ham: true, JSON: true}, copied, `{"accepted":1,"action":"correct","label":"ham","rejected":0}` + "\n", false},
	} {
		c.command.URL, c.command.Token, c.command.Source = url, "secret", "alice"
		out, errs, err := run(t, c.command, c.message)
		if err != nil || out != c.out || errs != "" {
			t.Fatalf("%q, %q, %v", out, errs, err)
		}
		p, err := l.model.NewPredictor().Predict(&body)
		if err != nil || (p.LogOdds > 0) != c.spam {
			t.Errorf("after %q log-odds %v, %v", c.out, p.LogOdds, err)
		}
	}
	if out, _, err := run(t, Command{Forget: true, URL: url, Token: "secret", Source: "alice"}, copied); err != nil || out != "1 forgotten\n" {
		t.Errorf("forget: %q, %v", out, err)
	}
	want := "correct spam alice, correct ham alice replaced, correct spam alice replaced, correct spam alice unchanged, correct ham alice replaced, unlearn  alice withdrawn"
	if got := strings.Join(l.took, ", "); got != want {
		t.Errorf("the learner took\n%s\nwant\n%s", got, want)
	}
	if len(l.keys) != 1 {
		t.Errorf("all is about one message, and has the keys %v", l.keys)
	}
}

// A folder is sent in batches. What is no message is left out.
func TestFolders(t *testing.T) {
	l, url := newLog(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"1": letter, "2": strings.Replace(letter, "1@", "2@", 1), "3": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(dir, "..", "token")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, err := run(t, Command{Ham: true, Files: []string{dir}, URL: url + "/", TokenFile: secret}, "")
	if err != nil || out != "2 ham\n" || !strings.Contains(errs, "empty") || len(l.took) != 2 {
		t.Errorf("%q, %q, %v; the learner took %v", out, errs, err, l.took)
	}
}

func TestRefusals(t *testing.T) {
	_, url := newLog(t)
	for name, c := range map[string]struct {
		command Command
		usage   bool
		want    string
	}{
		"no label":            {Command{URL: url, Token: "secret"}, true, "--spam"},
		"no token":            {Command{Spam: true, URL: url}, true, "token"},
		"no address":          {Command{Spam: true, URL: "ingest:9100", Token: "secret"}, true, "--url"},
		"another token":       {Command{Spam: true, URL: url, Token: "guess"}, false, "401"},
		"another service":     {Command{Spam: true, URL: url + "/elsewhere", Token: "secret"}, false, "404"},
		"a file not there":    {Command{Spam: true, URL: url, Token: "secret", Files: []string{"/no/such/file"}}, false, "no such file"},
		"nobody listens":      {Command{Spam: true, URL: "http://127.0.0.1:1", Token: "secret", Timeout: time.Millisecond}, false, "send messages"},
		"a token not there":   {Command{Spam: true, URL: url, TokenFile: "/no/such/file"}, false, "read the token"},
		"a source's bad name": {Command{Spam: true, URL: url, Token: "secret", Source: "a@example.org"}, false, "400"},
	} {
		out, _, err := run(t, c.command, letter)
		var usage *cli.UsageError
		if err == nil || out != "" || errors.As(err, &usage) != c.usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %q, usage %v", name, out, err, c.want, c.usage)
		}
	}
	if _, _, err := run(t, Command{Spam: true, URL: url, Token: "secret"}, ""); err == nil {
		t.Error("nothing was learnt, and that is no error")
	}
}
