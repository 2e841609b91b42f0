package score_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/algos/model"
	"hamlet/cmd/internal/operate/score"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/scorer"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
)

func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func startNATS(t *testing.T) *natsgo.Conn {
	t.Helper()
	server, err := embedded.StartNATS(embedded.NATSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	conn, err := nats.Connect(nats.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// startScorer runs a scorer whose model has learnt 200 mails: prizes are spam, meetings are not.
// It writes the journal and keeps mail.
func startScorer(t *testing.T, conn *natsgo.Conn) {
	t.Helper()
	store, err := redis.New(redis.Config{Addr: miniredis.RunT(t).Addr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	m, err := model.New(model.Config{TableBits: 12})
	if err != nil {
		t.Fatal(err)
	}
	var position state.Position
	for i := range 200 {
		raw := fmt.Sprintf("From: ann@office.example\nSubject: meeting %d\n\nThe agenda of the meeting is at https://office.example/a%d\n", i, i)
		if i%2 == 0 {
			raw = fmt.Sprintf("From: win@prize.example\nSubject: prize %d!!!\n\nClaim your prize at https://prize.example/p%d now\n", i, i)
		}
		e := stream.Event{ID: fmt.Sprint(i), Source: "test", Label: stream.Ham, Body: stream.Body{Kind: stream.Mail, Mail: []byte(raw)}}
		if i%2 == 0 {
			e.Label = stream.Spam
		}
		ex, _, err := example.Of(&e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Apply(&ex); err != nil {
			t.Fatal(err)
		}
		position = position.Advance(position.Next, nil, []byte(e.ID))
	}
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := store.Seize(patience(t), "w")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Save(patience(t), &state.Checkpoint{Schema: 1, Numerics: m.Numerics(), Config: m.Config().JSON(), Epoch: lease.Epoch,
		Events: m.Events(), Position: position, Model: b, Saved: time.Now().UTC()}); err != nil {
		t.Fatal(err)
	}
	journal, err := nats.NewJournal(conn, nats.JournalConfig{})
	if err != nil {
		t.Fatal(err)
	}
	questions, err := nats.NewService(conn, nats.ServiceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := scorer.New(scorer.Config{Questions: questions, Store: store, Journal: journal})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-s.Listening():
	case <-patience(t).Done():
		t.Fatal("the scorer does not listen")
	}
}

// A reader asks the page for things.
type reader struct {
	t       *testing.T
	handler http.Handler
	name    string
	role    access.Role
}

func newReader(t *testing.T, cfg score.Config) *reader {
	site := page.NewSite(page.Config{Model: "default", Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(site.Close)
	if cfg.Bound == 0 {
		cfg.Bound = 30 * time.Second // machines are noisy
	}
	site.Add(score.Page(site, cfg))
	return &reader{t, site.Handler(), "ann", access.Look}
}

func (r *reader) do(request *http.Request) (int, string) {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, request.WithContext(access.WithUser(patience(r.t), access.User{Name: r.name, Role: r.role, FormToken: "token"})))
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return w.Code, string(b)
}

func (r *reader) get(path string) (int, string) {
	r.t.Helper()
	return r.do(httptest.NewRequest(http.MethodGet, path, nil))
}

// paste sends the form with these fields. The field "file" is sent as a file.
func (r *reader) paste(fields map[string]string) (int, string) {
	r.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for name, value := range fields {
		w, err := form.CreateFormField(name)
		if name == "file" {
			w, err = form.CreateFormFile(name, `"><script>alert(1)</script>.eml`)
		}
		if err == nil {
			_, err = io.WriteString(w, value)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		r.t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "/why", &b)
	request.Header.Set("Content-Type", form.FormDataContentType())
	return r.do(request)
}
