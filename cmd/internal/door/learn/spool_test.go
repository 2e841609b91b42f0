package learn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/example"
	"hamlet/stream"
)

// childVariable makes the test's program a `hamlet learn` with the command that it holds.
const childVariable = "HAMLET_TEACH_TEST_CHILD"

func TestMain(m *testing.M) {
	command := os.Getenv(childVariable)
	if command == "" {
		os.Exit(m.Run())
	}
	var c Command
	err := json.Unmarshal([]byte(command), &c)
	if err == nil {
		err = c.Run(context.Background(), cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// patience bounds what a test waits for.
const patience = 60 * time.Second

// await returns what comes from a channel.
func await[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("waited %v in vain: %s", patience, what)
	}
	return v
}

// A held is a request that stands still at a door.
type held struct {
	enter  chan struct{} // closed: it may go in
	learnt chan struct{} // closed: the learner's log has it
	answer chan struct{} // closed: the client may hear of it
}

// newStalled returns a learner behind a door that holds some requests, by their numbers from 1 on.
// A request that was given up by its client goes on in the same way.
func newStalled(t *testing.T, hold ...int) (l *log, url string, requests <-chan *held) {
	t.Helper()
	l, door := newDoor(t)
	arrived := make(chan *held, len(hold))
	var mu sync.Mutex
	requested := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		h := &held{make(chan struct{}), make(chan struct{}), make(chan struct{})}
		mu.Lock()
		requested++
		holds := slices.Contains(hold, requested)
		mu.Unlock()
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		if !holds {
			door.ServeHTTP(w, again)
			return
		}
		arrived <- h
		select {
		case <-h.enter:
		case <-t.Context().Done():
			return
		}
		said := httptest.NewRecorder()
		door.ServeHTTP(deadlines{said}, again)
		close(h.learnt)
		select {
		case <-h.answer:
		case <-t.Context().Done():
		}
		w.WriteHeader(said.Code)
		_, _ = w.Write(said.Body.Bytes()) // the client may be gone
	}))
	t.Cleanup(server.Close)
	return l, server.URL, arrived
}

// deadlines let the door set deadlines, which a recorder has not.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetReadDeadline(time.Time) error { return nil }

// child starts `hamlet learn` as a process.
func child(t *testing.T, c Command, message string) *exec.Cmd {
	t.Helper()
	command, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(command))
	cmd.Stdin = strings.NewReader(message)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it says that it was killed
}

