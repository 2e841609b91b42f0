package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
	"hamlet/stream/questions"
)

// The stream of alerts. To see them: nats sub 'hamlet.alerts.incident.>'
const (
	AlertStream   = "HAMLET_ALERTS"
	alertPrefix   = "hamlet.alerts."
	alertSubjects = alertPrefix + ">"
)

// How the stream is created, and the least that an existing one must have.
const (
	// alertDuplicates is how long the server recognises a copy of an alert. A learner
	// that reads older events again publishes their alerts again.
	alertDuplicates = 30 * 24 * time.Hour
	// alertAge is how long alerts are kept: as long as their events.
	alertAge = 90 * 24 * time.Hour
	// alertBytes holds 8,000 alerts of 4 KB under two subjects, with twenty suspects and ten
	// sources each.
	alertBytes = 64 << 20
)

// incidents stands in a subject in the place of a kind: alerts of all kinds and states.
const incidents = "incident"

// AlertSubject returns where a model's alerts of a kind are published, if their state names
// it: "hamlet.alerts.label-noise.default".
func AlertSubject(kind, model string) string { return alertPrefix + kind + "." + model }

// IncidentSubject returns where all of a model's alerts are published, also those that name
// nothing: "hamlet.alerts.incident.default".
func IncidentSubject(model string) string { return AlertSubject(incidents, model) }

// subjectsOf returns the subjects of an alert.
func subjectsOf(a *stream.Alert) []string {
	if stream.NamesKind(a.State) {
		return []string{IncidentSubject(a.Model), AlertSubject(a.Kind, a.Model)}
	}
	return []string{IncidentSubject(a.Model)}
}

// messageID tells the copies of a under a subject. JetStream knows copies in the whole
// stream, so the subject is a part of it.
func messageID(subject string, a *stream.Alert) string { return subject + "/" + a.MessageID() }

// An AlertsConfig tunes an [Alerts]. Zero fields mean the defaults given.
type AlertsConfig struct {
	Replicas int          // of the stream, if it is to be created; default 1
	Log      *slog.Logger // trouble and its end; nil: silent
}

// An Alerts publishes alerts to JetStream, each as a stream.Alert in JSON. The subject of
// incidents has every transition; that of a kind has what names it: raised and cleared.
// Learners create the stream: it keeps 90 days or 64 MiB, and the oldest go first.
//
// The message id is made of subject, incident and transition. The server recognises copies
// for 30 days: a restarted learner may publish an alert again. Delete the stream's messages
// with a model: otherwise a new model of the same name is silent at the event counts of the
// old one's alerts. A server acknowledges before its disk has the message, unless its
// jetstream section says sync_interval: always.
//
// [ReadAlerts] reads the subject of incidents. An Alerts may be used concurrently.
type Alerts struct {
	*store
}

// NewAlerts returns a publisher on conn, which the caller closes.
func NewAlerts(conn *natsgo.Conn, cfg AlertsConfig) (*Alerts, error) {
	s := &store{
		what: "alerts", log: cfg.Log, prefix: alertPrefix, none: stream.ErrAlerts,
		want: jetstream.StreamConfig{
			Name: AlertStream, Description: "what hamlet's learners say about their alarms",
			Subjects: []string{alertSubjects}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, Replicas: cmp.Or(cfg.Replicas, 1),
			MaxAge: alertAge, MaxBytes: alertBytes, Duplicates: alertDuplicates,
		},
		foreign: func(found *jetstream.StreamConfig) error {
			if found.Mirror != nil || found.Sealed {
				return errors.New("it is a mirror or sealed and takes no messages; delete or rename it")
			}
			return nil
		},
		amend:  amendAlerts,
		limits: "make it by hand, with subjects " + alertSubjects + " and a duplicate window of 30 days, or raise the limit",
		rights: "let it publish to $JS.API.STREAM.*." + AlertStream + " and " + alertSubjects + ", and subscribe to _INBOX.>",
	}
	if err := s.open(conn); err != nil {
		return nil, err
	}
	a := &Alerts{s}
	s.special = a.special
	return a, nil
}

// Prepare creates the stream. It corrects an existing one that lacks our subjects,
// recognises copies too briefly or refuses messages when full. It tries until ctx ends.
// Unlike Publish, it fails at once if the server has no JetStream.
func (a *Alerts) Prepare(ctx context.Context) error {
	return a.retry(ctx, "prepare the stream "+AlertStream, func(ctx context.Context) error {
		err := a.attempt(ctx, func(context.Context) error { return nil })
		if errors.Is(err, natsgo.ErrNoResponders) {
			return a.refused(SettingStream, fmt.Errorf("the server has JetStream switched off: "+
				"add \"jetstream {}\" to its configuration (nats-server -js), or go without alerts on NATS: %w", err))
		}
		return err
	})
}

