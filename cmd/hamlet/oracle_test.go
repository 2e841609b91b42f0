package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/testkit/await"
)

// A machine at an HTTP endpoint is trusted after people's labels agreed with it, and labels doubtful mail
// at a door. When it turns bad it is stopped, and withdraw finds what it taught.
func TestAnOracleIsHeldToAccount(t *testing.T) {
	u := startUp(t, "--http", "127.0.0.1:0")
	at := regexp.MustCompile(`(?m)^  http +(\S+)$`).FindStringSubmatch(u.stderr.String())
	if at == nil {
		t.Fatalf("up said\n%s", u.stderr.String())
	}
	var mu sync.Mutex
	lies, asked := false, []string{}
	machine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, string(text))
		label := "spam"
		if strings.Contains(string(text), "friday") != lies {
			label = "ham"
		}
		fmt.Fprintf(w, `{"label": %q}`, label)
	}))
	defer machine.Close()
	dir := t.TempDir()
	socket, account := filepath.Join(dir, "spamd.sock"), filepath.Join(dir, "oracle.json")
	ctx, cancel := context.WithCancel(t.Context())
	log, ended := new(watched), make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"gateway", "--nats", "nats://" + u.NATS, "--data", u.Data, "--spamd", "unix:" + socket,
			"--allow-learn", "--deadline", "30s", "--oracle", machine.URL, "--oracle-file", account}, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: log})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	state := func() (state string, questions int) {
		var page struct{ State string }
		if b, err := os.ReadFile(account); err == nil {
			_ = json.Unmarshal(b, &page)
		}
		mu.Lock()
		defer mu.Unlock()
		return page.State, len(asked)
	}
	until := func(what string, is func() bool) {
		t.Helper()
		await.Until(t, is, func() string {
			is, n := state()
			return fmt.Sprintf("%s; it is %s, %d asked; the learner has %v; the gateway said\n%s", what, is, n, outcomes(t, at[1]), log)
		})
	}
	tell := func(class, message string) {
		t.Helper()
		until("nobody takes the label", func() bool {
			answer, _ := spamc(socket, "TELL", "Message-class: "+class+"\r\nSet: local\r\n", message)
			return strings.Contains(answer, "DidSet")
		})
	}
	check := func(message string) {
		t.Helper()
		if answer, err := spamc(socket, "CHECK", "", message); err != nil || !strings.Contains(answer, "Spam: ") {
			t.Fatalf("the door answers %q, %v\n%s", answer, err, log)
		}
	}
	letters := func(n int) (spam, ham string) {
		return fmt.Sprintf("From: seller@shop.example\nSubject: offer %d\n\nwin a prize of %d million, word%d\n", n, n, 7*n),
			fmt.Sprintf("From: ann@home.example\nSubject: friday %d\n\nshall we have lunch at %d, word%d\n", n, n, 7*n)
	}
	labelled := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			spam, ham := letters(n)
			check(spam)
			check(ham)
			tell("spam", spam)
			tell("ham", ham)
		}
	}
	until("nothing is scored", func() bool {
		answer, err := spamc(socket, "CHECK", "", "Subject: a first one\n\nhello\n")
		return err == nil && strings.Contains(answer, "Spam: ")
	})
	labelled(0, 8)
	until("it is not trusted", func() bool { s, n := state(); return s == "trusted" && n >= 10 })
	before := outcomes(t, at[1])["assumed"]
	n := 0
	until("it teaches nothing", func() bool {
		n++
		check(fmt.Sprintf("Subject: offer friday %d\n\nprize lunch strange%d odd%d\n", n, n, n))
		return outcomes(t, at[1])["assumed"] > before
	})

	mu.Lock()
	lies = true
	if text := strings.Join(asked, "\n"); strings.Contains(text, "lunch") || !strings.Contains(text, `"from_domain":"shop.example"`) || strings.Contains(text, "seller") {
		t.Errorf("it was shown\n%s", text)
	}
	mu.Unlock()
	for from := 100; ; from += 8 {
		labelled(from, from+8)
		for i := range 8 { // doubtful, and really about friday
			message := fmt.Sprintf("Subject: offer friday %d\n\nprize lunch doubt%d%d million\n", from+i, from, i)
			check(message)
			tell("ham", message)
		}
		if s, _ := state(); s == "stopped" || from > 400 {
			break
		}
	}
	until("it is not stopped, or does not say so", func() bool {
		s, _ := state()
		return s == "stopped" && strings.Contains(log.String(), "hamlet withdraw --source oracle")
	})
	if said := log.String(); strings.Contains(said, "lunch") {
		t.Errorf("the gateway said\n%s", said)
	}
	var out, errs bytes.Buffer
	err := run(t.Context(), []string{"withdraw", "--data", u.Data, "--source", "oracle", "--since", "1h", "--yes", "--json"}, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
	var done struct{ Labels, Withdrawable, Withdrawn, Beyond, Written int }
	if err != nil || json.Unmarshal(out.Bytes(), &done) != nil {
		t.Fatalf("withdraw: %v\n%s%s", err, out.String(), errs.String())
	}
	taught := outcomes(t, at[1])["assumed"]
	// Withdrawn are answers that people have corrected. Beyond are those that came behind a label, and were not learnt.
	if done.Withdrawable < 1 || done.Withdrawable > taught || done.Withdrawable+done.Withdrawn+done.Beyond != done.Labels || done.Written != done.Withdrawable {
		t.Errorf("it taught %d; withdraw says %s", taught, out.String())
	}
}

