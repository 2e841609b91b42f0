package ingest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/stream"
	"hamlet/stream/logtest"
)

// serve serves h on listener until the test, or its bubble, ends.
func serve(t *testing.T, cfg HTTPConfig, listener net.Listener) {
	t.Helper()
	cfg.Token, cfg.Log = "secret", slog.New(slog.DiscardHandler)
	h := NewHTTP(cfg)
	server := &http.Server{Handler: h}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// A poster is one connection, by which a body is sent piece by piece.
type poster struct {
	t    *testing.T
	conn net.Conn
	from *bufio.Reader
}

// post sends the header of a request. Once it returns, the server reads the body:
// the client asked for a word when it may come.
func post(t *testing.T, conn net.Conn, bytes int) *poster {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	p := &poster{t, conn, bufio.NewReader(conn)}
	p.send(fmt.Sprintf("POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"+
		"Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", bytes))
	line, err := p.from.ReadString('\n')
	if err != nil || !strings.Contains(line, " 100 ") {
		t.Fatalf("%q, %v; want that the server waits for the body", line, err)
	}
	if _, err := p.from.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *poster) send(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p.conn, s); err != nil {
		p.t.Fatal(err)
	}
}

// answer returns the status and the body of the server's answer.
func (p *poster) answer() (int, string) {
	p.t.Helper()
	response, err := http.ReadResponse(p.from, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func bodyOf(id string, bytes int) string {
	const form = `{"id":%q,"label":"spam","text":"%s"}`
	return fmt.Sprintf(form, id, strings.Repeat("x", max(1, bytes-len(fmt.Sprintf(form, id, "")))))
}

// More bodies than requests are handled at a time hang; another client is answered,
// and those that hang are not lost.
func TestSlowBodiesKeepNobodyWaiting(t *testing.T) {
	topic := new(logtest.Memory)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, HTTPConfig{Events: topic, Deadline: time.Minute, StallTime: 5 * time.Minute, ReadTimeout: 5 * time.Minute}, listener)
	connect := func(body string) *poster {
		t.Helper()
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return post(t, conn, len(body))
	}
	var slow []*poster
	body := bodyOf("slow", 100)
	for range 20 {
		p := connect(body)
		p.send(body[:50])
		slow = append(slow, p)
	}
	quick := connect(body)
	quick.send(body)
	if code, answer := quick.answer(); code != http.StatusAccepted {
		t.Errorf("beside slow bodies: %d %s", code, answer)
	}
	for i, p := range slow {
		p.send(body[50:])
		if code, answer := p.answer(); code != http.StatusAccepted {
			t.Errorf("slow body %d: %d %s", i, code, answer)
		}
	}
}

// A pipes is a listener whose connections are made in the process, so that time is
// the test's, and a byte that was written has been read.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.done)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// A pause is an appender that acknowledges after some time. Kafka itself does not run
// by a test's clock.
type pause time.Duration

func (p pause) Append(ctx context.Context, _ ...stream.Record) error {
	select {
	case <-time.After(time.Duration(p)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A body has the stall time to begin, then it must keep a rate, and end in time.
func TestBodiesMustMakeProgress(t *testing.T) {
	for _, c := range []struct {
		name     string
		bytes    int
		piece    int // bytes sent each second; 0: none
		code     int
		from, to time.Duration
	}{
		{"nothing comes", 1000, 0, http.StatusRequestTimeout, stallTime, stallTime + time.Second},
		{"a byte a second", 1000, 1, http.StatusRequestTimeout, stallTime, stallTime + time.Second},
		{"just below the rate", 1 << 20, minBodyRate * 3 / 4, http.StatusRequestTimeout, 2 * stallTime, 5 * stallTime},
		{"a small body at leisure", 4, 1, http.StatusBadRequest, 3 * time.Second, stallTime}, // it is no event
		{"twice the rate", 512 << 10, 2 * minBodyRate, http.StatusBadRequest, 15 * time.Second, 18 * time.Second},
		{"without end", maxRequest, 2 * minBodyRate, http.StatusRequestTimeout, time.Minute, time.Minute + time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := newPipes()
				serve(t, HTTPConfig{Events: pause(0)}, listener)
				start := time.Now()
				p := post(t, listener.dial(), c.bytes)
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					piece := strings.Repeat("x", c.piece)
					for left := c.bytes; left > 0 && c.piece > 0; left -= c.piece {
						if _, err := io.WriteString(p.conn, piece[:min(left, c.piece)]); err != nil {
							return // given up
						}
						time.Sleep(time.Second)
					}
				}()
				code, answer := p.answer()
				if took := time.Since(start); code != c.code || took < c.from || took > c.to {
					t.Errorf("%d %s after %v; want %d after %v to %v", code, answer, took, c.code, c.from, c.to)
				}
				p.conn.Close()
				<-sent
			})
		})
	}
}

// The time for a body is not the time for Kafka's answer.
func TestKafkaMayTakeLongerThanABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := newPipes()
		serve(t, HTTPConfig{Events: pause(30 * time.Second), Deadline: 40 * time.Second}, listener)
		body := bodyOf("a", 100)
		p := post(t, listener.dial(), len(body))
		p.send(body)
		if code, answer := p.answer(); code != http.StatusAccepted {
			t.Errorf("%d %s", code, answer)
		}
	})
}

