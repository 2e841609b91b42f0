package nats_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
	"hamlet/stream/nats"
)

// A heard is a log that may be read while others write it.
type heard struct {
	mu  sync.Mutex
	log bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(p)
}

// A client's trace comes to the scorer and into the service's log. A malformed one does not,
// and the request is answered all the same.
func TestTrace(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	trace := stream.ParseTrace("00-" + id + "-b7ad6b7169203331-01")
	var said heard
	server := startServer(t)
	_, stop := serve(t, connect(t, server), scorer{}, nats.ServiceConfig{Log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	conn := connect(t, server)
	if _, err := client(t, conn, "").Score(stream.WithTrace(patience(t), trace), []byte("x"), nats.TypeText, false); err != nil {
		t.Fatal(err)
	}
	m := natsgo.NewMsg(nats.Subject(nats.Score, ""))
	m.Header.Set("Content-Type", nats.TypeText)
	m.Header.Set(stream.HeaderTrace, "00-mallory")
	m.Data = []byte("x")
	if answer, err := conn.RequestMsgWithContext(patience(t), m); err != nil || answer.Header.Get("Nats-Service-Error") != "" {
		t.Fatal(answer, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	said.mu.Lock()
	defer said.mu.Unlock()
	if log := said.log.String(); !strings.Contains(log, `msg="scoring service: answered" trace=`+id+" endpoint=score code=200") || strings.Contains(log, "mallory") {
		t.Errorf("the log says\n%s", log)
	}
}
