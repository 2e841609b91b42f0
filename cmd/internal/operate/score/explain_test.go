package score_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/operate/score"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// A questioned scorer keeps what it was asked last.
type questioned struct {
	wordy
	door, tenant string
	words        int
	mail         []byte
}

func (q *questioned) Score(ctx context.Context, requests []*stream.Event, explain bool) ([]stream.Verdict, error) {
	q.door, q.tenant, q.words, q.mail = questions.Door(ctx), requests[0].Tenant, questions.Words(ctx), slices.Clone(requests[0].Body.Mail)
	return q.wordy.Score(ctx, requests, explain)
}

// A question names its door and tenant, and asks for all words there may be.
func TestExplain(t *testing.T) {
	q := &questioned{}
	url := listen(t, server.RANDOM_PORT)
	serve(t, url, q)
	conn, err := nats.Connect(nats.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	body := stream.Body{Kind: stream.Mail, Mail: []byte("Subject: prize\n\n" + strings.Repeat("hello\n", 20_000))}
	v, err := score.Explain(ctx, conn, "", "eve", "console", &body)
	if err != nil {
		t.Fatal(err)
	}
	if q.door != "console" || q.tenant != "eve" || q.words != questions.MostWords || string(q.mail) != string(body.Mail) || len(body.Mail) > 100_000 || len(v.Words) != 2 || len(v.Reasons) != 2 {
		t.Errorf("asked by %q of %q for %d words about %d bytes: %+v", q.door, q.tenant, q.words, len(q.mail), v)
	}
	if v, err = score.Explain(ctx, conn, "", "", "console", &stream.Body{Kind: stream.Text, Text: "a prize"}); err != nil || v.P != 0.97 {
		t.Errorf("a text: %+v, %v", v, err)
	}
	for _, b := range []stream.Body{
		{}, {Kind: stream.Mail, Mail: []byte(" \n")}, {Kind: stream.Mail, Mail: make([]byte, mail.MaxSize+1)}, {Kind: stream.Text, Text: "\n"},
		{Kind: stream.Text, Text: "a\xff"}, {Kind: stream.Text, Text: strings.Repeat("a", stream.MaxEventSize+1)},
	} {
		if _, err := score.Explain(ctx, conn, "", "", "console", &b); !errors.Is(err, score.ErrBody) {
			t.Errorf("a body of kind %d is asked about: %v", b.Kind, err)
		}
	}
}

// A scorer that answers a question with no verdict is an error for all who ask about one message.
func TestNoVerdict(t *testing.T) {
	url := listen(t, server.RANDOM_PORT)
	conn, err := nats.Connect(nats.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.Subscribe(nats.Subject(questions.Explain, ""), func(m *natsgo.Msg) { _ = m.Respond([]byte("[]")) })
	if err != nil {
		t.Fatal(err)
	}
	const want = "no single verdict"
	body := stream.Body{Kind: stream.Text, Text: "a prize"}
	if _, err := score.Explain(t.Context(), conn, "", "", "console", &body); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Explain: %v", err)
	}
	_, _, err = run(t, "", "--server", url, write(t, "m.eml", "Subject: prize\n\nhello\n"))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("hamlet score: %v", err)
	}
}
