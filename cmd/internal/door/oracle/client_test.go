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

// However an address is written, it does not leave, and neither does the query of a URL.
func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		`to "ann private"@reader.example now`:                       `to [address] now`,
		`to "ann \"private\" x"@reader.example`:                     `to [address]`,
		`o'private@reader.example, x`:                               `[address], x`,
		`see https://shop.example/a?u=ann.private%40reader.example`: `see https://shop.example/a`,
		`see HTTP://shop.example/?private#private now`:              `see HTTP://shop.example/ now`,
		`shop.example/?u=ann.private%2540reader.example now`:        `[address] now`,
		`ann.private=40reader.example`:                              `[address]`,
		`ann.private＠reader.example`:                                `[address]`,
		`ann.private&#64;reader.example`:                            `[address]`,
		"ann.private%\xff40reader.example":                          `[address]`,
		`"private " x"@b"@c`:                                        `[address]`,
		`at noon @ the office: 5 % = 40`:                            `at noon @ the office: 5 % = 40`,
	} {
		if got := excerpt([]byte(text), mostText); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for field, want := range map[string]string{
		`<ann@Sender.Example.>`: "sender.example", `"ann private"@b.example`: "b.example", `ann@bücher.example`: "bücher.example",
		`ann@private=40reader.example`: "", `ann%40reader.example`: "", `a@` + strings.Repeat("x", 256): "", `a@b/secret`: "",
		"a@b\xff.example": "",
	} {
		if got := domain(field); got != want {
			t.Errorf("%q: domain %q, want %q", field, got, want)
		}
	}
}

// leaks is a check of its own: it reports whether an @, however it is written, stands between two words.
func leaks(text string) bool {
	for _, at := range []string{"@", "＠", "﹫", "%40", "%2540", "=40", "&#64;", "&#x40;"} {
		for from := 0; ; {
			i := strings.Index(text[from:], at)
			if i < 0 {
				break
			}
			before, after := text[:from+i], text[from+i+len(at):]
			ends := func(s string) bool { return s == "" || strings.ContainsAny(s, " \t\r\n\f<>(),:;\"") }
			first, last := after[:min(len(after), 1)], before[max(0, len(before)-1):]
			quoted := last == `"` && strings.Count(before, `"`) > 1
			if !ends(first) && (!ends(last) || quoted) {
				return true
			}
			from += i + len(at)
		}
	}
	return false
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
	for name, raw := range map[string]string{
		"location":    "HTTP/1.1 302 Found\r\nLocation: http://[canary\r\nContent-Length: 0\r\n\r\n",
		"status line": "canary label\r\n\r\n", "status": "HTTP/1.1 canary\r\n\r\n",
		"field": "HTTP/1.1 200 OK\r\ncanary\r\n\r\n", "length": "HTTP/1.1 200 OK\r\nContent-Length: canary\r\n\r\n",
	} {
		strange := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, raw)
			_ = conn.Close()
		}))
		odd := NewClient(strange.URL, "")
		if _, err := odd.Ask(t.Context(), &Question{ID: "a"}); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
		odd.Close()
		strange.Close()
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
	f.Add([]byte("Subject: \"ann private\"@b.example\n\n\"z \" x\"@b\"@c o'b=40c =?a%2540b https://a/?b@c \"a\\\"@c\n"))
	f.Fuzz(func(t *testing.T, message []byte) {
		q := QuestionOf("a", message, SendsText)
		for text, most := range map[string]int{q.Subject: mostSubject, q.Text: mostText} {
			if len(text) > most || leaks(text) || strings.ToValidUTF8(text, "?") != text {
				t.Errorf("%q", text)
			}
		}
		for _, name := range []string{q.FromDomain, q.ReplyToDomain} {
			if len(name) > mostDomain || leaks("x"+name) || strings.ContainsAny(name, "@%=/?\"' \r\n") {
				t.Errorf("domain %q", name)
			}
		}
	})
}
