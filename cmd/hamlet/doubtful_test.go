package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/testkit/await"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/nats"
)

// A labelledMail is one of those that a test teaches.
type labelledMail struct {
	id, text    string
	spam, false bool
	late        bool // the model knows enough to doubt its label
}

// teach writes 500 labelled mails into a file of events. A liar gives every twentieth a false label.
func teach(t *testing.T) (file string, all []labelledMail) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4))
	words := [2][]string{{"lunch", "report", "friday", "minutes", "thanks"}, {"winner", "prize", "cheap", "click", "offer"}}
	var events bytes.Buffer
	for i := range 500 {
		m := labelledMail{spam: i%2 == 1, false: i%20 < 2 && i/20%2 == 0, late: i >= 100}
		var b strings.Builder
		for range 12 {
			of := words[i%2]
			if random.IntN(8) == 0 {
				of = words[1-i%2]
			}
			fmt.Fprintf(&b, "%s%d ", of[random.IntN(len(of))], random.IntN(9))
		}
		m.text = fmt.Sprintf("From: ann@example.org\nSubject: secret %d\nMessage-ID: <%d@example.org>\n\n%s\n", i, i, b.String())
		label, source := map[bool]string{true: "spam", false: "ham"}, "desk"
		if m.false {
			source = "liar"
		}
		const tenant = "bob@example.org"
		parsed := mail.Parse([]byte(m.text))
		m.id = mail.Identity(tenant, &parsed)
		line, err := json.Marshal(map[string]any{"id": fmt.Sprint(i), "source": source, "tenant": tenant, "label": label[m.spam != m.false],
			"mail": base64.StdEncoding.EncodeToString([]byte(m.text))})
		if err != nil {
			t.Fatal(err)
		}
		events.Write(append(line, '\n'))
		all = append(all, m)
	}
	file = filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(file, events.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, all
}

