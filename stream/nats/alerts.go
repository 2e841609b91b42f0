package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
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

// attemptTimeout bounds one request to JetStream. An answer takes a disk write or two.
const attemptTimeout = 2 * time.Second

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
	conn *natsgo.Conn
	js   jetstream.JetStream
	cfg  AlertsConfig

	mu    sync.Mutex // held while the stream is checked
	known bool       // the stream was right, and no publication has failed since
}

// NewAlerts returns a publisher on conn, which the caller closes.
func NewAlerts(conn *natsgo.Conn, cfg AlertsConfig) (*Alerts, error) {
	if cfg.Replicas < 0 || cfg.Replicas > 5 {
		return nil, fmt.Errorf("alerts: %d replicas: JetStream keeps 1 to 5", cfg.Replicas)
	}
	cfg.Replicas = cmp.Or(cfg.Replicas, 1)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	return &Alerts{conn: conn, js: js, cfg: cfg}, nil
}

// Prepare creates the stream. It corrects an existing one that lacks our subjects,
// recognises copies too briefly or refuses messages when full. It tries until ctx ends.
// Unlike Publish, it fails at once if the server has no JetStream.
func (a *Alerts) Prepare(ctx context.Context) error {
	return a.retry(ctx, "prepare the stream "+AlertStream, func(ctx context.Context) error {
		err := a.ensure(ctx)
		if errors.Is(err, natsgo.ErrNoResponders) {
			return fmt.Errorf("%w: the server has JetStream switched off: add \"jetstream {}\" to its configuration (nats-server -js), "+
				"or go without alerts on NATS: %w", stream.ErrAlerts, err)
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
		if !modelName.MatchString(alert.Model) {
			return fmt.Errorf("%w: model name %q: only a-z, 0-9 and - are allowed", stream.ErrAlerts, clip(alert.Model))
		}
		line, err := alert.AppendJSON(nil)
		if err != nil {
			return fmt.Errorf("%w: %w", stream.ErrAlerts, err)
		}
		if alert.Incident == 0 {
			return fmt.Errorf("%w: an alert of event %d has no incident, so that no copy of it could be told", stream.ErrAlerts, alert.Event)
		}
		for _, subject := range subjectsOf(&alert) {
			m := natsgo.NewMsg(subject)
			m.Header.Set("Content-Type", TypeJSON)
			m.Data = line
			if err := a.publish(ctx, m, messageID(subject, &alert)); err != nil {
				return err
			}
		}
	}
	return nil
}

// publish publishes one message, trying until ctx ends.
func (a *Alerts) publish(ctx context.Context, m *natsgo.Msg, id string) error {
	return a.retry(ctx, "publish alert "+id, func(ctx context.Context) error {
		if err := a.ensure(ctx); err != nil {
			return err
		}
		_, err := a.js.PublishMsg(ctx, m, jetstream.WithMsgID(id), jetstream.WithExpectStream(AlertStream), jetstream.WithRetryAttempts(0))
		if err != nil {
			a.mu.Lock()
			a.known = false // the stream may have been deleted
			a.mu.Unlock()
		}
		return err
	})
}

// ensure creates or corrects the stream, unless known is set.
func (a *Alerts) ensure(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known {
		return nil
	}
	s, err := a.js.Stream(ctx, AlertStream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		_, err = a.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: AlertStream, Description: "what hamlet's learners say about their alarms",
			Subjects: []string{alertSubjects}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, Replicas: a.cfg.Replicas,
			MaxAge: alertAge, MaxBytes: alertBytes, Duplicates: alertDuplicates,
		})
		if err == nil {
			a.cfg.Log.Info("alerts: created the stream", "stream", AlertStream, "kept", alertAge, "duplicates", alertDuplicates)
		}
	case err == nil:
		cfg := s.CachedInfo().Config
		if cfg.Mirror != nil || cfg.Sealed {
			return fmt.Errorf("%w: the stream %s is a mirror or sealed and takes no messages: delete or rename it", stream.ErrAlerts, AlertStream)
		}
		if changes := amend(&cfg); len(changes) > 0 {
			if _, err = a.js.UpdateStream(ctx, cfg); err == nil {
				a.cfg.Log.Warn("alerts: changed the stream, which others had made", "stream", AlertStream, "changed", changes)
			}
		}
	}
	a.known = err == nil
	return err
}

// amend changes in cfg what alerts cannot use, and returns the names of the changes.
func amend(cfg *jetstream.StreamConfig) (changes []string) {
	every := AlertSubject("*", "*")
	if !slices.ContainsFunc(cfg.Subjects, func(s string) bool { return covers(s, every) }) {
		// A stream's subjects must not overlap.
		cfg.Subjects = slices.DeleteFunc(cfg.Subjects, func(s string) bool { return covers(alertSubjects, s) })
		cfg.Subjects = append(cfg.Subjects, alertSubjects)
		changes = append(changes, "subjects")
	}
	if cfg.Discard != jetstream.DiscardOld { // once full, it would take no alert ever again
		cfg.Discard, cfg.DiscardNewPerSubject = jetstream.DiscardOld, false
		changes = append(changes, "what goes when it is full")
	}
	if cfg.Duplicates < alertDuplicates {
		cfg.Duplicates = alertDuplicates
		changes = append(changes, "duplicate window")
		if cfg.MaxAge > 0 && cfg.MaxAge < alertDuplicates { // the window may not exceed the age
			cfg.MaxAge = alertDuplicates
			changes = append(changes, "age")
		}
	}
	if cfg.NoAck {
		cfg.NoAck = false
		changes = append(changes, "acknowledgements")
	}
	return changes
}

