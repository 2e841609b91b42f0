package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"hamlet/stream"
	"hamlet/stream/mail"
)

// A Lesson is what a client says of a message.
type Lesson int

const (
	LearnSpam Lesson = iota
	LearnHam
	Forget // what was learnt of it
)

func (l Lesson) String() string {
	switch l {
	case LearnSpam:
		return "spam"
	case LearnHam:
		return "ham"
	case Forget:
		return "forget"
	}
	panic(fmt.Sprintf("gateway: lesson %d", int(l)))
}

// learnFailed is the outcome of a label that did not reach the learner's log.
const learnFailed = "failed"

// ErrNotAllowed: the operator does not let clients teach.
var ErrNotAllowed = errors.New("this gateway takes no labels")

// learnTimeout bounds how long a client waits for the learner's log.
const learnTimeout = 10 * time.Second

// A Teacher brings events to the learner, with the trace that ctx carries. Publish returns
// when they are safe.
type Teacher interface {
	Publish(ctx context.Context, events ...stream.Event) error
}

// CanLearn reports whether clients may teach.
func (g *Gateway) CanLearn() bool { return g.Teacher != nil }

// Learn sends a message with the client's label to the learner, as a correction: a label given
// twice is learnt once, and another one takes the place of what this door said before. Forget
// withdraws what the door said of the message. The label's source is the door, and another
// source's labels stay. The label begins a trace, unless ctx carries one. The error is
// [ErrNotAllowed], [ErrTooLarge], mail.ErrEmpty or that of the teacher, wrapped.
func (d *Door) Learn(ctx context.Context, tenant string, message []byte, lesson Lesson) error {
	start := time.Now()
	ctx, trace := traced(ctx)
	err := d.learn(ctx, tenant, message, lesson)
	outcome := "learnt"
	switch {
	case err == nil:
	case errors.Is(err, ErrNotAllowed):
		outcome = "not-allowed"
	case errors.Is(err, ErrTooLarge), errors.Is(err, mail.ErrEmpty):
		outcome = "refused"
	default:
		outcome = learnFailed
		d.warn("labels are lost", "learn", append(trace.LogAttrs(), "door", d.name, "error", err)...)
	}
	d.Log.Debug("gateway: label", "trace", trace.ID(), "door", d.name, "lesson", lesson.String(),
		"outcome", outcome, "took", time.Since(start))
	d.metrics.learnt.WithLabelValues(d.name, lesson.String(), outcome).Inc()
	return err
}

func (d *Door) learn(ctx context.Context, tenant string, message []byte, lesson Lesson) error {
	if d.Teacher == nil {
		return ErrNotAllowed
	}
	ctx, cancel := context.WithTimeout(ctx, learnTimeout)
	defer cancel()
	reduced, err := d.Reduce(ctx, message)
	if err != nil {
		return err
	}
	parsed := mail.Parse(reduced)
	identity := mail.Identity(tenant, &parsed)
	e := stream.Event{
		// Each request is an event of its own: spam, ham and spam again are three.
		ID: identity + "/" + lesson.String() + "/" + rand.Text(), Time: time.Now().UTC(), Source: d.name, Tenant: tenant,
		Action: stream.Correct, Of: identity, OwnOnly: true,
		Body: stream.Body{Kind: stream.Mail, Mail: reduced},
	}
	switch lesson {
	case LearnSpam:
		e.Label = stream.Spam
	case LearnHam:
		e.Label = stream.Ham
	case Forget:
		e.Action = stream.Unlearn
	}
	return d.Teacher.Publish(ctx, e)
}