// Of 500 labels a liar gives every twentieth falsely. The list has these labels and hardly others. What an
// operator turns around, the model learns; what he confirms, it believes; both leave the list,
// which is the same after a restart. The journal says nothing of the mail.
func TestDoubtful(t *testing.T) {
	file, mails := teach(t)
	data := t.TempDir()
	start := func() *runningUp { return startUpOn(t, file, "--data", data, "--table-bits=14") }
	u := start()
	command := func(in string, args ...string) (string, error) {
		var out, errs bytes.Buffer
		err := run(t.Context(), append(args, "--server", "nats://"+u.NATS), cli.IO{In: strings.NewReader(in), Out: &out, Err: &errs})
		if err != nil {
			err = fmt.Errorf("%v: %w; it said %s", args, err, errs.String())
		}
		return out.String(), err
	}
	doubtful := func(in string, args ...string) string {
		t.Helper()
		out, err := command(in, append([]string{"doubtful", "--data", data}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	type line struct {
		ID, Tenant, Source, Label string
		P, Phi                    float64
		Offset                    int
	}
	list := func(args ...string) (all []line) {
		t.Helper()
		for d := json.NewDecoder(strings.NewReader(doubtful("", append(args, "--json", "--limit", "500")...))); d.More(); {
			var l line
			if err := d.Decode(&l); err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		return all
	}
	settles := func(what string, n int) (all []line) {
		t.Helper()
		await.Until(t, func() bool { all = list(); return len(all) == n }, func() string { return fmt.Sprintf("%s: %d labels, want %d", what, len(all), n) })
		return all
	}
	if _, err := command(mails[0].text, "score", "--timeout=1m", "-"); err != nil { // a scorer makes the journal
		t.Fatal(err)
	}
	var info string
	await.Until(t, func() bool {
		info, _ = command("", "info", "--json")
		return strings.Contains(info, `"positions":[500]`)
	}, func() string { return "not all is learnt: " + info })
	wrong, hits := 0, 0
	for _, m := range mails {
		if m.false && m.late {
			wrong++
		}
	}
	var all []line
	await.Until(t, func() bool { n := len(all); all = list(); return len(all) == n && n >= wrong*8/10 }, func() string { return fmt.Sprintf("of %d false labels %d are listed", wrong, len(all)) })
	for _, l := range all {
		m := mails[l.Offset]
		if m.id != l.ID || (l.Label == "spam") != (m.spam != m.false) || l.Tenant != stream.Unaddressed("bob@example.org") || !(l.Phi < .5) {
			t.Errorf("%+v of %+v", l, m)
		}
		if m.false {
			hits++
		}
	}
	t.Logf("%d are listed, of which %d are false, of %d", len(all), hits, wrong)
	if hits*10 < wrong*8 || hits*10 < len(all)*8 {
		t.Errorf("%d are listed, of which %d are false, of %d", len(all), hits, wrong)
	}
	if liars := list("--source", "liar", "--tenant", "bob@example.org"); len(liars) != hits || len(list("--source", "nobody")) != 0 {
		t.Errorf("%d of the liar, want %d", len(liars), hits)
	}
	if table := doubtful("", "--limit", "1"); !strings.Contains(table, all[0].ID) || !strings.Contains(table, fmt.Sprintf("1 of %d doubtful labels", len(all))) || !strings.Contains(table, "liar") {
		t.Errorf("the table is\n%s", table)
	}

	p := func(l line) float64 {
		t.Helper()
		out, err := command(mails[l.Offset].text, "score", "--json", "--timeout=1m", "-")
		var answer struct{ P float64 }
		if err == nil {
			err = json.Unmarshal([]byte(out), &answer)
		}
		if err != nil {
			t.Fatal(err)
		}
		return answer.P
	}
	// toward returns how much the model holds a label to be right, in p.
	toward := func(l line, label string) float64 {
		if label == "spam" {
			return p(l)
		}
		return 1 - p(l)
	}
	turn, confirm := all[0], all[len(all)-1]
	other := map[string]string{"spam": "ham", "ham": "spam"}
	before, doubted := toward(turn, other[turn.Label]), toward(confirm, confirm.Label)
	if out := doubtful("", "--turn", turn.ID, "--confirm", confirm.ID); out != confirm.ID+" "+confirm.Label+"\n"+turn.ID+" "+other[turn.Label]+"\n" {
		t.Errorf("it says %q", out)
	}
	rest := settles("after two answers", len(all)-2)
	if slices.ContainsFunc(rest, func(l line) bool { return l.ID == turn.ID || l.ID == confirm.ID }) {
		t.Errorf("what was answered is listed: %+v", rest)
	}
	await.Until(t, func() bool {
		return toward(turn, other[turn.Label]) >= before && toward(confirm, confirm.Label) > doubted
	}, func() string {
		return fmt.Sprintf("the model says %v of the turned label, %v before, and %v of the confirmed one, %v before", toward(turn, other[turn.Label]), before, toward(confirm, confirm.Label), doubted)
	})
	if _, err := command("", "doubtful", "--data", data, "--turn", turn.ID); cli.Status(err) != 1 || !strings.Contains(err.Error(), "no doubtful label") {
		t.Errorf("again: %v", err)
	}

	// One by one: the first is skipped, the second turned around, the third confirmed.
	out := doubtful("x s\ntcq", "--ask")
	if !strings.Contains(out, "1 confirmed, 1 turned around") || !strings.Contains(out, "not kept") || !strings.Contains(out, rest[2].ID) || strings.Contains(out, "5 of") {
		t.Errorf("it asks\n%s", out)
	}
	rest = settles("after asking", len(all)-4)

	if err := u.stop(); err != nil {
		t.Fatal(err)
	}
	u = start()
	again := settles("after a restart", len(rest))
	if fmt.Sprint(again) != fmt.Sprint(rest) {
		t.Errorf("after a restart\n%v\nbefore\n%v", again, rest)
	}
	// What a learner that has just started learns settles what an earlier one doubted.
	doubtful("", "--turn", rest[0].ID)
	settles("after a restart and an answer", len(rest)-1)

	cfg, err := settings.NATS{NATS: "nats://" + u.NATS}.Config("test", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lines := 0
	for e, err := range nats.ReadJournal(t.Context(), conn, "default", time.Time{}) {
		b, e2 := e.AppendJSON(nil)
		if err != nil || e2 != nil || bytes.ContainsAny(b, "@") || bytes.Contains(b, []byte("secret")) || e.Label != stream.Unlabelled && len(b) > 300 {
			t.Errorf("the journal has %s, %v", b, err)
		}
		lines++
	}
	if want := len(all) + 5; lines < want || lines > 2*want { // and answers, and what was learnt again
		t.Errorf("the journal has %d lines, want about %d", lines, want)
	}

	for _, args := range [][]string{{"--turn", "x"}, {"--turn", turn.ID, "--confirm", turn.ID}, {"--ask", "--json"}, {"--ask", "--turn", turn.ID}, {"--limit", "0"}, {"--by", ""}, {"--since", "never"}} {
		if _, err := command("", append([]string{"doubtful"}, args...)...); cli.Status(err) != cli.StatusUsage {
			t.Errorf("%v: %v, want wrong usage", args, err)
		}
	}
}
