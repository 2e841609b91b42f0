package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"hamlet/cmd/internal/process/tokens"
	"hamlet/stream"
	"hamlet/stream/mail"
)

const (
	contentTypeNDJSON = "application/x-ndjson"
	headerOwnOnly     = "Ce-Ownonly" // CloudEvents' spelling of Event.OwnOnly over HTTP
	maxRequest        = 40 << 20     // bytes; one mail of 25 MB in base64 fits
	maxRequestEvents  = 10_000
)

// A body that arrives too slowly gets 408. It has stallTime, and a second more for each
// minBodyRate bytes that have arrived, but no more than HTTPConfig.ReadTimeout in all. A
// mail of usual size arrives within stallTime even on a slow line.
const (
	stallTime   = 5 * time.Second
	minBodyRate = 16 << 10 // bytes a second
	smallBody   = 64 << 10 // bytes of each body that HTTPConfig.MaxBytes does not count
)

// An HTTP accepts labelled events by POST: one event as JSON, or many as NDJSON. It
// answers 202 when all in-sync replicas have acknowledged all of them. It refuses a
// request with a bad event as a whole, and names the line. If the token does not permit an
// event, it refuses the whole request with 403.
//
// It receives the bodies of at most MaxBodies requests at the same time, and handles at
// most MaxInFlight requests whose bodies are complete. So a client with a slow line keeps no
// other client waiting. A request beyond these numbers gets 429. Bodies take at most MaxBytes,
// and smallBody more for each: 320 MiB with the defaults. While a body's buffer grows, the old
// one takes half as much again.
type HTTP struct {
	cfg    HTTPConfig
	known  tokens.Known
	bodies chan struct{}       // holds one token for each request that has a body in memory
	slots  chan struct{}       // holds one token for each request that is handled
	memory *semaphore.Weighted // bytes of buffers beyond smallBody
}

// HTTPConfig describes an HTTP endpoint.
type HTTPConfig struct {
	Events      stream.Appender // the model's topic
	Token       string          // the operator's bearer token, which permits every event
	Tokens      *tokens.File    // further tokens, with the rights of each; nil: none
	Tenants     TokenTenants    // tokens of tenants; nil: none
	TenantsFrom string          // the source of events that come with a token of Tenants
	Ask         Asking          // which labels were asked for
	MaxInFlight int             // requests handled at the same time; default InFlight
	MaxBodies   int             // requests in memory at the same time; default 1,024 beside those handled
	MaxBytes    int64           // of the bodies in memory beyond smallBody; default 256 MiB
	StallTime   time.Duration   // for a body's start, before its rate counts; default 5 s
	ReadTimeout time.Duration   // for a request to arrive; default 60 s
	Deadline    time.Duration   // for Kafka's acknowledgement; default Deadline
	Count       Count           // called once for each request; may be nil
	Log         *slog.Logger
}

// A Count counts a request with its answer's status and the events that Kafka has. token is
// a name, and one of package tokens' labels where the token has none.
type Count func(token string, code, events int)

// TokenTenants know the tokens of tenants. Events that come with such a token belong to that
// tenant and to the source [HTTPConfig].TenantsFrom. An event that names another tenant or
// source is refused. It can withdraw only events of this source.
type TokenTenants interface {
	OfToken(token string) (tenant string, ok bool)
	Default() string // the tenant of events that name none and come with HTTPConfig.Token
}

// Defaults of an HTTPConfig that are flags of ingest.
const (
	InFlight = 16
	Deadline = 10 * time.Second
)

// NewHTTP returns the endpoint. Without any token it refuses everybody.
func NewHTTP(cfg HTTPConfig) *HTTP {
	cfg.MaxInFlight = cmp.Or(cfg.MaxInFlight, InFlight)
	cfg.Deadline = cmp.Or(cfg.Deadline, Deadline)
	cfg.MaxBodies = cmp.Or(cfg.MaxBodies, 1024+cfg.MaxInFlight)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 256<<20)
	cfg.StallTime = cmp.Or(cfg.StallTime, stallTime)
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, time.Minute)
	return &HTTP{
		cfg: cfg, known: tokens.Known{
			Operator: tokens.NewSecret(cfg.Token), File: cfg.Tokens, Tenants: cfg.Tenants, Source: cfg.TenantsFrom,
		},
		bodies: make(chan struct{}, cfg.MaxBodies), slots: make(chan struct{}, cfg.MaxInFlight),
		memory: semaphore.NewWeighted(cfg.MaxBytes),
	}
}