// covers reports whether every subject that matches narrow matches wide. In both, * is
// one token and a > at the end one or more.
func covers(wide, narrow string) bool {
	w, n := strings.Split(wide, "."), strings.Split(narrow, ".")
	for i, token := range w {
		switch {
		case i >= len(n):
			return false
		case token == ">":
			return true
		case n[i] == ">", token != "*" && token != n[i]:
			return false
		}
	}
	return len(w) == len(n)
}

// retry runs attempt until it succeeds, fails for good, or ctx ends. The error then
// names the last failure.
func (a *Alerts) retry(ctx context.Context, what string, attempt func(context.Context) error) error {
	var last error
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 50*time.Millisecond, 2*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		once, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		before := a.conn.LastError()
		err := attempt(once)
		if p := a.permanent(err, before); p != nil {
			return struct{}{}, backoff.Permanent(p)
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

// Codes of JetStream's API (server/errors.json of nats-server) that its client
// has no names for.
const (
	jsSubjectsOverlap  = 10065
	jsNotThatStream    = 10060
	jsInvalidConfig    = 10052
	jsMaxBytesRequired = 10113
	jsTooManyStreams   = 10027
	jsBytesOverLimit   = 10122
	jsNoReplicasHere   = 10074
	jsUpdateFailed     = 10069
	jsStoreFailed      = 10077 // such as: maximum bytes exceeded
)

// permanent returns nil if trying again may help. Otherwise its error wraps
// [stream.ErrAlerts] and says what to do. before is the connection's last error before
// the attempt.
func (a *Alerts) permanent(err, before error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, stream.ErrAlerts): // decided where more was known
		return err

	// It was closed by us, or the server refused our name and password twice.
	case errors.Is(err, natsgo.ErrConnectionClosed):
		return fmt.Errorf("%w: the connection was closed for good: %w; check the user name, password, token or credentials file", stream.ErrAlerts, err)

	// The same bytes are refused again.
	case errors.Is(err, natsgo.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return fmt.Errorf("%w: an alert is too large: %w; raise max_payload at the server, or the stream's largest message", stream.ErrAlerts, err)

	// JetStream is there, and not for this account.
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount), errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return fmt.Errorf("%w: the account may not use JetStream: %w; enable it for the account (\"jetstream: enabled\"), or go without alerts on NATS", stream.ErrAlerts, err)

	case errors.As(err, &api):
		switch api.ErrorCode {
		// Another stream has our subjects. It need not drop copies, and nobody would
		// look for alerts there.
		case jsSubjectsOverlap, jsNotThatStream:
			return fmt.Errorf("%w: another stream than %s takes %s: %w; take the subjects from it (nats stream ls --subjects)", stream.ErrAlerts, AlertStream, alertSubjects, err)
		// Limits and settings that an operator chose.
		case jsNoReplicasHere:
			return fmt.Errorf("%w: a server that is alone cannot keep %d replicas of the stream %s: %w; ask for one (--alert-replicas 1), or name a cluster",
				stream.ErrAlerts, a.cfg.Replicas, AlertStream, err)
		case jsInvalidConfig, jsMaxBytesRequired, jsTooManyStreams, jsBytesOverLimit, jsUpdateFailed:
			return fmt.Errorf("%w: the server refuses the stream %s: %w; make it by hand, with subjects %s and a duplicate window of 30 days, or raise the limit",
				stream.ErrAlerts, AlertStream, err, alertSubjects)
		}
		// Every other code may pass: no leader, a full disk, a stream that was just
		// deleted, or created by another learner.
		return nil

	// A request without the right to it gets no answer. The server reports it as the
	// connection's last error.
	case errors.Is(err, context.DeadlineExceeded):
		if last := a.conn.LastError(); denied(last, before) {
			return fmt.Errorf("%w: the user has not the rights: %w; let it publish to $JS.API.STREAM.*.%s and %s, and subscribe to _INBOX.>",
				stream.ErrAlerts, last, AlertStream, alertSubjects)
		}
	}
	// The network, a server that stops or starts, or JetStream between two leaders.
	return nil
}

var permissionsViolation = regexp.MustCompile(`Permissions Violation for (Publish|Subscription) to "([^"]+)"`)

// violation returns what a server refused by err, Publish or Subscription, and its
// subject. It returns "" for any other error.
func violation(err error) (operation, subject string) {
	if !errors.Is(err, natsgo.ErrPermissionViolation) {
		return "", ""
	}
	m := permissionsViolation.FindStringSubmatch(err.Error())
	if m == nil {
		return "", ""
	}
	return m[1], m[2]
}

// denied reports whether last, a connection's last error, is why a request got no
// answer. A connection keeps its last error until it reconnects. So a refused
// publication counts only if it is new and of our subjects. A refused subscription for
// answers always counts: a connection makes it once.
func denied(last, before error) bool {
	operation, subject := violation(last)
	if operation == "Subscription" {
		return strings.HasPrefix(subject, natsgo.InboxPrefix)
	}
	ours := strings.HasPrefix(subject, "$JS.API.STREAM.") && strings.HasSuffix(subject, "."+AlertStream) ||
		strings.HasPrefix(subject, alertPrefix)
	return ours && last != before
}
