package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hamlet/stream"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// MostReplicas is JetStream's own bound of a stream's replicas.
const MostReplicas = 5

// attemptTimeout bounds one request to JetStream. An answer takes a disk write or two.
const attemptTimeout = 2 * time.Second

// ErrRefused: the server does not take it, and will not until somebody changes the server or a setting.
// The error is a [RefusedError], and its text says what to change. Try again after minutes.
//
// What is published to a stream may also be [stream.ErrTooLarge], or [stream.ErrFull] where the stream
// drops nothing: go on without it.
var ErrRefused = errors.New("jetstream refuses")

// A RefusedError is why a server refuses a stream, or what is published to it.
type RefusedError struct {
	Stream  string
	Setting Setting // that helps too; "": none does
	Err     error   // says what to change at the server
}

func (e *RefusedError) Error() string        { return e.Err.Error() }
func (e *RefusedError) Unwrap() error        { return e.Err }
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// A Setting is what an operator chooses about a stream.
type Setting string

const (
	SettingStream   Setting = "stream" // that there is one
	SettingReplicas Setting = "replicas"
	SettingBytes    Setting = "bytes"
	SettingUser     Setting = "user" // who connects
)

// A store is a stream of JetStream that hamlet makes and writes to. The first attempt makes the
// stream, or gives an existing one what hamlet promises. After a failure the next attempt looks at
// the stream again, because somebody may have deleted it. The methods may be called concurrently.
type store struct {
	what   string                 // it is, for errors and logs
	log    *slog.Logger           // nil: silent
	none   error                  // what a refusal means
	want   jetstream.StreamConfig // of a new stream
	prefix string                 // of the subjects that are published to
	theirs bool                   // somebody else makes the stream

	foreign func(*jetstream.StreamConfig) error // why an existing stream is not hamlet's; nil: any is
	amend   func(*amendment)                    // an existing stream; nil: it gets what want has

	// special says what to do about err in words of this store's own; nil: explain has the words.
	special func(err, refusal error) error
	older   bool // a refusal that is older than the attempt explains it too: several writers share the connection

	limits string // what to do where the server refuses the stream; "": raise its limit
	rights string // what to do where the user lacks rights

	conn *natsgo.Conn
	js   jetstream.JetStream

	mu    sync.Mutex // held while the stream is looked at
	known bool       // the stream was right, and nothing has failed since; guarded by mu
}

// open gives a store its connection, which the caller closes. It asks the server for nothing.
func (s *store) open(conn *natsgo.Conn) (err error) {
	if n := s.want.Replicas; n < 1 || n > MostReplicas {
		return fmt.Errorf("%s: %d replicas: JetStream keeps 1 to %d", s.what, n, MostReplicas)
	}
	s.conn, s.log = conn, cmp.Or(s.log, slog.New(slog.DiscardHandler))
	if s.js, err = jetstream.New(conn); err != nil {
		return fmt.Errorf("%s: %w", s.what, err)
	}
	return nil
}

// attempt makes the stream right and then does what is wanted: once, for at most two seconds.
func (s *store) attempt(ctx context.Context, do func(context.Context) error) error {
	if !s.conn.IsConnected() {
		s.forget()
		return fmt.Errorf("%s: %w", s.what, ErrNoServer)
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	before := s.conn.LastError()
	err := s.ensure(ctx)
	if err == nil {
		err = do(ctx)
	}
	if err == nil {
		return nil
	}
	if err = s.explain(err, before); !errors.Is(err, stream.ErrTooLarge) && !errors.Is(err, stream.ErrFull) {
		s.forget()
	}
	return err
}

// publish publishes a message to the store's stream, and to no other.
func (s *store) publish(ctx context.Context, m *natsgo.Msg, opts ...jetstream.PublishOpt) error {
	opts = append(opts, jetstream.WithExpectStream(s.want.Name), jetstream.WithRetryAttempts(0))
	_, err := s.js.PublishMsg(ctx, m, opts...)
	return err
}

// forget makes the next attempt look at the stream.
func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = false
}

