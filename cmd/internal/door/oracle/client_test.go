package oracle

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hamlet/stream"
)

const letter = "From: \"Ann, of ann@private.example\" <ann@Sender.Example>\r\nReply-To: bob@reply.example\r\n" +
	"Received: from secret-host (192.0.2.7)\r\nSubject: offer for carol@reader.example\r\n\r\n" +
	"write to dave@reader.example or (eve@x.example), today\r\n"

// What leaves the house is what was allowed, and no more.
func TestWhatIsSent(t *testing.T) {
	reduced := []byte(letter)
	for sends, want := range map[Sends]string{
		SendsHeaders: `{"id":"a","subject":"offer for [address]","from_domain":"sender.example",` +
			`"reply_to_domain":"reply.example","html":false,"attachments":0}`,
		SendsText: `{"id":"a","subject":"offer for [address]","from_domain":"sender.example",` +
			`"reply_to_domain":"reply.example","html":false,"attachments":0,` +
			`"text":"write to [address] or ([address]), today\n"}`,
	} {
		q := QuestionOf("a", reduced, sends)
		got, err := json.Marshal(q)
		if err != nil || strings.ReplaceAll(string(got), `\r`, "") != want {
			t.Errorf("%s: %s, %v, want %s", sends, got, err, want)
		}
	}
	if q := QuestionOf("a", reduced, SendsMail); string(q.Mail) != letter || q.Text == "" {
		t.Errorf("%+v", q)
	}
}

// A long text is cut between characters, and never within an address.
func TestExcerpts(t *testing.T) {
	for most := range 60 {
		text := strings.Repeat("ä€ user.name@reader.example ", 20)
		got := excerpt([]byte(text), most)
		if len(got) > most || strings.Contains(got, "user") || strings.Contains(got, "\uFFFD") || strings.ToValidUTF8(got, "?") != got {
			t.Errorf("%d: %q", most, got)
		}
	}
	if got := excerpt([]byte(strings.Repeat("x", 100)), 20); len(got) > 20 {
		t.Errorf("%q", got)
	}
}

// An answer is spam, ham or unknown; all else is an error that tells nothing of the question.
func TestAnswers(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	var status int
	var body, seen string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		seen = fmt.Sprint(r.Method, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(text))
		w.Header().Set("Location", other.URL)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	c := NewClient(server.URL+"/label?key=canary", "token")
	defer c.Close()
	ask := func() (stream.Label, error) { return c.Ask(t.Context(), &Question{ID: "a", Subject: "canary"}) }
	for answer, want := range map[string]stream.Label{
		`{"label":"spam"}`: stream.Spam, `{"label":"ham","why":"x"}`: stream.Ham, `{"label":"unknown"}`: stream.Unlabelled,
	} {
		status, body = http.StatusOK, answer
		if got, err := ask(); got != want || err != nil {
			t.Errorf("%s: %v, %v", answer, got, err)
		}
	}
	if want := `POSTBearer tokenapplication/json{"id":"a"`; !strings.HasPrefix(seen, want) {
		t.Errorf("sent %s, want %s…", seen, want)
	}
	for _, bad := range []struct {
		status int
		body   string
	}{
		{200, `{"label":"SPAM"}`}, {200, `{}`}, {200, `spam`}, {200, ``}, {500, `{"label":"spam"}`}, {307, `{"label":"spam"}`},
		{200, `{"label":"spam"}` + strings.Repeat(" ", mostAnswer)},
	} {
		status, body = bad.status, bad.body
		if got, err := ask(); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%.30v: %v, %v", bad, got, err)
		}
	}
	server.Close()
	if _, err := ask(); err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "label") {
		t.Errorf("a machine that is away: %v", err)
	}
	if elsewhere != 0 {
		t.Error("a redirection was followed")
	}
}

// Whatever a message is, its subject and text leave without addresses, as UTF-8, and within their bounds.
func FuzzQuestion(f *testing.F) {
	f.Add([]byte(letter))
	f.Add([]byte("Subject: =?utf-8?q?a=40b.example?=\n\nä@b.example\n"))
	f.Add([]byte("From: @\nReply-To: a@\n\n@@ a@b@c a@,@b\xff@\xfe"))
	f.Fuzz(func(t *testing.T, message []byte) {
		q := QuestionOf("a", message, SendsText)
		for text, most := range map[string]int{q.Subject: mostSubject, q.Text: mostText} {
			if len(text) > most || address().MatchString(text) || strings.ToValidUTF8(text, "?") != text {
				t.Errorf("%q", text)
			}
		}
		if strings.Contains(q.FromDomain+q.ReplyToDomain, "@") {
			t.Errorf("domains %q and %q", q.FromDomain, q.ReplyToDomain)
		}
	})
}