// spooled returns the names of the events in a spool.
func spooled(t *testing.T, dir string) []string {
	t.Helper()
	s, err := openSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	names, _, err := s.list()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// judges wants the model to say that letter is spam, or ham.
func (l *log) judges(spam bool) {
	l.t.Helper()
	body, _, err := example.Body("", &stream.Body{Kind: stream.Mail, Mail: []byte(letter)})
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.model.NewPredictor().Predict(&body)
	if err != nil || (p.LogOdds > 0) != spam {
		l.t.Errorf("log-odds %v, %v; want spam %v", p.LogOdds, err, spam)
	}
}

func (l *log) wants(took ...string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if got, want := strings.Join(l.took, ", "), strings.Join(took, ", "); got != want {
		l.t.Errorf("the learner took\n%s\nwant\n%s", got, want)
	}
}

// kill −9 of hamlet learn before the learner's log has the label, or after: the next flush
// brings it, and it is learnt once.
func TestKill(t *testing.T) {
	for _, c := range []struct {
		name  string
		after bool // the log has the label
		took  []string
	}{
		{"before", false, []string{"correct spam users"}},
		{"after", true, []string{"correct spam users", "correct spam users again"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, url, requests := newStalled(t, 1)
			command := Command{Spam: true, URL: url, Token: "secret", Source: "users", Timeout: patience, Spool: filepath.Join(t.TempDir(), "spool")}
			cmd := child(t, command, letter)
			held := await(t, "the label arrives", requests)
			if c.after {
				close(held.enter)
				await(t, "the label is learnt", held.learnt)
			}
			kill(t, cmd)
			if names := spooled(t, command.Spool); len(names) != 1 {
				t.Fatalf("the spool has %v, want one label", names)
			}
			flush := Command{Flush: true, URL: url, Token: "secret", Spool: command.Spool}
			for _, want := range []string{"1 sent\n", "0 sent\n"} {
				if out, errs, err := run(t, flush, ""); err != nil || out != want || errs != "" {
					t.Errorf("flush: %q, %q, %v; want %q", out, errs, err, want)
				}
			}
			l.wants(c.took...)
			l.judges(true)
		})
	}
}

// A message goes into Junk and back. hamlet learn is killed while it says so first, and that
// request reaches the learner last. The label of the second move stays.
func TestTheLastLabelWins(t *testing.T) {
	l, url, requests := newStalled(t, 1)
	command := Command{Spam: true, URL: url, Token: "secret", Source: "users", Timeout: patience, Spool: filepath.Join(t.TempDir(), "spool")}
	cmd := child(t, command, letter)
	held := await(t, "the label arrives", requests)
	kill(t, cmd)

	command.Spam, command.Ham = false, true
	if out, errs, err := run(t, command, letter); err != nil || out != "1 ham\n" || errs != "" {
		t.Fatalf("%q, %q, %v", out, errs, err)
	}
	l.judges(false)
	close(held.enter)
	await(t, "the old request is through", held.learnt)
	l.judges(false)
	l.wants("correct spam users", "correct ham users replaced", "correct spam users again")
}

// While a service is silent nobody waits longer than the timeout, however many labels wait. Who
// finds another process sending does not wait at all, and the other one sends for both.
func TestNobodyWaits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	synctest.Test(t, func(t *testing.T) {
		spool, err := openSpool(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			s := &spooler{spool: spool, sender: &sender{url: "http://ingest/v1/events", timeout: 2 * time.Second, client: &http.Client{Transport: service(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})}}}
			began := time.Now()
			e := stream.Event{ID: fmt.Sprint(i), Action: stream.Correct, Label: stream.Spam, Body: stream.Body{Kind: stream.Mail, Mail: []byte(letter)}}
			if err := s.add(t.Context(), &e); err != nil {
				t.Fatal(err)
			}
			if err := s.flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, waiting, why := s.state(); waiting != 1 || why == nil || time.Since(began) != 2*time.Second {
				t.Errorf("call %d: %d wait after %v: %v", i, waiting, time.Since(began), why)
			}
		}
	})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}

	l, url, requests := newStalled(t, 1)
	command := Command{Spam: true, URL: url, Token: "secret", Source: "users", Timeout: patience, Spool: dir}
	cmd := child(t, command, letter)
	held := await(t, "the label arrives", requests)
	command.Spam, command.Ham, command.JSON = false, true, true
	out, errs, err := run(t, command, letter)
	if want := `{"accepted":0,"action":"correct","label":"ham","rejected":0,"waiting":1}` + "\n"; err != nil || out != want || !strings.Contains(errs, "another process") {
		t.Errorf("%q, %q, %v", out, errs, err)
	}
	close(held.enter)
	close(held.answer)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	l.wants("correct spam users", "correct ham users replaced")
	if names := spooled(t, dir); len(names) != 0 {
		t.Errorf("%v wait", names)
	}
}

