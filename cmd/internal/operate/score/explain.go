package score

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// Explain asks a scorer of a model about a tenant's mail or text, for its reasons and as many
// words as it gives. The question comes in by a door. Explain reduces a mail in body, as the
// scorer reads it. An error about the body wraps [ErrBody].
func Explain(ctx context.Context, conn *natsgo.Conn, model, tenant, door string,
	body *stream.Body) (stream.Verdict, error) {
	asked, contentType := []byte(body.Text), questions.Text
	switch {
	case body.Kind == stream.Mail:
		var err error
		if body.Mail, err = mail.Reduce(body.Mail); err != nil {
			return stream.Verdict{}, fmt.Errorf("%w: %w", ErrBody, err)
		}
		asked, contentType = body.Mail, questions.Mail
	case body.Kind != stream.Text:
		return stream.Verdict{}, fmt.Errorf("%w: neither a mail nor a text", ErrBody)
	case len(bytes.TrimSpace(asked)) == 0:
		return stream.Verdict{}, fmt.Errorf("%w: the text is empty", ErrBody)
	case len(asked) > stream.MaxEventSize:
		return stream.Verdict{}, fmt.Errorf("%w: the text has more than %d bytes", ErrBody, stream.MaxEventSize)
	case !utf8.Valid(asked):
		return stream.Verdict{}, fmt.Errorf("%w: the text is not UTF-8", ErrBody)
	}
	return Ask(ctx, conn, model, questions.Question{
		Body: asked, ContentType: contentType, Explain: true, Tenant: tenant, Door: door, Words: questions.MostWords,
	})
}

// Ask asks a scorer of a model about one message.
func Ask(ctx context.Context, conn *natsgo.Conn, model string, q questions.Question) (stream.Verdict, error) {
	client, err := nats.NewClient(conn, model)
	if err != nil {
		return stream.Verdict{}, err
	}
	return ask(ctx, client, q)
}

func ask(ctx context.Context, client *nats.Client, q questions.Question) (stream.Verdict, error) {
	verdicts, err := client.Ask(ctx, q)
	if err == nil && len(verdicts) != 1 {
		err = errors.New("the scorer answers no single verdict")
	}
	if err != nil {
		return stream.Verdict{}, err
	}
	return verdicts[0], nil
}

// Info asks a scorer of a model about itself.
func Info(ctx context.Context, conn *natsgo.Conn, model string) (stream.Info, error) {
	client, err := nats.NewClient(conn, model)
	if err != nil {
		return stream.Info{}, err
	}
	return client.Info(ctx)
}

// ErrBody says that a message cannot be asked about.
var ErrBody = errors.New("this cannot be scored")