// ensure makes or amends the stream, unless known.
func (s *store) ensure(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known || s.theirs {
		return nil
	}
	found, err := s.js.Stream(ctx, s.want.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		if _, err = s.js.CreateStream(ctx, s.want); err == nil {
			s.log.Info(s.what+": created the stream", "stream", s.want.Name, "kept", s.want.MaxAge, "bytes", s.want.MaxBytes)
		}
	case err == nil:
		cfg := found.CachedInfo().Config
		if s.foreign != nil {
			if err := s.foreign(&cfg); err != nil {
				return s.refused(SettingUser, fmt.Errorf("the stream %s is not hamlet's: %w", s.want.Name, err))
			}
		}
		a := amendment{StreamConfig: &cfg}
		if s.amend != nil {
			s.amend(&a)
		} else {
			a.follow(&s.want)
		}
		if len(a.changes) > 0 {
			if _, err = s.js.UpdateStream(ctx, cfg); err == nil {
				s.log.Info(s.what+": changed the stream", "stream", cfg.Name, "changed", a.changes,
					"kept", cfg.MaxAge, "bytes", cfg.MaxBytes)
			}
		}
	}
	s.known = err == nil
	return err
}

// An amendment is what hamlet changes in the configuration of a stream.
type amendment struct {
	*jetstream.StreamConfig
	changes []string // their names
}

// amend changes a field to a value, unless it has it.
func amend[T comparable](a *amendment, field *T, value T, name string) {
	if *field != value {
		*field = value
		a.changes = append(a.changes, name)
	}
}

// follow gives the stream what want has: its first subject, its bounds, and what goes when it is full.
func (a *amendment) follow(want *jetstream.StreamConfig) {
	a.takes(want.Subjects[0], want.Subjects[0])
	a.discards(want.Discard)
	if a.MaxAge != want.MaxAge {
		a.MaxAge, a.Duplicates = want.MaxAge, want.Duplicates
		a.changes = append(a.changes, "age")
	}
	amend(a, &a.MaxBytes, want.MaxBytes, "bytes")
	amend(a, &a.AllowDirect, a.AllowDirect || want.AllowDirect, "direct reads")
	a.acknowledges()
}

// takes makes the stream take subjects, if no subject of it covers those that are needed.
func (a *amendment) takes(subjects, needed string) {
	if !slices.ContainsFunc(a.Subjects, func(s string) bool { return covers(s, needed) }) {
		// A stream's subjects must not overlap.
		a.Subjects = append(slices.DeleteFunc(a.Subjects, func(s string) bool { return covers(subjects, s) }), subjects)
		a.changes = append(a.changes, "subjects")
	}
}

func (a *amendment) discards(policy jetstream.DiscardPolicy) {
	if a.Discard != policy {
		a.Discard, a.DiscardNewPerSubject = policy, false
		a.changes = append(a.changes, "what goes when it is full")
	}
}

func (a *amendment) acknowledges() { amend(a, &a.NoAck, false, "acknowledgements") }

// duplicates returns for how long a stream of an age knows copies.
func duplicates(age time.Duration) time.Duration { return min(2*time.Minute, age) }

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

// Codes of JetStream's API (server/errors.json of nats-server) that its client
// has no names for.
const (
	jsSubjectsOverlap   = 10065
	jsNotThatStream     = 10060
	jsInvalidConfig     = 10052
	jsMaxBytesRequired  = 10113
	jsTooManyStreams    = 10027
	jsBytesOverLimit    = 10122
	jsNoReplicasHere    = 10074
	jsUpdateFailed      = 10069
	jsWrongLastSequence = 10071
	jsStoreFailed       = 10077 // such as: maximum bytes exceeded
)

// isAPI reports whether err is an answer of JetStream with one of the codes.
func isAPI(err error, codes ...jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode)
}

// isOverlap reports whether another stream has our subjects.
func isOverlap(err error) bool { return isAPI(err, jsSubjectsOverlap, jsNotThatStream) }

// isLimit reports whether a limit or a setting that an operator chose refuses the stream.
func isLimit(err error) bool {
	return isAPI(err, jsInvalidConfig, jsMaxBytesRequired, jsTooManyStreams, jsBytesOverLimit, jsUpdateFailed)
}

