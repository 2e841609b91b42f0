package nats_test

import (
	"log/slog"
	"strings"
	"testing"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
	"hamlet/stream/servertest"
)

// A client's trace comes to the scorer and into the service's log. A malformed one does not,
// and the request is answered all the same.
func TestTrace(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	trace := stream.ParseTrace("00-" + id + "-b7ad6b7169203331-01")
	var said servertest.Buffer
	server := startServer(t)
	_, stop := serve(t, connect(t, server), scorer{}, nats.ServiceConfig{Log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	conn := connect(t, server)
	if _, err := client(t, conn, "").Ask(stream.WithTrace(patience(t), trace), questions.Question{Body: []byte("x"), ContentType: questions.Text}); err != nil {
		t.Fatal(err)
	}
	m := natsgo.NewMsg(nats.Subject(questions.Score, ""))
	m.Header.Set("Content-Type", questions.Text)
	m.Header.Set(stream.HeaderTrace, "00-mallory")
	m.Data = []byte("x")
	if answer, err := conn.RequestMsgWithContext(patience(t), m); err != nil || answer.Header.Get("Nats-Service-Error") != "" {
		t.Fatal(answer, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if log := said.String(); !strings.Contains(log, `msg="scoring service: answered" trace=`+id+" endpoint=score code=200") || strings.Contains(log, "mallory") {
		t.Errorf("the log says\n%s", log)
	}
}
