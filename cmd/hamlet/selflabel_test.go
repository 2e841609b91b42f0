package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/testkit/await"
	"hamlet/stream/nats"
)

// spamc sends a request to a spamd door and returns its answer.
func spamc(socket, request, fields, message string) (string, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s SPAMC/1.5\r\n%sContent-length: %d\r\n\r\n%s", request, fields, len(message), message)
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

var outcomeLine = regexp.MustCompile(`(?m)^hamlet_learner_records_total\{.*outcome="([a-z-]+)".*\} (\d+)$`)

// outcomes returns what became of the records that up's learner has read.
func outcomes(t *testing.T, url string) map[string]int {
	t.Helper()
	answer, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, m := range outcomeLine.FindAllStringSubmatch(string(text), -1) {
		all[m[1]], _ = strconv.Atoi(m[2])
	}
	return all
}

// An answer at a door that nobody corrects is learnt, and one that somebody corrects stays
// corrected. While it waits no other stream has words of the mail, and afterwards none has.
func TestAnUncorrectedAnswerIsLearnt(t *testing.T) {
	u := startUp(t, "--http", "127.0.0.1:0")
	at := regexp.MustCompile(`(?m)^  http +(\S+)$`).FindStringSubmatch(u.stderr.String())
	if at == nil {
		t.Fatalf("up said\n%s", u.stderr.String())
	}
	socket := filepath.Join(t.TempDir(), "spamd.sock")
	ctx, cancel := context.WithCancel(t.Context())
	log, ended := new(watched), make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"gateway", "--nats", "nats://" + u.NATS, "--data", u.Data, "--spamd", "unix:" + socket,
			"--allow-learn", "--self-label", "1s", "--self-label-size", "4", "--deadline", "30s"}, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: log})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	until := func(what string, is func() bool) {
		t.Helper()
		await.Until(t, is, func() string {
			return fmt.Sprintf("%s; the learner has %v; the gateway said\n%s", what, outcomes(t, at[1]), log.String())
		})
	}
	tell := func(class, message string) {
		t.Helper()
		until("nobody takes the label", func() bool {
			answer, _ := spamc(socket, "TELL", "Message-class: "+class+"\r\nSet: local\r\n", message)
			return strings.Contains(answer, "DidSet")
		})
	}
	for i := range 6 {
		tell("spam", fmt.Sprintf("Subject: offer %d\n\nwin a prize of %d million in the casino\n", i, i))
		tell("ham", fmt.Sprintf("Subject: friday %d\n\nshall we have lunch at %d in the garden\n", i, i))
	}
	p := func(text string) float64 {
		var out, errs bytes.Buffer
		if err := run(t.Context(), []string{"score", "--server", "nats://" + u.NATS, "--json", "--timeout=1m", "-"}, cli.IO{In: strings.NewReader(text), Out: &out, Err: &errs}); err != nil {
			t.Fatal(err, errs.String())
		}
		var v struct{ P float64 }
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		return v.P
	}
	const (
		kept  = "Subject: canary\n\nlunch in the garden with canarybird\n"
		wrong = "Subject: canary friday\n\nlunch in the garden with a fox, canarydeal\n"
	)
	until("the labels are not learnt", func() bool { return p(kept) < .3 && p(wrong) < .3 })
	for _, message := range []string{kept, wrong} {
		if answer, err := spamc(socket, "CHECK", "", message); err != nil || !strings.Contains(answer, "Spam: False") {
			t.Fatalf("the door answers %q, %v", answer, err)
		}
	}
	tell("spam", wrong)

	natsConfig, err := settings.NATS{NATS: "nats://" + u.NATS}.Config("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(natsConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	until("the answers are not learnt", func() bool {
		if with := streamsWith(t, js, "canary"); len(with) > 1 || len(with) == 1 && with[0] != nats.WaitingStream {
			t.Fatalf("mail is in the streams %q", with)
		}
		all := outcomes(t, at[1])
		return all["assumed"] >= 1 && all["assumed"]+all["not-assumed"] >= 2
	})
	until("the correction does not stay", func() bool { return p(wrong) > .5 && p(kept) < .5 })
	until("mail stays in a stream", func() bool { return len(streamsWith(t, js, "canary")) == 0 })
	if said := log.String() + u.stderr.String(); strings.Contains(said, "canary") || strings.Contains(said, "self-label fails") {
		t.Errorf("the log is\n%s", said)
	}
	// Who only asks may not read what waits.
	asker, err := nats.Connect(settings.KnownAsker(nats.Config{URL: "nats://" + u.NATS}))
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	if err := errors.Join(asker.Publish(nats.WaitingSubject("default"), nil), asker.FlushTimeout(30*time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := asker.LastError(); !errors.Is(err, natsgo.ErrPermissionViolation) {
		t.Errorf("who only asks writes what waits: %v", err)
	}
}

// streamsWith returns the streams of JetStream that hold a word.
func streamsWith(t *testing.T, js jetstream.JetStream, word string) (with []string) {
	t.Helper()
	for info := range js.ListStreams(t.Context()).Info() {
		s, err := js.Stream(t.Context(), info.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
			if m, err := s.GetMsg(t.Context(), seq); err == nil && bytes.Contains(m.Data, []byte(word)) { // or it is gone
				with = append(with, info.Config.Name)
				break
			}
		}
	}
	return with
}

// Answers to mail are learnt only where mail passes, and where they can wait and be written.
func TestUsageOfSelfLabel(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir()) // beside a hamlet up that runs, the gateway would serve
	t.Setenv("TMPDIR", t.TempDir())
	for args, want := range map[string]string{
		"--spamd 127.0.0.1:0 --self-label 1h":                                 "--kafka",
		"--http 127.0.0.1:0 --self-label 1h --kafka k:1":                      "a door for mail servers",
		"--spamd 127.0.0.1:0 --self-label 1ms --kafka k:1":                    "between 1s and 720h",
		"--spamd 127.0.0.1:0 --self-label 1h --self-label-size 0 --kafka k:1": "--self-label-size",
		"--spamd 127.0.0.1:0 --self-label 721h --kafka k:1":                   "between 1s and 720h",
		"--spamd 127.0.0.1:0 --kafka k:1":                                     "--self-label",
		"--spamd 127.0.0.1:0 --self-label 1h --kafka k:1 --self-label-nats /": "--self-label-nats",
	} {
		err := run(t.Context(), append([]string{"gateway", "--nats", "nats://127.0.0.1:1"}, strings.Fields(args)...), cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want wrong usage: %s", args, err, want)
		}
	}
}
