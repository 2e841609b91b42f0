package score

import (
	"context"
	"errors"
	"fmt"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/nats"
)

// Explain asks a scorer of a model about one mail, for its reasons and as many words as it gives.
// The question comes in by a door, which the journal names. It returns the mail as the
// scorer read it: reduced.
func Explain(ctx context.Context, conn *natsgo.Conn, model, tenant, door string, raw []byte) (stream.Verdict, []byte, error) {
	client, err := nats.NewClient(conn, model)
	if err != nil {
		return stream.Verdict{}, nil, err
	}
	reduced, err := mail.Reduce(raw)
	if err != nil {
		return stream.Verdict{}, nil, fmt.Errorf("read the message: %w", err)
	}
	verdicts, err := client.For(tenant, door).Words(nats.MostWords).Score(ctx, reduced, nats.TypeMail, true)
	if err == nil && len(verdicts) != 1 {
		err = errors.New("the scorer answers no single verdict")
	}
	if err != nil {
		return stream.Verdict{}, reduced, err
	}
	return verdicts[0], reduced, nil
}
