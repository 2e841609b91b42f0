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
)

// asked is what a scorer was asked last.
type asked struct {
	mu       sync.Mutex
	tenants  []string
	door     string
	words    int
	observed []string // the doors of the answers
}

// origins serves a scorer that records the origins of its requests.
func origins(t *testing.T) (*asked, *natsgo.Conn) {
	server, a := startServer(t), new(asked)
	serve(t, connect(t, server), scorer{score: func(ctx context.Context, requests []*stream.Event, _ bool) ([]stream.Verdict, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.tenants, a.door, a.words = nil, nats.Door(ctx), nats.Words(ctx)
		for _, r := range requests {
			a.tenants = append(a.tenants, r.Tenant)
		}
		return half(requests), nil
	}}, nats.ServiceConfig{MaxBytes: 1000, Observe: func(o nats.Observation) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.observed = append(a.observed, o.Door)
	}})
	return a, connect(t, server)
}

func TestOriginOfRequests(t *testing.T) {
	a, conn := origins(t)
	plain := client(t, conn, "")
	const batch = `[{"text": "x"}, {"text": "x", "tenant": "inner"}, {"text": "x", "tenant": "default"}, {"text": "x", "tenant": ""}]`
	for _, tt := range []struct {
		client                  *nats.Client
		contentType, body, door string
		want                    []string
	}{
		{plain, nats.TypeMail, letter, "", []string{"default"}},
		{plain, nats.TypeJSON, batch, "", []string{"default", "inner", "default", "default"}},
		{plain.For("outer", "milter"), nats.TypeMail, letter, "milter", []string{"outer"}},
		{plain.For("outer", ""), nats.TypeText, "x", "", []string{"outer"}},
		{plain.For("", "http"), nats.TypeText, "x", "http", []string{"default"}},
		{plain.For("grüße an ü@example.org", "a-1"), nats.TypeText, "x", "a-1", []string{"grüße an ü@example.org"}},
		{plain.For("outer", "milter"), nats.TypeJSON, batch, "milter", []string{"outer", "inner", "default", "outer"}},
		{plain.For("outer", "milter"), nats.TypeJSON, `{"text": "x"}`, "milter", []string{"outer"}},
		{plain.For("outer", "milter"), nats.TypeJSON, `{"text": "x", "tenant": "default"}`, "milter", []string{"default"}},
		{plain.For("outer", "milter").For("", ""), nats.TypeText, "x", "", []string{"default"}},
		{plain.For("", "NO").For("outer", "yes"), nats.TypeText, "x", "yes", []string{"outer"}},
	} {
		if _, err := tt.client.Score(patience(t), []byte(tt.body), tt.contentType, false); err != nil {
			t.Errorf("%s %s: %v", tt.contentType, tt.body, err)
			continue
		}
		a.mu.Lock()
		if last := a.observed[len(a.observed)-1]; !slices.Equal(a.tenants, tt.want) || a.door != tt.door || last != tt.door {
			t.Errorf("%s %s: tenants %q by door %q, observed as %q; want %q by %q", tt.contentType, tt.body, a.tenants, a.door, last, tt.want, tt.door)
		}
		a.mu.Unlock()
	}
	if _, err := plain.For("outer", "milter").Info(patience(t)); err != nil {
		t.Errorf("info: %v", err)
	}
	_, err := plain.For("", "spamd").Score(patience(t), make([]byte, 1001), nats.TypeText, false)
	a.mu.Lock()
	defer a.mu.Unlock()
	if door := a.observed[len(a.observed)-1]; err == nil || door != "spamd" {
		t.Errorf("a request that is too large: %v, observed as %q", err, door)
	}
}

// The service checks the headers of whoever asks, and the client what it is told.
func TestOriginsThatAreRefused(t *testing.T) {
	a, conn := origins(t)
	plain := client(t, conn, "")
	long := strings.Repeat("x", 257)
	for _, tt := range []struct{ header, value string }{
		{"Hamlet-Door", "Milter"}, {"Hamlet-Door", "a b"}, {"Hamlet-Door", "ü"}, {"Hamlet-Door", long[:17]}, {"hamlet-door", "A"},
		{"Hamlet-Tenant", long}, {"Hamlet-Tenant", "a\xffb"}, {"HAMLET-TENANT", "a\u0085b"}, {"Hamlet-Words", "0"}, {"Hamlet-Words", "-3"}, {"Hamlet-Words", "many"}, {"Hamlet-Tenant", "a\x01b"},
	} {
		m := natsgo.NewMsg("hamlet.score")
		m.Header.Set("Content-Type", nats.TypeText)
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
	for _, c := range []*nats.Client{
		plain.For("", "Milter"), plain.For("", long[:17]), plain.For(long, "a"), plain.For("a\nb", "a"), plain.For("\xff", ""), plain.For(" a", ""), plain.For("a ", ""),
	} {
		var e *nats.Error
		if _, err := c.Score(patience(t), []byte("x"), nats.TypeText, false); !errors.As(err, &e) || e.Code != nats.CodeBadRequest {
			t.Errorf("score: %v, want an *Error of code 400", err)
		}
		if _, err := c.Info(patience(t)); !errors.As(err, &e) || e.Code != nats.CodeBadRequest {
			t.Errorf("info: %v, want an *Error of code 400", err)
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
	a, conn := origins(t)
	plain := client(t, conn, "")
	for _, tt := range []struct {
		client            *nats.Client
		contentType, body string
		want              int
	}{
		{plain, nats.TypeText, "x", stream.MaxWords},
		{plain.For("outer", "console").Words(100), nats.TypeText, "x", 100},
		{plain.Words(5), nats.TypeText, "x", 5},
		{plain.Words(5000), nats.TypeText, "x", nats.MostWords},
		{plain.Words(100), nats.TypeJSON, `[{"text": "x"}]`, 100},
		{plain.Words(100), nats.TypeJSON, `[{"text": "x"}, {"text": "y"}]`, stream.MaxWords},
	} {
		if _, err := tt.client.Score(patience(t), []byte(tt.body), tt.contentType, true); err != nil {
			t.Fatal(err)
		}
		a.mu.Lock()
		if a.words != tt.want {
			t.Errorf("%s: %d words, want %d", tt.body, a.words, tt.want)
		}
		a.mu.Unlock()
	}
}