// Mail goes to a machine over the network encrypted only, and what must not be forgotten has a place.
func TestUsageOfOracle(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir()) // beside a hamlet up that runs, the gateway would serve
	t.Setenv("TMPDIR", t.TempDir())
	file := filepath.Join(t.TempDir(), "oracle.json")
	for args, want := range map[string]string{
		"--spamd 127.0.0.1:0 --oracle http://127.0.0.1:1/ --oracle-file " + file:                                                           "--kafka",
		"--http 127.0.0.1:0 --oracle http://127.0.0.1:1/ --kafka k:1 --oracle-file " + file:                                                "a door for mail servers",
		"--spamd 127.0.0.1:0 --oracle http://127.0.0.1:1/ --kafka k:1 --oracle-not " + strings.Repeat("x", 999) + " --oracle-file " + file: "no tenant",
		"--spamd 127.0.0.1:0 --oracle http://127.0.0.1:1/ --kafka k:1":                                                                     "--oracle-file",
		"--spamd 127.0.0.1:0 --oracle http://192.0.2.1:1/ --kafka k:1 --oracle-file " + file:                                               "https only",
		"--spamd 127.0.0.1:0 --oracle http://example.org/ --kafka k:1 --oracle-file " + file:                                               "https only",
		"--spamd 127.0.0.1:0 --oracle https://a:b@example.org/ --kafka k:1 --oracle-file " + file:                                          "--oracle-token-file",
		"--spamd 127.0.0.1:0 --oracle ftp://example.org/ --kafka k:1 --oracle-file " + file:                                                "wants a URL",
		"--spamd 127.0.0.1:0 --oracle https://example.org --kafka k:1 --oracle-questions 0 --oracle-file " + file:                          "--oracle-questions",
		"--spamd 127.0.0.1:0 --oracle https://example.org --kafka k:1 --oracle-sends all --oracle-file " + file:                            "--oracle-sends",
		"--spamd 127.0.0.1:0 --oracle https://example.org --kafka k:1 --oracle-nats / --oracle-file " + file:                               "--oracle-nats",
		"--spamd 127.0.0.1:0 --oracle-file " + file:                                                                                        "there is none",
		"--spamd 127.0.0.1:0 --kafka k:1": "--oracle",
	} {
		err := run(t.Context(), append([]string{"gateway", "--nats", "nats://127.0.0.1:1"}, strings.Fields(args)...), cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want wrong usage: %s", args, err, want)
		}
	}
}
