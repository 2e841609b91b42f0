package score_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/operate/score"
	"hamlet/cmd/internal/web/access"
	"hamlet/stream/mail"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

const pastedMail = "From: win@prize.example\nX-Spam-Status: Yes, secretmark\nSubject: your prize!!!\nMessage-ID: <m1@prize.example>\n\n" +
	"Claim your prize at https://prize.example/x?y=z now. The meeting is off.\n"

// wants reports what a page lacks.
func wants(t *testing.T, what, got string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q is missing in\n%s", what, want, got)
		}
	}
}

func TestPastedMessage(t *testing.T) {
	conn := startNATS(t)
	startScorer(t, conn)
	r := newReader(t, score.Config{NATS: conn})
	status, got := r.get("/why")
	if status != http.StatusOK || strings.Contains(got, "The answer") {
		t.Errorf("the empty page: %d", status)
	}
	wants(t, "the empty page", got, `name="csrf" value="token"`, `enctype="multipart/form-data"`, `type="file"`)
	for name, fields := range map[string]map[string]string{
		"pasted": {"message": strings.ReplaceAll(pastedMail, "\n", "\r\n"), "kind": "mail"},
		"a file": {"file": pastedMail, "message": "not this"},
	} {
		status, got := r.paste(fields)
		if status != http.StatusOK {
			t.Fatalf("%s: %d\n%s", name, status, got)
		}
		wants(t, name, got, ">spam<", "90 % interval", "log-odds of spam, nats", "borders of ham and spam", "The words that add most",
			`/history?id=`, "Header fields that the model reads", "secretmark", "prize.example")
		coloured := func(class, text string) bool {
			return regexp.MustCompile(`<span class="w ` + class + `[^>]*title="[^"]+">` + text + `</span>`).MatchString(got)
		}
		if !coloured("s s", "prize") || !coloured("s s", `https://prize.example/x\?y=z`) || !coloured("h h", "meeting") || coloured("[sh]", "secretmark") {
			t.Errorf("%s is coloured wrongly:\n%s", name, got)
		}
	}
	status, got = r.paste(map[string]string{"message": "Claim your prize\r\nnow", "kind": "text"})
	if wants(t, "a text", got, "The answer", "Claim"); status != http.StatusOK || strings.Contains(got, "<h3>Subject</h3>") {
		t.Errorf("a text: %d\n%s", status, got)
	}
	for name, c := range map[string]struct {
		fields map[string]string
		status int
		want   string
	}{
		"nothing":    {map[string]string{"message": " \n"}, http.StatusUnprocessableEntity, "cannot be scored"},
		"no fields":  {nil, http.StatusUnprocessableEntity, "cannot be scored"},
		"tenant":     {map[string]string{"message": pastedMail, "tenant": "a\x01b"}, http.StatusBadRequest, "tenant"},
		"text":       {map[string]string{"message": "\xff\xfe", "kind": "text"}, http.StatusUnprocessableEntity, "UTF-8"},
		"many parts": {map[string]string{"a": "", "b": "", "c": "", "message": pastedMail}, http.StatusOK, "The answer"},
	} {
		status, got := r.paste(c.fields)
		if wants(t, name, got, c.want); status != c.status {
			t.Errorf("%s: %d, want %d", name, status, c.status)
		}
	}
	request := httptest.NewRequest(http.MethodPost, "/why", strings.NewReader("message=x"))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if status, _ := r.do(request); status != http.StatusBadRequest {
		t.Errorf("another form: %d", status)
	}
	r.role = 0
	if status, _ := r.paste(map[string]string{"message": pastedMail}); status != http.StatusForbidden {
		t.Errorf("nobody pastes: %d", status)
	}
	for e, err := range nats.ReadJournal(patience(t), conn, "default", time.Time{}) {
		t.Errorf("the journal has %+v, %v", e, err)
	}
}

// A message of 25 MiB is answered. A larger one is refused with words.
func TestLargeMessages(t *testing.T) {
	conn := startNATS(t)
	startScorer(t, conn)
	r := newReader(t, score.Config{NATS: conn})
	head := "Subject: prize\nContent-Type: application/octet-stream\n\n"
	status, got := r.paste(map[string]string{"message": head + strings.Repeat("a", mail.MaxSize-len(head))})
	if wants(t, "25 MiB", got, "The answer"); status != http.StatusOK || len(got) > 200<<10 {
		t.Errorf("25 MiB: %d, a page of %d bytes", status, len(got))
	}
	for _, more := range []int{1, 4 << 20} {
		status, got = r.paste(map[string]string{"message": strings.Repeat("a", mail.MaxSize+more)})
		if wants(t, "more", got, "larger than 25 MiB", "<form"); status != http.StatusRequestEntityTooLarge {
			t.Errorf("%d bytes more: %d", more, status)
		}
	}
	line := "Subject: prize\nX-Long: " + strings.Repeat("b", 1<<20) + "\n\n" + strings.Repeat("c", 1<<20) + " prize\n"
	if status, got = r.paste(map[string]string{"message": line}); status != http.StatusOK || len(got) > 200<<10 {
		t.Errorf("lines of 1 MiB: %d, a page of %d bytes", status, len(got))
	}
	wants(t, "lines of 1 MiB", got, "bytes of text are not shown")
}