// A refusal is an HTTP status with its reason.
type refusal struct {
	code   int
	reason string
}

func (r *refusal) Error() string { return r.reason }

func refuse(code int, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// ServeHTTP implements [http.Handler].
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Without this header net/http reads the rest of the body before it sends a refusal, and
	// a slow client could make that last.
	w.Header().Set("Connection", "close")
	rights := h.known.Sender(r)
	n, name, err := 0, tokens.ByNobody, errUnknownToken
	if rights != nil {
		name = rights.Name
		n, err = h.accept(w, r, rights)
	}
	code, answer := http.StatusAccepted, map[string]any{"accepted": n}
	if err != nil {
		code = http.StatusInternalServerError
		var refused *refusal
		if errors.As(err, &refused) {
			code = refused.code
		}
		answer = map[string]any{"error": err.Error()}
		if code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="hamlet"`)
		}
		if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
	}
	if h.cfg.Count != nil {
		h.cfg.Count(name, code, n)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

func (h *HTTP) accept(w http.ResponseWriter, r *http.Request, rights *tokens.Rights) (int, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || (media != stream.ContentTypeJSON && media != contentTypeNDJSON) {
		return 0, refuse(http.StatusBadRequest, "the header Content-Type must be %s (one event) or %s (one a line)",
			stream.ContentTypeJSON, contentTypeNDJSON)
	}
	if _, says := r.Header[headerOwnOnly]; says {
		return 0, refuse(http.StatusBadRequest, "the header %s: the token decides that; leave it out", headerOwnOnly)
	}
	if len(h.slots) == cap(h.slots) || !take(h.bodies) { // while Kafka hangs, no body is received
		return 0, errBusy
	}
	defer release(h.bodies)
	body, err := h.receive(w, r)
	defer h.free(body)
	if err != nil {
		return 0, err
	}
	w.Header().Del("Connection") // the body is read
	if !take(h.slots) {
		return 0, errBusy
	}
	defer release(h.slots)
	records, err := h.records(media, rights, body)
	if err != nil {
		return 0, err
	}
	trace := stream.ParseTrace(r.Header.Values(stream.HeaderTrace)...)
	for i := range records {
		records[i].Headers = trace.AppendHeader(records[i].Headers)
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Deadline)
	defer cancel()
	if err := h.cfg.Events.Append(ctx, records...); err != nil {
		if errors.Is(err, stream.ErrTooLarge) {
			return 0, refuse(http.StatusRequestEntityTooLarge, "the log refuses an event of this size: %v", err)
		}
		h.cfg.Log.Warn("events were not acknowledged", append(trace.LogAttrs(), "events", len(records), "error", err)...)
		if errors.Is(err, stream.ErrFull) {
			return 0, refuse(http.StatusServiceUnavailable, "no space is left for the log: make room, and send them again")
		}
		return 0, refuse(http.StatusServiceUnavailable,
			"the log has not acknowledged the events: send them again, those that arrived are known by their ids")
	}
	return len(records), nil
}

var errUnknownToken = refuse(http.StatusUnauthorized,
	"the header Authorization must be: Bearer, and a token of this ingest")

var errBusy = refuse(http.StatusTooManyRequests, "too many requests under way: try again")

// take puts a token into a channel if there is room.
func take(slots chan<- struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func release(slots <-chan struct{}) { <-slots }

// receive reads the request's body. The caller frees what it returns, also with an error.
func (h *HTTP) receive(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var (
		start    = time.Now()
		control  = http.NewResponseController(w)
		from     = http.MaxBytesReader(w, r.Body, maxRequest)
		body     = make([]byte, 0, smallBody)
		tooLarge *http.MaxBytesError
	)
	for {
		if len(body) == cap(body) {
			larger := min(2*cap(body), maxRequest+smallBody)
			if !h.memory.TryAcquire(int64(larger - cap(body))) {
				return body, refuse(http.StatusTooManyRequests,
					"the requests under way take all the memory that they may: try again")
			}
			body = append(make([]byte, 0, larger), body...)
		}
		allowed := min(h.cfg.StallTime+time.Duration(len(body))*time.Second/minBodyRate, h.cfg.ReadTimeout)
		if err := control.SetReadDeadline(start.Add(allowed)); err != nil {
			return body, fmt.Errorf("set the request's deadline: %w", err)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			// A deadline that passes while Kafka works would cancel the request.
			return body, control.SetReadDeadline(time.Time{})
		case errors.As(err, &tooLarge):
			return body, refuse(http.StatusRequestEntityTooLarge, "the request is larger than %d bytes", maxRequest)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return body, refuse(http.StatusRequestTimeout, "the request did not arrive in time: %d bytes in %v; "+
				"it may take %v, and %d bytes must come each second after the first %v",
				len(body), allowed, h.cfg.ReadTimeout, minBodyRate, h.cfg.StallTime)
		default:
			return body, refuse(http.StatusBadRequest, "the request cannot be read: %v", err)
		}
	}
}

// free gives back the memory of a body.
func (h *HTTP) free(body []byte) {
	if more := cap(body) - smallBody; more > 0 {
		h.memory.Release(int64(more))
	}
}

func (h *HTTP) records(media string, rights *tokens.Rights, body []byte) ([]stream.Record, error) {
	if media == stream.ContentTypeJSON {
		record, err := h.record(rights, body)
		if err != nil {
			return nil, err
		}
		return []stream.Record{record}, nil
	}
	var records []stream.Record
	for number := 1; len(body) > 0; number++ {
		line, rest, _ := bytes.Cut(body, []byte{'\n'})
		body = rest
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		record, err := h.record(rights, line)
		if err != nil {
			var refused *refusal
			errors.As(err, &refused)
			return nil, refuse(refused.code, "line %d: %s; nothing was accepted", number, refused.reason)
		}
		if records = append(records, record); len(records) > maxRequestEvents {
			return nil, refuse(http.StatusRequestEntityTooLarge, "more than %d events in a request", maxRequestEvents)
		}
	}
	if len(records) == 0 {
		return nil, refuse(http.StatusBadRequest, "the request holds no event")
	}
	return records, nil
}

// record decodes, reduces and encodes one event, if the sender's token permits it. Every
// error is a *refusal.
func (h *HTTP) record(rights *tokens.Rights, b []byte) (stream.Record, error) {
	absent := stream.DefaultName
	if h.cfg.Tenants != nil {
		absent = h.cfg.Tenants.Default()
	}
	e, err := stream.DecodeJSONOf(rights.Tenant(absent), b)
	if err != nil {
		return stream.Record{}, refuse(http.StatusBadRequest, "%v", err)
	}
	if e.OwnOnly {
		return stream.Record{}, refuse(http.StatusBadRequest, "own_only: the token decides that; leave the field out")
	}
	if err := rights.Claim(&e); err != nil {
		return stream.Record{}, refuse(http.StatusForbidden, "%v", err)
	}
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	if e.Body.Kind == stream.Mail {
		e.Body.Mail, err = mail.Reduce(e.Body.Mail)
		switch {
		case errors.Is(err, mail.ErrTooLarge):
			return stream.Record{}, refuse(http.StatusRequestEntityTooLarge, "mail: %v", err)
		case err != nil:
			return stream.Record{}, refuse(http.StatusBadRequest, "mail: %v", err)
		}
	}
	if err := e.Validate(); err != nil {
		return stream.Record{}, refuse(http.StatusBadRequest, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	record, err := h.cfg.Ask.Record(&e)
	if err != nil {
		return stream.Record{}, refuse(http.StatusRequestEntityTooLarge, "%v", err)
	}
	return record, nil
}
