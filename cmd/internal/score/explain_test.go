package score_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hamlet/cmd/internal/score"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// A questioned scorer keeps what it was asked last.
type questioned struct {
	wordy
	door, tenant string
	words        int
	mail         []byte
}

func (q *questioned) Score(ctx context.Context, requests []*stream.Event, explain bool) ([]stream.Verdict, error) {
	q.door, q.tenant, q.words, q.mail = nats.Door(ctx), requests[0].Tenant, nats.Words(ctx), slices.Clone(requests[0].Body.Mail)
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
	v, reduced, err := score.Explain(ctx, conn, "", "eve", "console", []byte("Subject: prize\n\nhello\n"))
	if err != nil {
		t.Fatal(err)
	}
	if q.door != "console" || q.tenant != "eve" || q.words != nats.MostWords || string(q.mail) != string(reduced) || len(v.Words) != 2 || len(v.Reasons) != 2 {
		t.Errorf("asked by %q of %q for %d words about %q: %+v", q.door, q.tenant, q.words, q.mail, v)
	}
	if _, _, err := score.Explain(ctx, conn, "", "", "console", []byte(" \n")); err == nil {
		t.Error("an empty message is asked about")
	}
}
