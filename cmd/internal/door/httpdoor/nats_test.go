package httpdoor

import (
	"context"
	"errors"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"hamlet/stream"
	"hamlet/stream/nats"
)

// A scorer answers on NATS as fakeClient does.
type scorer struct{}

func (scorer) Score(_ context.Context, requests []*stream.Event, explain bool) ([]stream.Verdict, error) {
	var verdicts []stream.Verdict
	for _, e := range requests {
		verdicts = append(verdicts, verdict(e, explain))
	}
	return verdicts, nil
}

func (scorer) Info(context.Context) (stream.Info, error) {
	return stream.Info{Model: model, Events: 7, Numerics: "n"}, nil
}

// natsAnswer returns the bytes of an answer.
func natsAnswer(ctx context.Context, conn *natsgo.Conn, endpoint, kind, body string) (string, error) {
	m := natsgo.NewMsg(nats.Subject(endpoint, ""))
	m.Header.Set("Content-Type", kind)
	m.Data = []byte(body)
	answer, err := conn.RequestMsgWithContext(ctx, m)
	if err != nil {
		return "", err
	}
	if text := answer.Header.Get(micro.ErrorHeader); text != "" {
		return "", errors.New(text)
	}
	return string(answer.Data), nil
}