// Labels given at the same time are learnt once each, and those of one message in their order.
func TestManyAtOnce(t *testing.T) {
	l, url := newLog(t)
	dir := filepath.Join(t.TempDir(), "spool")
	const users, labels = 4, 4
	var all sync.WaitGroup
	for user := range users {
		all.Go(func() {
			for i := range labels {
				c := Command{Spam: i%2 == 0, Ham: i%2 == 1, URL: url, Token: "secret", Source: fmt.Sprint("user", user), Spool: dir}
				if _, _, err := run(t, c, strings.ReplaceAll(letter, "1@", fmt.Sprint(user, "@"))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if _, _, err := run(t, Command{Flush: true, URL: url, Token: "secret", Spool: dir}, ""); err != nil {
		t.Error(err)
	}
	for user := range users {
		var got []string
		for _, what := range l.took {
			if name := fmt.Sprint(" user", user); strings.Contains(what, name) {
				got = append(got, strings.ReplaceAll(what, name, ""))
			}
		}
		if want := "correct spam, correct ham replaced, correct spam replaced, correct ham replaced"; strings.Join(got, ", ") != want {
			t.Errorf("of user %d the learner took %v\nwant %s", user, got, want)
		}
	}
}

// A spool has its bounds. A full one is sent first, and refuses if that fails.
func TestFullSpool(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	down := true
	newSpooler := func(events int, bytes int64) *spooler {
		spool, err := openSpool(dir)
		if err != nil {
			t.Fatal(err)
		}
		spool.events, spool.bytes = events, bytes
		return &spooler{spool: spool, sender: &sender{url: "http://ingest/v1/events", timeout: patience, client: &http.Client{Transport: service(func(*http.Request) (*http.Response, error) {
			if down {
				return answer(http.StatusServiceUnavailable), nil
			}
			return answer(http.StatusAccepted), nil
		})}}}
	}
	e := stream.Event{ID: "a", Action: stream.Correct, Label: stream.Spam, Body: stream.Body{Kind: stream.Mail, Mail: []byte(letter)}}
	s := newSpooler(2, spoolBytes)
	for i := range 3 {
		err := s.add(t.Context(), &e)
		if full := i == 2; full != (err != nil) || full && !strings.Contains(err.Error(), "full") {
			t.Errorf("event %d: %v", i, err)
		}
	}
	if err := newSpooler(3, 100).add(t.Context(), &e); err == nil {
		t.Error("the spool takes more bytes than it may")
	}
	if down = false; s.add(t.Context(), &e) != nil || s.flush(t.Context()) != nil {
		t.Error("the spool stays full")
	}
	if accepted, waiting, _ := s.state(); accepted != 3 || waiting != 0 {
		t.Errorf("%d were taken and %d wait", accepted, waiting)
	}
}

// An event that the service rejects is dropped and named. A token that it does not know keeps
// all. What a killed process has half written is no event.
func TestRefusedInSpool(t *testing.T) {
	l, url := newLog(t)
	dir := filepath.Join(t.TempDir(), "spool")
	c := Command{Spam: true, URL: url, Token: "guess", Source: "users", Spool: dir}
	if out, _, err := run(t, c, letter); err == nil || out != "" || !strings.Contains(err.Error(), "401") {
		t.Errorf("%q, %v", out, err)
	}
	for name, text := range map[string]string{"new": `{"id":`, fileName(1): "{}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flush := Command{Flush: true, URL: url, Token: "secret", Spool: dir}
	if _, _, err := run(t, flush, ""); err == nil || !strings.Contains(err.Error(), "1 sent, 0 wait") || !strings.Contains(err.Error(), "400") {
		t.Error(err)
	}
	if out, _, err := run(t, Command{Ham: true, URL: url, Token: "secret", Source: "users", Spool: dir}, letter); err != nil || out != "1 ham\n" {
		t.Errorf("%q, %v", out, err)
	}
	l.wants("correct spam users", "correct ham users replaced")
}

// Where the service has a full disk it refuses labels with 503. They wait in the spool, which is no failure,
// and are learnt once, in their order, when there is room.
func TestFullDiskOfTheService(t *testing.T) {
	l, door := newDoor(t)
	var answers []int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := httptest.NewRecorder()
		door.ServeHTTP(deadlines{said}, r)
		answers = append(answers, said.Code)
		w.WriteHeader(said.Code)
		_, _ = w.Write(said.Body.Bytes())
	}))
	defer server.Close()
	l.full = true
	dir := filepath.Join(t.TempDir(), "spool")
	for i := range 2 {
		c := Command{Spam: i == 0, Ham: i == 1, URL: server.URL, Token: "secret", Source: "users", Spool: dir, JSON: true}
		out, errs, err := run(t, c, letter)
		if want := fmt.Sprintf(`"accepted":0,"action":"correct","label":"%s","rejected":0,"waiting":1}`, []string{"spam", "ham"}[i]); err != nil || !strings.Contains(out, want) || !strings.Contains(errs, "503") {
			t.Errorf("%q, %q, %v", out, errs, err)
		}
		if names := spooled(t, dir); len(names) != i+1 {
			t.Errorf("%v wait", names)
		}
	}
	l.mu.Lock()
	l.full = false
	l.mu.Unlock()
	if _, _, err := run(t, Command{Flush: true, URL: server.URL, Token: "secret", Spool: dir}, ""); err != nil {
		t.Error(err)
	}
	l.wants("correct spam users", "correct ham users replaced")
	if names := spooled(t, dir); len(names) != 0 {
		t.Errorf("%v wait", names)
	}
	if fmt.Sprint(answers) != "[503 503 202 202]" {
		t.Errorf("the service answered %v", answers)
	}
}

// An event that the token may not say is kept as refused and named, and those behind it are sent.
// Renamed, it is sent again.
func TestDeniedInSpool(t *testing.T) {
	l, url := newLog(t)
	dir := filepath.Join(t.TempDir(), "spool")
	forget := Command{Forget: true, URL: "http://127.0.0.1:1", Token: l.users, Timeout: time.Millisecond, Spool: dir}
	if out, _, err := run(t, forget, letter); err != nil || out != "0 forgotten\n" {
		t.Fatalf("%q, %v", out, err)
	}
	waiting := spooled(t, dir)
	if len(waiting) != 1 {
		t.Fatalf("%v wait", waiting)
	}
	refused := strings.TrimSuffix(filepath.Join(dir, waiting[0]), suffix) + refusedSuffix
	spam := Command{Spam: true, URL: url, Token: l.users, Spool: dir}
	if _, _, err := run(t, spam, letter); err == nil || !strings.Contains(err.Error(), "not unlearn") || !strings.Contains(err.Error(), refused) {
		t.Error(err)
	}
	if out, errs, err := run(t, Command{Flush: true, URL: url, Token: l.users, Spool: dir}, ""); err != nil || out != "0 sent\n" || errs != "" {
		t.Errorf("%q, %q, %v", out, errs, err)
	}
	l.wants("correct spam users")
	if err := os.Rename(refused, filepath.Join(dir, waiting[0])); err != nil {
		t.Fatal(err)
	}
	if out, _, err := run(t, Command{Flush: true, URL: url, Token: "secret", Spool: dir}, ""); err != nil || out != "1 sent\n" {
		t.Errorf("%q, %v", out, err)
	}
	if names := spooled(t, dir); len(names) != 0 {
		t.Errorf("%v wait", names)
	}
}

// In a full spool refused events give way, the oldest first.
func TestRefusedGiveWay(t *testing.T) {
	spool, err := openSpool(filepath.Join(t.TempDir(), "spool"))
	if err != nil {
		t.Fatal(err)
	}
	spool.events = 3
	var added []string
	for i := range 4 {
		name, err := spool.add(t.Context(), []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if added = append(added, name); i < 2 {
			if err := os.Rename(spool.path(name), spool.path(strings.TrimSuffix(name, suffix)+refusedSuffix)); err != nil {
				t.Fatal(err)
			}
		}
	}
	waiting, refused, err := spool.list()
	if err != nil || !slices.Equal(waiting, added[2:]) || len(refused) != 1 || strings.TrimSuffix(refused[0], refusedSuffix) != strings.TrimSuffix(added[1], suffix) {
		t.Errorf("of %v wait %v, and %v were refused, %v", added, waiting, refused, err)
	}
	spool.bytes = 4
	if _, err := spool.add(t.Context(), []byte("{}")); !errors.Is(err, errSpoolFull) {
		t.Errorf("the spool takes more bytes than it may: %v", err)
	}
	if _, refused, err := spool.list(); err != nil || len(refused) != 0 {
		t.Errorf("%v were refused, %v", refused, err)
	}
}

// A label waits for its place longer than the service may take, while another process adds.
func TestPlaceInTheSpool(t *testing.T) {
	spool, err := openSpool(filepath.Join(t.TempDir(), "spool"))
	if err != nil {
		t.Fatal(err)
	}
	s := &spooler{spool: spool, sender: &sender{url: "http://127.0.0.1:1", timeout: time.Nanosecond, client: http.DefaultClient}}
	for i := range 2 { // the first and the second of a batch
		unlock, err := spool.lock(t.Context(), "order")
		if err != nil {
			t.Fatal(err)
		}
		added := make(chan error, 1)
		go func() {
			e := stream.Event{ID: fmt.Sprint(i), Action: stream.Correct, Label: stream.Spam, Body: stream.Body{Kind: stream.Mail, Mail: []byte(letter)}}
			added <- s.add(t.Context(), &e)
		}()
		select {
		case err := <-added:
			t.Fatalf("event %d did not wait: %v", i, err)
		case <-time.After(200 * time.Millisecond):
			unlock()
			if err := await(t, "an event gets its place", added); err != nil {
				t.Errorf("event %d: %v", i, err)
			}
		}
	}
	if names := spooled(t, spool.dir); len(names) != 2 {
		t.Errorf("%v wait, want two", names)
	}
}

func TestSpoolIsPrivate(t *testing.T) {
	open, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.Chmod(open, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{open: "chmod 700", file: "no directory", "/no/such/dir": "no such"} {
		c := Command{Spam: true, URL: "http://127.0.0.1:1", Token: "secret", Spool: dir}
		if _, _, err := run(t, c, letter); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
	for _, c := range []Command{{Flush: true}, {Flush: true, Spool: open, Files: []string{"-"}}} {
		if _, _, err := run(t, c, ""); err == nil || !strings.Contains(err.Error(), "--flush") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "spool")
	c := Command{Spam: true, URL: "http://127.0.0.1:1", Token: "secret", Spool: dir}
	if _, _, err := run(t, c, letter); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(spooled(t, dir), ".") {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}