// Publish publishes alerts in order, at the present time, each under its subjects, and
// returns when the server has acknowledged each. It tries until ctx ends or the error wraps
// [stream.ErrAlerts]. After an error publish all again: the server drops copies.
func (a *Alerts) Publish(ctx context.Context, alerts ...stream.Alert) error {
	for i := range alerts {
		alert := alerts[i]
		alert.Time = time.Now().UTC()
		if err := stream.CheckModelName(alert.Model); err != nil {
			return fmt.Errorf("%w: %w", stream.ErrAlerts, err)
		}
		line, err := alert.AppendJSON(nil)
		if err != nil {
			return fmt.Errorf("%w: %w", stream.ErrAlerts, err)
		}
		if alert.Incident == 0 {
			return fmt.Errorf("%w: an alert of event %d has no incident, so that no copy of it could be told",
				stream.ErrAlerts, alert.Event)
		}
		for _, subject := range subjectsOf(&alert) {
			m := natsgo.NewMsg(subject)
			m.Header.Set("Content-Type", questions.JSON)
			m.Data = line
			id := messageID(subject, &alert)
			err := a.retry(ctx, "publish alert "+id, func(ctx context.Context) error {
				return a.attempt(ctx, func(ctx context.Context) error { return a.publish(ctx, m, jetstream.WithMsgID(id)) })
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// amendAlerts changes what alerts cannot use.
func amendAlerts(a *amendment) {
	a.takes(alertSubjects, AlertSubject("*", "*"))
	a.discards(jetstream.DiscardOld) // once full, it would take no alert ever again
	if a.Duplicates < alertDuplicates {
		amend(a, &a.Duplicates, alertDuplicates, "duplicate window")
		if a.MaxAge > 0 { // the window may not exceed the age
			amend(a, &a.MaxAge, max(a.MaxAge, alertDuplicates), "age")
		}
	}
	a.acknowledges()
}

// retry runs attempt until it succeeds, is refused, or ctx ends. The error then names the last failure.
func (a *Alerts) retry(ctx context.Context, what string, attempt func(context.Context) error) error {
	var last error
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 50*time.Millisecond, 2*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := attempt(ctx)
		if err != nil && a.conn.IsClosed() { // by us, or the server refused our name and password twice
			err = a.refused(SettingUser, fmt.Errorf("the connection was closed for good: %w; "+
				"check the user name, password, token or credentials file", natsgo.ErrConnectionClosed))
		}
		if errors.Is(err, ErrRefused) {
			return struct{}{}, backoff.Permanent(err)
		}
		if err != nil && (ctx.Err() == nil || last == nil) {
			last = err
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && last != nil && !errors.Is(err, stream.ErrAlerts):
		return fmt.Errorf("%s: %w (last failure: %w)", what, context.Cause(ctx), last)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// special explains what other streams do not have, or have otherwise.
func (a *Alerts) special(err, _ error) error {
	switch {
	case errors.Is(err, natsgo.ErrNoResponders): // the server starts
		return err
	case isTooLarge(err):
		return a.refused("", fmt.Errorf("an alert is too large: %w; "+
			"raise max_payload at the server, or the stream's largest message", err))
	case isNotEnabled(err):
		return a.refused(SettingStream, fmt.Errorf("the account may not use JetStream: %w; "+
			"enable it for the account (\"jetstream: enabled\"), or go without alerts on NATS", err))
	}
	return nil
}

// ReadAlerts yields a model's alerts from a time on (zero: all), as far as the stream has
// come when it begins, in the order in which they were published. It yields each transition
// of an incident once, and alerts of programs without incidents. One that cannot be read is
// yielded as a [MessageError], and the next ones follow; after any other error nothing
// follows. Without a stream it yields nothing.
func ReadAlerts(ctx context.Context, conn *natsgo.Conn, model string, since time.Time) iter.Seq2[stream.Alert, error] {
	return func(yield func(stream.Alert, error) bool) {
		alerts := stored{stream: AlertStream, subjects: []string{AlertSubject("*", model)}, since: since, what: "alerts"}
		err := alerts.each(ctx, conn, func(m jetstream.Msg, sequence uint64) bool {
			a, err := stream.DecodeAlert(m.Data())
			if err != nil {
				a, err = stream.Alert{}, &MessageError{Sequence: sequence, Err: err}
			}
			// What has an incident stands under the incidents' subject too.
			again := a.Incident != 0 && m.Subject() != IncidentSubject(model)
			return again || yield(a, err)
		})
		if err != nil {
			yield(stream.Alert{}, fmt.Errorf("read the alerts %s: %w", AlertStream, err))
		}
	}
}

// AlertsEnd returns the sequence of the newest message of the stream of alerts, and whether there is such
// a stream: learners that publish alerts make it when they start. Where the sequence has not changed, ReadAlerts
// finds what it found before.
func AlertsEnd(ctx context.Context, conn *natsgo.Conn) (end uint64, kept bool, err error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return 0, false, err
	}
	state, err := streamState(ctx, js, AlertStream, "alerts")
	if err == nil && state.LastSeq == 0 {
		if _, err = js.Stream(ctx, AlertStream); errors.Is(err, jetstream.ErrStreamNotFound) {
			return 0, false, nil
		}
	}
	if err != nil {
		return 0, false, fmt.Errorf("ask for the stream %s: %w", AlertStream, err)
	}
	return state.LastSeq, true, nil
}
