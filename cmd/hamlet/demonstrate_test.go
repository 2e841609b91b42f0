package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/report"
	"hamlet/stream/servertest"
)

// upOnce runs hamlet up --once with small tables and returns its result and what it
// said.
func upOnce(t *testing.T, args ...string) (report.Result, string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"up", "--once", "--json", "--experts=lean", "--table-bits=8", "--no-alarms", "--log-level=error"}, args...)
	err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
	var r report.Result
	if err == nil {
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v: %v in %s", args, err, out.String())
		}
	}
	return r, errs.String(), err
}

// mustUp is upOnce where a result is due.
func mustUp(t *testing.T, args ...string) report.Result {
	t.Helper()
	r, said, err := upOnce(t, args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, said)
	}
	return r
}

// refused runs hamlet up and wants an error of this status with this text.
func refused(t *testing.T, status int, want string, args ...string) {
	t.Helper()
	if _, _, err := upOnce(t, args...); cli.Status(err) != status || !strings.Contains(err.Error(), want) {
		t.Errorf("%v: %v, want status %d with %q", args, err, status, want)
	}
}

// rows writes a source of real texts.
func rows(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rows.txt")
	if err := os.WriteFile(file, []byte("spam\twin a prize now\nham\tlunch at noon\nspam\tcheap pills\nham\tthe minutes of the meeting\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const mixed = "synthetic and real mail must not be learnt by one model"

// Nothing synthetic is learnt into a directory that nobody asked to fill with it.
func TestDataWithoutSourceOnlyServes(t *testing.T) {
	t.Parallel()
	data, real := t.TempDir(), rows(t)
	r, said, err := upOnce(t, "--data", data)
	if err != nil || r.Events != 0 || !strings.Contains(said, "no source: hamlet serves what it has learnt") {
		t.Errorf("a new directory: %v; %d events; it says %q", err, r.Events, said)
	}
	before := mustUp(t, "--format=text", "--data", data, real)
	after := mustUp(t, "--data", data)
	if before.Events != 4 || after.Events != 0 || after.ResumedAt != 4 || after.ModelSHA256 != before.ModelSHA256 {
		t.Errorf("learnt %d events to %s; then learnt %d behind %d to %s", before.Events, before.ModelSHA256, after.Events, after.ResumedAt, after.ModelSHA256)
	}
	refused(t, cli.StatusFailed, mixed, "--demo", "--limit=10", "--data", data)
	if again := mustUp(t, "--data", data); again.ModelSHA256 != before.ModelSHA256 {
		t.Errorf("a refused --demo has changed the model: %s, want %s", again.ModelSHA256, before.ModelSHA256)
	}
}

// A directory of synthetic mail goes on with synthetic mail alone.
func TestDemoGoesOnAlone(t *testing.T) {
	t.Parallel()
	data, real := t.TempDir(), rows(t)
	first := mustUp(t, "--demo", "--limit=700", "--data", data)
	second := mustUp(t, "--demo", "--limit=900", "--data", data)
	whole := mustUp(t, "--limit=900") // in memory
	if first.Events != 700 || second.ResumedAt != 700 || second.ModelSHA256 != whole.ModelSHA256 {
		t.Errorf("learnt %d events, then behind %d to %s; want %s", first.Events, second.ResumedAt, second.ModelSHA256, whole.ModelSHA256)
	}
	refused(t, cli.StatusFailed, mixed, "--format=text", "--data", data, real)
	served, said, err := upOnce(t, "--data", data)
	if err != nil || served.Events != 0 || served.ModelSHA256 != second.ModelSHA256 {
		t.Errorf("serving it alone: %v; %d events, %s, want %s\n%s", err, served.Events, served.ModelSHA256, second.ModelSHA256, said)
	}
}

// A label that came over HTTP is a real event: --demo is refused behind it.
func TestDemoBehindLabelOverHTTP(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	mustUp(t, "--demo", "--limit=20", "--data", data)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stderr, said := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"up", "--data", data, "--http=127.0.0.1:0", "--token=t", "--experts=lean", "--table-bits=8", "--no-alarms", "--log-level=error"},
			cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: said})
		said.Close()
		ended <- err
	}()
	url := make(chan string, 1)
	go func() {
		defer close(url)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if _, address, ok := strings.Cut(lines.Text(), "  http   "); ok {
				url <- address
			}
		}
	}()
	address, ok := <-url
	if !ok {
		t.Fatal(<-ended)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/v1/events",
		strings.NewReader(`{"id":"a1","source":"desk","label":"spam","text":"You won"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer t")
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		t.Fatalf("a label is answered with %s", answer.Status)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	refused(t, cli.StatusFailed, mixed, "--demo", "--limit=20", "--data", data)
}

// Flags about synthetic mail need --demo where what is learnt is kept.
func TestSyntheticFlagsNeedDemo(t *testing.T) {
	t.Parallel()
	data, real := filepath.Join(t.TempDir(), "data"), rows(t)
	for _, flag := range []string{
		"--generate=10", "--limit=10", "--mail-seed=1", "--new-campaign=5", "--new-policy=5", "--bad-feed=5",
	} {
		for _, kept := range []string{"--data=" + data, "--kafka=127.0.0.1:1", "--redis=127.0.0.1:1", "--nats=nats://127.0.0.1:1"} {
			refused(t, cli.StatusUsage, "Synthetic mail needs --demo", kept, flag)
		}
	}
	refused(t, cli.StatusUsage, "--demo: synthetic mail is in place of a source", "--demo", "--format=text", real)
	if _, err := os.Stat(data); err == nil {
		t.Error("wrong usage has made a directory")
	}
}

// Servers that flags name are somebody's: they get synthetic mail only on request.
func TestNamedServersGetNoSyntheticMail(t *testing.T) {
	t.Parallel()
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for _, named := range [][]string{{"--kafka=" + k.Addr()}, {"--kafka=" + k.Addr(), "--model=other"}} {
		if r := mustUp(t, named...); r.Events != 0 {
			t.Errorf("%v: %d events without a source", named, r.Events)
		}
		if r := mustUp(t, append(named, "--demo", "--limit=30")...); r.Events != 30 {
			t.Errorf("%v --demo: %d events, want 30", named, r.Events)
		}
		refused(t, cli.StatusFailed, mixed, append(named, "--format=text", rows(t))...)
	}
}