// isTooLarge reports whether the same bytes will be refused again.
func isTooLarge(err error) bool {
	return errors.Is(err, natsgo.ErrMaxPayload) || errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum)
}

// isFull reports whether a stream that discards new messages has no room.
func isFull(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jsStoreFailed && strings.Contains(api.Description, "maximum")
}

// isNotEnabled reports whether JetStream is there, and not for this account.
func isNotEnabled(err error) bool {
	return errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount)
}

// refused returns an error that says why the server refuses, and what to change there.
func (s *store) refused(help Setting, why error) error {
	return &RefusedError{s.want.Name, help, fmt.Errorf("%w: %w", s.none, why)}
}

// explain says what to do about err. before is the connection's last error before the attempt.
func (s *store) explain(err, before error) error {
	refusal := s.refusal(err, before)
	if s.special != nil {
		if special := s.special(err, refusal); special != nil {
			return special
		}
	}
	switch {
	case errors.Is(err, ErrRefused), errors.Is(err, stream.ErrTooLarge): // decided where more was known
		return err
	case isTooLarge(err):
		return fmt.Errorf("%s: %w: %w", s.what, stream.ErrTooLarge, err)
	case isFull(err):
		return fmt.Errorf("%s: %w: %w", s.what, stream.ErrFull, err)
	case errors.Is(err, natsgo.ErrNoResponders), isNotEnabled(err):
		return s.refused(SettingStream,
			fmt.Errorf("the server has no JetStream for this account: %w; switch it on (nats-server -js)", err))
	case isOverlap(err):
		return s.refused(SettingUser, fmt.Errorf("another stream than %s takes %s: %w; "+
			"take the subjects from it (nats stream ls --subjects), or use another account",
			s.want.Name, s.want.Subjects[0], err))
	case isAPI(err, jsNoReplicasHere):
		return s.refused(SettingReplicas, fmt.Errorf("a server that is alone cannot keep %d replicas of the stream %s: %w; "+
			"name a cluster, or ask for one", s.want.Replicas, s.want.Name, err))
	case isLimit(err):
		return s.refused(SettingBytes, fmt.Errorf("the server refuses the stream %s: %w; %s",
			s.want.Name, err, cmp.Or(s.limits, "raise the server's limit")))
	case refusal != nil:
		return s.refused(SettingUser, fmt.Errorf("the user has not the rights: %w; %s", refusal, s.rights))
	}
	return fmt.Errorf("%s: %w", s.what, err)
}

// refusal returns the server's refusal that is why an attempt failed by err, or nil. A request
// without the right to it gets no answer. The server reports it as the connection's last error,
// which a connection keeps until it reconnects. So a refused publication counts only if it is new.
// A refused subscription for answers always counts: a connection makes it once.
func (s *store) refusal(err, before error) error {
	last := s.conn.LastError()
	operation, _ := violation(last)
	fresh := last != before || operation == "Subscription" || s.older
	if errors.Is(err, context.DeadlineExceeded) && fresh && refuses(last, s.want.Name, s.prefix) {
		return last
	}
	return nil
}

// refuses reports whether a connection's last error is a refusal of what is done with a stream: to
// hear answers, to ask for the stream, or to publish to subjects that begin with prefix.
func refuses(last error, stream, prefix string) bool {
	operation, subject := violation(last)
	if operation == "Subscription" {
		return strings.HasPrefix(subject, natsgo.InboxPrefix)
	}
	return prefix != "" && strings.HasPrefix(subject, prefix) || strings.Contains(subject+".", "."+stream+".")
}

var permissionsViolation = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`Permissions Violation for (Publish|Subscription) to "([^"]+)"`)
})

// violation returns what a server refused by err, Publish or Subscription, and its
// subject. It returns "" for any other error.
func violation(err error) (operation, subject string) {
	if !errors.Is(err, natsgo.ErrPermissionViolation) {
		return "", ""
	}
	m := permissionsViolation().FindStringSubmatch(err.Error())
	if m == nil {
		return "", ""
	}
	return m[1], m[2]
}
