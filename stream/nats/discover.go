package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// A Member is a scorer that discovery has found.
type Member struct {
	ID       string // of the service's instance
	Numerics string // up to which it reads models: MetadataNumerics; "": it does not say
}

// discovered is how long Members waits for one more answer.
const discovered = 500 * time.Millisecond

// mostMembers bounds the answers that Members reads.
const mostMembers = 4096

// Members asks the scorers of a model to name themselves, and returns those that have answered
// when none has for half a second. A scorer that is slower is missing; without the right to ask,
// all are.
func Members(ctx context.Context, conn *natsgo.Conn, model string) ([]Member, error) {
	inbox := conn.NewRespInbox()
	answers, err := conn.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("ask for the scorers: %w", err)
	}
	defer func() { _ = answers.Unsubscribe() }()
	subject, err := micro.ControlSubject(micro.InfoVerb, ServiceName, "")
	if err == nil {
		err = conn.PublishRequest(subject, inbox, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the scorers: %w", err)
	}
	var all []Member
	for range mostMembers {
		waiting, cancel := context.WithTimeout(ctx, discovered)
		answer, err := answers.NextMsgWithContext(waiting)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, natsgo.ErrNoResponders):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("ask for the scorers: %w", err)
		}
		var info micro.Info
		if json.Unmarshal(answer.Data, &info) != nil || info.Metadata["model"] != model {
			continue // of another model, or no answer at all
		}
		all = append(all, Member{ID: info.ID, Numerics: info.Metadata[MetadataNumerics]})
	}
	return all, nil
}