// Bodies take bounded memory, and a small one finds room beside large ones that hang.
func TestBodiesInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := newPipes()
		serve(t, HTTPConfig{Events: pause(0), MaxBytes: 1 << 20, MaxBodies: 3}, listener)
		large, small := bodyOf("large", 900<<10), bodyOf("small", 1000)
		first := post(t, listener.dial(), len(large))
		first.send(large[:len(large)-1])
		second := post(t, listener.dial(), len(large))
		refused := make(chan struct{})
		go func() {
			defer close(refused)
			_, _ = io.WriteString(second.conn, large) // until the server hangs up
		}()
		if code, answer := second.answer(); code != http.StatusTooManyRequests || !strings.Contains(answer, "memory") {
			t.Errorf("a second large body: %d %s", code, answer)
		}
		second.conn.Close()
		<-refused
		third := post(t, listener.dial(), len(small))
		third.send(small)
		if code, answer := third.answer(); code != http.StatusAccepted {
			t.Errorf("a small body: %d %s", code, answer)
		}
		first.send(large[len(large)-1:])
		if code, answer := first.answer(); code != http.StatusAccepted {
			t.Errorf("the first large body: %d %s", code, answer)
		}
		again := post(t, listener.dial(), len(large))
		again.send(large)
		if code, answer := again.answer(); code != http.StatusAccepted {
			t.Errorf("a large body where the first one was: %d %s", code, answer)
		}

		// The places of bodies: three hang, the fourth is refused without its body.
		var hanging []*poster
		for range 3 {
			hanging = append(hanging, post(t, listener.dial(), len(small)))
		}
		conn := listener.dial()
		defer conn.Close()
		fourth := &poster{t, conn, bufio.NewReader(conn)}
		go func() { // a refusal needs no body, and the header may be cut short by it
			_, _ = io.WriteString(conn, "POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"+
				"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\nx")
		}()
		if code, answer := fourth.answer(); code != http.StatusTooManyRequests {
			t.Errorf("a fourth body: %d %s", code, answer)
		}
		for _, p := range hanging {
			p.send(small)
			if code, answer := p.answer(); code != http.StatusAccepted {
				t.Errorf("a body that had hung: %d %s", code, answer)
			}
		}
	})
}

// A refusal does not wait for a slow body.
func TestRefusalsDoNotWaitForTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := newPipes()
		serve(t, HTTPConfig{Events: pause(0)}, listener)
		conn := listener.dial()
		defer conn.Close()
		start := time.Now()
		p := &poster{t, conn, bufio.NewReader(conn)}
		p.send("POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\nContent-Length: 1000\r\n\r\n")
		if code, answer := p.answer(); code != http.StatusUnauthorized || time.Since(start) > 0 {
			t.Errorf("%d %s after %v; want 401 at once", code, answer, time.Since(start))
		}
	})
}

type tenantTokens map[string]string

func (t tenantTokens) OfToken(token string) (string, bool) {
	tenant, ok := t[token]
	return tenant, ok
}

func (t tenantTokens) Default() string { return "isp" }

// A published is an appender that keeps what it gets.
type published struct{ records []stream.Record }

func (p *published) Append(_ context.Context, records ...stream.Record) error {
	p.records = append(p.records, records...)
	return nil
}

// The token of a tenant teaches in that tenant's name alone.
func TestTokensOfTenants(t *testing.T) {
	var kept published
	h := NewHTTP(HTTPConfig{
		Events: &kept, Token: "operator", Tenants: tenantTokens{"a-token": "a", "": "a", "nobody": ""}, TenantsFrom: "http",
		Log: slog.New(slog.DiscardHandler),
	})
	for _, c := range []struct {
		token, fields  string
		code           int
		tenant, source string
	}{
		{"operator", `"tenant":"b","source":"desk"`, http.StatusAccepted, "b", "desk"},
		{"operator", `"of":""`, http.StatusAccepted, "isp", "default"},
		{"a-token", `"of":""`, http.StatusAccepted, "a", "http"},
		{"a-token", `"tenant":"a","source":"http"`, http.StatusAccepted, "a", "http"},
		{"a-token", `"tenant":"b"`, http.StatusForbidden, "", ""},
		{"a-token", `"tenant":"default"`, http.StatusForbidden, "", ""},
		{"a-token", `"source":"desk"`, http.StatusForbidden, "", ""},
		{"operator", `"action":"relearn","of":"0"`, http.StatusAccepted, "isp", "default"},
		{"a-token", `"action":"relearn","of":"0"`, http.StatusAccepted, "a", "http"},
		{"operator", `"action":"relearn","of":"0","own_only":true`, http.StatusBadRequest, "", ""},
		{"a-token", `"action":"relearn","of":"0","own_only":false`, http.StatusBadRequest, "", ""},
		{"operator", `"type":"hamlet.standing.v1","role":"anchor"`, http.StatusBadRequest, "", ""},
		{"nobody", `"of":""`, http.StatusUnauthorized, "", ""},
		{"", `"of":""`, http.StatusUnauthorized, "", ""},
		{"other", `"of":""`, http.StatusUnauthorized, "", ""},
	} {
		kept.records = nil
		server := httptest.NewServer(h)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(`{"id":"1","label":"spam","text":"x",`+c.fields+`}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+c.token)
		request.Header.Set("Content-Type", "application/json")
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		server.Close()
		if response.StatusCode != c.code || len(kept.records) > 0 != (c.code == http.StatusAccepted) {
			t.Errorf("%+v: %s, %d records", c, response.Status, len(kept.records))
			continue
		}
		for _, record := range kept.records {
			e, err := stream.DecodeRecord(record.Headers, record.Value)
			if err != nil || e.Tenant != c.tenant || e.Source != c.source || e.OwnOnly != (c.token == "a-token" && e.Action != stream.Learn) {
				t.Errorf("%+v: %q from %q, %v", c, e.Tenant, e.Source, err)
			}
		}
	}
}
