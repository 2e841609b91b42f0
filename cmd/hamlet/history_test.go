package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/clock"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/testkit/await"
	"hamlet/cmd/internal/testkit/clitest"
	"hamlet/stream"
)

var identityOfField = regexp.MustCompile(`X-Hamlet: (\w+);.* id=([0-9a-f]{32})`)

// What a door answered stands in the history, by every way to find it.
func TestHistoryShowsWhatADoorAnswered(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "spamd.sock")
	u := startUp(t, "--spamd", "unix:"+socket, "--deadline", "30s", "--allow-learn")
	message := "Message-ID: <canary-5@sender.example>\nFrom: ann@sender.example\nSubject: subjectcanary\n\nwin a prize bodycanary\n"
	file := filepath.Join(dir, "message.eml")
	if err := os.WriteFile(file, []byte(message), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func() (field []string, answer []byte) {
		t.Helper()
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HEADERS SPAMC/1.5\r\nContent-length: %d\r\n\r\n%s", len(message), message)
		if answer, err = io.ReadAll(conn); err != nil {
			t.Fatal(err)
		}
		return identityOfField.FindStringSubmatch(string(answer)), answer
	}
	var field []string
	var answer []byte
	await.Until(t, func() bool { // until there is a model
		field, answer = ask()
		return field != nil
	}, func() string { return fmt.Sprintf("the door answered %q", answer) })
	if _, err := u.score(t); err != nil { // a second line
		t.Fatal(err)
	}

	history := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		err := run(t.Context(), append([]string{"history", "--server", "nats://" + u.NATS}, args...), cli.IO{In: strings.NewReader(message), Out: &out, Err: &errs})
		if err != nil {
			t.Fatal(err, errs.String())
		}
		return out.String()
	}
	var all string
	await.Until(t, func() bool {
		all = history("--json")
		return strings.Count(all, "\n") >= 2
	}, func() string { return fmt.Sprintf("the history is %q; up said\n%s", all, u.stderr.String()) })
	lines := strings.SplitAfter(all, "\n")
	var e stream.JournalEntry
	if err := json.Unmarshal([]byte(lines[0]), &e); err != nil {
		t.Fatal(err)
	}
	if string(e.Verdict) != field[1] || e.ID != field[2] || e.Door != "spamd" || e.Tenant != "default" || len(e.Reasons) != 3 {
		t.Errorf("the line is %+v, the field %q", e, field[0])
	}
	for args, want := range map[string]string{
		"":                                     all,
		"--id " + e.ID:                         lines[0],
		"--message-id canary-5@sender.example": lines[0],
		"--door spamd":                         lines[0],
		"--door nats":                          lines[1],
		"--limit 1":                            lines[1],
		"--limit 0 --since 1h":                 all,
		"--tenant other":                       "",
		"--tenant other " + file:               "",
		file:                                   lines[0],
		"-":                                    lines[0],
		"--message-id x --verdict spam":        "",
		"--model another":                      "",
		"--since 2100-01-01T00:00:00Z":         "",
		"--door spamd --verdict " + field[1]:   lines[0],
	} {
		if got := history(append(strings.Fields(args), "--json")...); got != want {
			t.Errorf("history %s: %q, want %q", args, got, want)
		}
	}
	table := history()
	if rows := strings.Count(table, "\n"); rows != 3 || !strings.Contains(table, e.ID) || !strings.Contains(table, e.Reasons[2]) || !strings.HasPrefix(table, "time ") {
		t.Errorf("the table is\n%s", table)
	}
	if strings.Contains(all+table, "canary") || strings.Contains(all+table, "@") {
		t.Errorf("the history has words of the message:\n%s%s", all, table)
	}

	// The label that the message gets stands beside its answers.
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "TELL SPAMC/1.5\r\nMessage-class: spam\r\nSet: local\r\nContent-length: %d\r\n\r\n%s", len(message), message)
	if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "DidSet") {
		t.Fatalf("TELL is answered with %q, %v", answer, err)
	}
	labelled := ""
	await.Until(t, func() bool {
		// A command leaves a consumer of the journal for a minute, and NATS takes a thousand.
		_ = clock.Sleep(t.Context(), 100*time.Millisecond)
		labelled = history("--json", file)
		return strings.Contains(labelled, `"label":"spam"`)
	}, func() string {
		return fmt.Sprintf("no label in the history %q; up said\n%s", labelled, u.stderr.String())
	})
	var figures answered.Figures
	if err := json.Unmarshal([]byte(strings.SplitAfter(history("--stats", "--json"), "\n")[0]), &figures); err != nil {
		t.Fatal(err)
	}
	if figures.Answers != 2 || figures.Labelled != 1 || !figures.LogLoss.Value.Defined() || figures.DelayMedian < 0 {
		t.Errorf("the figures are %+v", figures)
	}
	if table := history("--stats", "--door", "spamd"); !strings.Contains(table, "1-ROCA%") || strings.Count(table, "\n") != 8 || !strings.Contains(table, "spamd") {
		t.Errorf("the table of figures is\n%s", table)
	}
	for _, args := range []string{"--since yesterday", "--since -1h", "--limit -1", "--verdict maybe", "--message-id <>"} {
		err := run(t.Context(), append([]string{"history", "--server", "nats://" + u.NATS}, strings.Fields(args)...), cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if cli.Status(err) != cli.StatusUsage {
			t.Errorf("history %s: %v, want wrong usage", args, err)
		}
	}
}

func TestHistoryHelp(t *testing.T) {
	clitest.Help(t, run, []string{"--limit=50", "--server=nats://127.0.0.1:4222", "--verdict=VERDICT"}, "history", "--help")
}
