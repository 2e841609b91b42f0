package nats_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// asked is what a scorer was asked last.
type asked struct {
	mu       sync.Mutex
	tenants  []string
	door     string
	words    int
	observed []string // the doors of the answers
}

// headers serves a scorer that records the headers of its requests.
func headers(t *testing.T) (*asked, *natsgo.Conn) {
	server, a := startServer(t), new(asked)
	serveObserved(t, connect(t, server), scorer{score: func(ctx context.Context, requests []*stream.Event, _ bool) ([]stream.Verdict, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.tenants, a.door, a.words = nil, questions.Door(ctx), questions.Words(ctx)
		for _, r := range requests {
			a.tenants = append(a.tenants, r.Tenant)
		}
		return half(requests), nil
	}}, nats.ServiceConfig{MaxBytes: 1000}, func(o questions.Observation) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.observed = append(a.observed, o.Door)
	})
	return a, connect(t, server)
}

func TestOriginOfRequests(t *testing.T) {
	a, conn := headers(t)
	c := client(t, conn, "")
	const batch = `[{"text": "x"}, {"text": "x", "tenant": "inner"}, {"text": "x", "tenant": "default"}, {"text": "x", "tenant": ""}]`
	for _, tt := range []struct {
		from                    questions.Question
		contentType, body, door string
		want                    []string
	}{
		{questions.Question{}, questions.Mail, letter, "", []string{"default"}},
		{questions.Question{}, questions.JSON, batch, "", []string{"default", "inner", "default", "default"}},
		{questions.Question{Tenant: "outer", Door: "milter"}, questions.Mail, letter, "milter", []string{"outer"}},
		{questions.Question{Tenant: "outer"}, questions.Text, "x", "", []string{"outer"}},
		{questions.Question{Door: "http"}, questions.Text, "x", "http", []string{"default"}},
		{questions.Question{Tenant: "grüße an ü@example.org", Door: "a-1"}, questions.Text, "x", "a-1", []string{"grüße an ü@example.org"}},
		{questions.Question{Tenant: "outer", Door: "milter"}, questions.JSON, batch, "milter", []string{"outer", "inner", "default", "outer"}},
		{questions.Question{Tenant: "outer", Door: "milter"}, questions.JSON, `{"text": "x"}`, "milter", []string{"outer"}},
		{questions.Question{Tenant: "outer", Door: "milter"}, questions.JSON, `{"text": "x", "tenant": "default"}`, "milter", []string{"default"}},
	} {
		tt.from.Body, tt.from.ContentType = []byte(tt.body), tt.contentType
		if _, err := c.Ask(patience(t), tt.from); err != nil {
			t.Errorf("%s %s: %v", tt.contentType, tt.body, err)
			continue
		}
		a.mu.Lock()
		if last := a.observed[len(a.observed)-1]; !slices.Equal(a.tenants, tt.want) || a.door != tt.door || last != tt.door {
			t.Errorf("%s %s: tenants %q by door %q, observed as %q; want %q by %q", tt.contentType, tt.body, a.tenants, a.door, last, tt.want, tt.door)
		}
		a.mu.Unlock()
	}
	if _, err := c.Info(patience(t)); err != nil {
		t.Errorf("info: %v", err)
	}
	_, err := c.Ask(patience(t), questions.Question{Body: make([]byte, 1001), ContentType: questions.Text, Door: "spamd"})
	a.mu.Lock()
	defer a.mu.Unlock()
	if door := a.observed[len(a.observed)-1]; err == nil || door != "spamd" {
		t.Errorf("a request that is too large: %v, observed as %q", err, door)
	}
}

// The service checks the headers of whoever asks, and the client what it is told.
func TestOriginsThatAreRefused(t *testing.T) {
	a, conn := headers(t)
	c := client(t, conn, "")
	long := strings.Repeat("x", 257)
	for _, tt := range []struct{ header, value string }{
		{"Hamlet-Door", "Milter"}, {"Hamlet-Door", "a b"}, {"Hamlet-Door", "ü"}, {"Hamlet-Door", long[:17]}, {"hamlet-door", "A"},
		{"Hamlet-Tenant", long}, {"Hamlet-Tenant", "a\xffb"}, {"HAMLET-TENANT", "a\u0085b"}, {"Hamlet-Words", "0"}, {"Hamlet-Words", "-3"}, {"Hamlet-Words", "many"}, {"Hamlet-Tenant", "a\x01b"},
	} {
		m := natsgo.NewMsg("hamlet.score")
		m.Header.Set("Content-Type", questions.Text)
		m.Header.Set(tt.header, tt.value)
		m.Data = []byte("x")
		answer, err := conn.RequestMsgWithContext(patience(t), m)
		if err != nil {
			t.Fatal(err)
		}
		if code, text := answer.Header.Get(micro.ErrorCodeHeader), answer.Header.Get(micro.ErrorHeader); code != "400" || !strings.Contains(text, "Hamlet-") {
			t.Errorf("%s: %q is answered %s %q, want 400 and the header's name", tt.header, tt.value, code, text)
		}
	}
	for _, q := range []questions.Question{
		{Door: "Milter"}, {Door: long[:17]}, {Tenant: long, Door: "a"}, {Tenant: "a\nb", Door: "a"}, {Tenant: "\xff"}, {Tenant: " a"}, {Tenant: "a "},
	} {
		var e *questions.Refusal
		q.Body, q.ContentType = []byte("x"), questions.Text
		if _, err := c.Ask(patience(t), q); !errors.As(err, &e) || e.Code != questions.BadRequest {
			t.Errorf("%+v: %v, want a refusal of code 400", q, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tenants != nil {
		t.Errorf("the scorer was asked for %q", a.tenants)
	}
}

// One message may have more words than usual, up to a bound; a batch may not.
func TestWordsOfARequest(t *testing.T) {
	a, conn := headers(t)
	c := client(t, conn, "")
	for _, tt := range []struct {
		from              questions.Question
		contentType, body string
		want              int
	}{
		{questions.Question{}, questions.Text, "x", stream.MaxWords},
		{questions.Question{Tenant: "outer", Door: "console", Words: 100}, questions.Text, "x", 100},
		{questions.Question{Words: 5}, questions.Text, "x", 5},
		{questions.Question{Words: 5000}, questions.Text, "x", questions.MostWords},
		{questions.Question{Words: 100}, questions.JSON, `[{"text": "x"}]`, 100},
		{questions.Question{Words: 100}, questions.JSON, `[{"text": "x"}, {"text": "y"}]`, stream.MaxWords},
	} {
		tt.from.Body, tt.from.ContentType, tt.from.Explain = []byte(tt.body), tt.contentType, true
		if _, err := c.Ask(patience(t), tt.from); err != nil {
			t.Fatal(err)
		}
		a.mu.Lock()
		if a.words != tt.want {
			t.Errorf("%s: %d words, want %d", tt.body, a.words, tt.want)
		}
		a.mu.Unlock()
	}
}