// Nothing in a message gets out of its text, and what cannot be seen is shown.
func TestHostileMessage(t *testing.T) {
	conn := startNATS(t)
	startScorer(t, conn)
	r := newReader(t, score.Config{NATS: conn})
	const script = "\"'><script>alert(1)</script>"
	hostile := "From: " + script + "\nSubject: prize " + script + " \u202eexe.gnp\x00\n" + "X-" + script + ": prize\u200b\n" + "X-Spam-" + script + ": x\n" +
		"Content-Type: text/html; charset=utf-8\n\n<p>prize &lt;script&gt;alert(2)&lt;/script&gt; http://prize.example/\"onload=x javascript:alert(3) \u202e&#0;&#8203;</p>"
	status, got := r.paste(map[string]string{"message": hostile, "file": ""})
	if status != http.StatusOK {
		t.Fatalf("%d\n%s", status, got)
	}
	if strings.Contains(got, "<script>alert") || strings.Contains(got, "\u202e") || strings.Contains(got, "\u200b") || strings.Contains(got, "\x00") {
		t.Errorf("it gets out:\n%s", got)
	}
	for _, at := range regexp.MustCompile(`href="[^"]*"`).FindAllString(got, -1) {
		if !strings.HasPrefix(at, `href="/`) && !strings.HasPrefix(at, `href="data:,"`) && !strings.HasPrefix(at, `href="#`) {
			t.Errorf("a link leads to %s", at)
		}
	}
	wants(t, "hostile", html.UnescapeString(got), "[U+202E]", "[U+200B]")
	if status, got = r.paste(map[string]string{"message": hostile, "kind": "text", "tenant": script}); status != http.StatusOK || strings.Contains(got, "<script>alert") {
		t.Errorf("as a text: %d\n%s", status, got)
	}
	_, got = r.get("/why?id=" + "%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E%E2%80%AE")
	if wants(t, "an identity", got, "&lt;script&gt;"); strings.Contains(got, "<script>alert") {
		t.Errorf("an identity gets out:\n%s", got)
	}
}

// Of what was answered, everybody sees the journal's line, and only who labels sees the message.
func TestKeptMessage(t *testing.T) {
	conn := startNATS(t)
	startScorer(t, conn)
	client, err := nats.NewClient(conn, "")
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := client.Ask(patience(t), questions.Question{Body: []byte(pastedMail), ContentType: questions.Mail, Door: "milter"})
	if err != nil {
		t.Fatal(err)
	}
	id, lines := verdicts[0].Identity, 0
	for lines == 0 {
		if patience(t).Err() != nil {
			t.Fatal("there is no line")
		}
		for range nats.ReadJournal(patience(t), conn, "default", time.Time{}) {
			lines++
		}
	}
	keep := true
	r := newReader(t, score.Config{NATS: conn, Kept: func(_ context.Context, identity string) (nats.ArchivedMail, error) {
		if !keep || identity != id {
			return nats.ArchivedMail{}, fmt.Errorf("mail %s: %w", identity, nats.ErrNotArchived)
		}
		return nats.ArchivedMail{Identity: id, Message: []byte(pastedMail), Time: time.Now().Add(-time.Hour)}, nil
	}})
	_, got := r.get("/why?id=" + id)
	wants(t, "who looks", got, "What was answered", "milter", "needs the role label", "none came")
	if strings.Contains(got, "prize") || strings.Contains(got, "Subject") && strings.Contains(got, "<h3>Subject") {
		t.Errorf("who looks sees content:\n%s", got)
	}
	r.role |= access.Label
	_, got = r.get("/why?id=" + id)
	wants(t, "who labels", got, "What was answered", "The message was kept", "60 min ago", "<h3>Subject</h3>", `class="w s s`)
	if _, got = r.get("/why?id=" + id + "&at=1-0"); !strings.Contains(got, "What was answered") {
		t.Errorf("at its place:\n%s", got)
	}
	keep = false
	_, got = r.get("/why?id=" + id)
	wants(t, "not kept", got, "What was answered", "was not kept", "--keep-mail")
	_, got = r.get("/why?id=ffffffffffffffffffffffffffffffff&at=x-y")
	wants(t, "unknown", got, "The journal has no decision with the id", "was not kept")
	if status, _ := r.get("/why?id=" + strings.Repeat("a", 2000)); status != http.StatusBadRequest {
		t.Errorf("a long id: %d", status)
	}
	found := 0
	for range nats.ReadJournal(patience(t), conn, "default", time.Time{}) {
		found++
	}
	if found != lines {
		t.Errorf("looking wrote %d lines", found-lines)
	}
}

// Without scorers or NATS the page says so, and shows what was pasted.
func TestNobodyAnswers(t *testing.T) {
	conn := startNATS(t)
	r := newReader(t, score.Config{NATS: conn})
	status, got := r.paste(map[string]string{"message": pastedMail})
	if wants(t, "no scorer", got, "No scorer of this model", "your prize!!!"); status != http.StatusOK || strings.Contains(got, "to spam, in") {
		t.Errorf("no scorer: %d\n%s", status, got)
	}
	conn.Close()
	for _, get := range []func() (int, string){
		func() (int, string) { return r.paste(map[string]string{"message": pastedMail}) }, func() (int, string) { return r.get("/why?id=a") },
	} {
		if status, got = get(); status != http.StatusOK || !strings.Contains(got, "NATS cannot be reached") {
			t.Errorf("NATS is away: %d\n%s", status, got)
		}
	}
}
