package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/testkit/await"
	"hamlet/stream/nats"
)

// What up scores with --keep-mail can be reviewed: listed, shown and labelled, and then it is
// learnt. Who only asks reads none of it.
func TestReview(t *testing.T) {
	u := startUp(t, "--keep-mail", "1", "--keep-mail-size", "4", "--http", "127.0.0.1:0")
	at := regexp.MustCompile(`(?m)^  http +(\S+)$`).FindStringSubmatch(u.stderr.String())
	if at == nil {
		t.Fatalf("up said\n%s", u.stderr.String())
	}
	server := "nats://" + u.NATS
	command := func(in string, args ...string) (string, error) {
		var out, errs bytes.Buffer
		err := run(t.Context(), args, cli.IO{In: strings.NewReader(in), Out: &out, Err: &errs})
		if err != nil {
			err = fmt.Errorf("%v: %w; it said %s", args, err, errs.String())
		}
		return out.String(), err
	}
	for _, text := range []string{"prize", "lunch"} {
		if _, err := command("From: ann@example.org\nSubject: a "+text+"\n\nabout "+text+" \x1b[2J\n", "score", "--server", server, "--timeout=1m", "-"); cli.Status(err) == cli.StatusUsage {
			t.Fatal(err)
		}
	}
	type line struct {
		ID, Subject, From, Door string
		Worth                   float64
		Kept                    bool
	}
	list := func() (all []line) {
		t.Helper()
		out, err := command("", "review", "--server", server, "--json")
		if err != nil {
			t.Fatal(err)
		}
		for d := json.NewDecoder(strings.NewReader(out)); ; {
			var l line
			if err := d.Decode(&l); errors.Is(err, io.EOF) {
				return all
			} else if err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
	}
	lists := func(what string, is func([]line) bool) (all []line) {
		t.Helper()
		await.Until(t, func() bool { all = list(); return is(all) }, func() string { return fmt.Sprintf("%s: %+v", what, all) })
		return all
	}
	all := lists("the messages are not in the list", func(all []line) bool { return len(all) == 2 && all[0].Kept && all[1].Kept })
	first := all[0]
	if !strings.HasPrefix(first.Subject, "a ") || first.From != "ann@example.org" || !(first.Worth > 0) || first.Worth < all[1].Worth {
		t.Errorf("%+v", all)
	}
	table, err := command("", "review", "--server", server, "--limit", "1")
	if err != nil || !strings.Contains(table, first.ID) || !strings.Contains(table, first.Subject) || !strings.Contains(table, "1 of 2 messages") {
		t.Errorf("%v, %s", err, table)
	}
	shown, err := command("", "review", "--server", server, "--show", first.ID)
	if err != nil || !strings.Contains(shown, "Subject: "+first.Subject) || !strings.Contains(shown, "about") || strings.Contains(shown, "\x1b") {
		t.Errorf("%v, %q", err, shown)
	}
	if out, err := command("", "review", "--server", server, "--data", u.Data, "--source", "ann", "--label", "spam", first.ID); err != nil || out != first.ID+" spam\n" {
		t.Fatalf("%v, %q", err, out)
	}
	learnt := func() (n int) {
		for _, records := range outcomes(t, at[1]) {
			n += records
		}
		return n
	}
	lists("the label is not learnt", func([]line) bool { return learnt() == 3 }) // up has learnt two texts

	for _, args := range [][]string{{"--show"}, {first.ID}, {"--label", "spam", "x"}, {"--limit", "0"}, {"--show", "--label", "ham", first.ID}, {"--label", "maybe", first.ID}} {
		if _, err := command("", append([]string{"review", "--server", server}, args...)...); cli.Status(err) != cli.StatusUsage {
			t.Errorf("%v: %v, want wrong usage", args, err)
		}
	}
	if _, err := command("", "review", "--server", server, "--show", strings.Repeat("0", 32)); !errors.Is(err, nats.ErrNotArchived) || !strings.Contains(err.Error(), "--keep-mail") {
		t.Errorf("a message that is not kept: %v", err)
	}

	for _, subject := range []string{"$JS.API.STREAM.INFO." + nats.MailStream, "$JS.API.DIRECT.GET." + nats.MailStream + ".$O.x"} {
		asker, err := nats.Connect(settings.KnownAsker(nats.Config{URL: server}))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(asker.Publish(subject, nil), asker.FlushTimeout(30*time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := asker.LastError(); !errors.Is(err, natsgo.ErrPermissionViolation) {
			t.Errorf("who only asks reads %s: %v", subject, err)
		}
		asker.Close()
	}
}
