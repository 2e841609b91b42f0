package nats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"hamlet/stream"
	"hamlet/stream/questions"
)

// ErrNoServer says that the connection has no server at present. It connects by itself
// when there is one.
var ErrNoServer = errors.New("no nats server is reached")

// defaultTimeout is how long a client waits if its context has no deadline: the
// service's Timeout plus the network.
const defaultTimeout = 10 * time.Second

// A Client sends requests to the scorers of one model. It may be used concurrently.
type Client struct {
	conn  *natsgo.Conn
	model string
}

// NewClient returns a client for model (empty: the default one) on conn, which the
// caller closes.
func NewClient(conn *natsgo.Conn, model string) (*Client, error) {
	model = cmp.Or(model, DefaultModel)
	if err := stream.CheckModelName(model); err != nil {
		return nil, err
	}
	return &Client{conn: conn, model: model}, nil
}

// Ask implements [questions.Asker]. The error wraps [questions.ErrNoAnswerer] if no scorer listens
// and [ErrNoServer] while there is no server, or is that of the connection or of ctx.
func (c *Client) Ask(ctx context.Context, q questions.Question) ([]stream.Verdict, error) {
	endpoint := questions.Score
	if q.Explain {
		endpoint = questions.Explain
	}
	from, refusal := headerOf(&q)
	if refusal != nil {
		return nil, refusal
	}
	m := natsgo.NewMsg(Subject(endpoint, c.model))
	m.Header.Set("Content-Type", q.ContentType)
	from.set(m.Header)
	m.Data = q.Body
	data, err := c.ask(ctx, m)
	if err != nil {
		return nil, err
	}
	verdicts, err := stream.DecodeVerdicts(data)
	if err != nil {
		return nil, fmt.Errorf("ask on %s: the answer has no verdicts: %w", m.Subject, err)
	}
	return verdicts, nil
}

// Info asks which model is served. Of several scorers one answers.
func (c *Client) Info(ctx context.Context) (stream.Info, error) {
	m := natsgo.NewMsg(Subject(questions.Info, c.model))
	data, err := c.ask(ctx, m)
	if err != nil {
		return stream.Info{}, err
	}
	var info stream.Info
	if err := json.Unmarshal(data, &info); err != nil {
		return stream.Info{}, fmt.Errorf("ask on %s: the answer is no description of a model: %w", m.Subject, err)
	}
	return info, nil
}

// ask sends m and returns the answer's body.
func (c *Client) ask(ctx context.Context, m *natsgo.Msg) ([]byte, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
	}
	switch {
	case c.conn.IsClosed():
		return nil, fmt.Errorf("ask on %s: %w", m.Subject, natsgo.ErrConnectionClosed)
	case !c.conn.IsConnected():
		if last := c.conn.LastError(); last != nil { // such as a wrong password
			return nil, fmt.Errorf("ask on %s: %w: %v", m.Subject, ErrNoServer, last)
		}
		return nil, fmt.Errorf("ask on %s: %w", m.Subject, ErrNoServer)
	}
	if trace := stream.ContextTrace(ctx); trace != "" {
		m.Header.Set(stream.HeaderTrace, string(trace))
	}
	answer, err := c.conn.RequestMsgWithContext(ctx, m)
	switch {
	case err == nil:
	case errors.Is(err, natsgo.ErrNoResponders):
		return nil, fmt.Errorf("%w on %s at %s: start a scorer for the model %s there, or name another model or server",
			questions.ErrNoAnswerer, m.Subject, c.conn.ConnectedUrlRedacted(), c.model)
	case errors.Is(err, natsgo.ErrMaxPayload):
		return nil, &questions.Refusal{Code: questions.TooLarge, Text: fmt.Sprintf("the request has %d bytes, "+
			"the server carries %d: ask about fewer messages at once", len(m.Data), c.conn.MaxPayload())}
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("ask on %s: no answer in time; the scorer is busy or has just stopped, ask again: %w",
			m.Subject, err)
	default:
		return nil, fmt.Errorf("ask on %s: %w", m.Subject, err)
	}
	if text := answer.Header.Get(micro.ErrorHeader); text != "" {
		code, err := strconv.Atoi(answer.Header.Get(micro.ErrorCodeHeader))
		if err != nil {
			code = questions.Internal
		}
		return nil, &questions.Refusal{Code: code, Text: text}
	}
	return answer.Data, nil
}

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
