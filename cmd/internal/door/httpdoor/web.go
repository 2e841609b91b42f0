// Package httpdoor is the gateway's door for programs: HTTP and JSON.
//
//	handlers := httpdoor.Handlers(opened.Gateway(), token, events)
//	err := set.Run(ctx, parts.HTTP{Addr: addr, Handlers: handlers}, opened.Run)
//
// # Requests
//
//	POST /v1/score     message/rfc822     a mail of at most 25 MiB            → a stream.Verdict
//	                   text/plain         a text in UTF-8, at most 960 KiB    → a stream.Verdict
//	                   application/json   an event without label and action   → a stream.Verdict
//	                   application/json   an array of at most 1,000 of them   → an array, in order
//	POST /v1/explain   the same                                               → with reasons
//	GET  /v1/info                                                             → a stream.Info
//	POST /v1/events    labels, as package ingest takes them                   → how many were taken
//	GET  /openapi.json                                                        → OpenAPI 3.1
//
// The answers are those of the scoring service on NATS. JSON may have 8 MiB. The gateway
// reduces every mail, and asks about a batch in pieces that NATS carries. So a verdict of
// a batch may name a newer model than the verdict before it.
//
// # Whose mail it is
//
// With the operator's token, mails and texts are of the tenant that the header
// Hamlet-Tenant names, and an event's own tenant counts. Without either it is the default
// tenant of the operator's file. A tenant's token, from that file, speaks for that tenant
// alone: a request that names another is answered 403. A token of package tokens may have
// several tenants, and asks for scores if that is among its actions. Without any token the door is for
// the default tenant, and the program that opens it sees to it that only this machine
// reaches it.
//
// # Errors
//
// HTTP is for programs. No mail passes through, so a message without a verdict is an error
// here and no mark. Every error is JSON, {"error": "…"}:
//
//	400   the request is wrong; it will not get better
//	401   no token, or an unknown one
//	403   the tenant is another's, the token lacks a right, or labels are not taken
//	404   no such path
//	405   another method is wanted
//	408   the body did not arrive in time
//	413   a body, or an event in it, is too large
//	415   another content type is wanted
//	429   the gateway or the scoring service has too much to do, or a batch had no answer in
//	      time; Retry-After says when
//	500   an error of the scoring service's own
//	503   no scorer answers, or it has no model yet; Retry-After says when
//
// A header of more than 32 KiB is answered 431 by package httpd, in plain text.
//
// # Bounds
//
// At most 1,024 requests are under way. Two questions for an explanation, each for at most
// eight events, are under way at once; others wait the gateway's deadline. Bodies beyond
// gateway.FreeBytes, what is decoded from them, and the answers of a batch take room in the
// gateway's budget. A body must come at 16 KiB a second after the first 5 s, and within 60 s.
package httpdoor

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/process/tokens"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// Name is the door's name: the scoring service and the metrics see it, and it is the
// source of labels that come with a tenant's token.
const Name = "http"

// A config describes the door.
type config struct {
	Door   *gateway.Door
	Token  string          // the operator's bearer token; empty: none
	Events stream.Appender // takes labels; nil: POST /v1/events is answered 403
	pace   gateway.Pace    // of bodies
}

const (
	maxRequests   = 1024             // under way; one more is answered 429
	maxExplaining = 2                // pieces under way that are explained: mail servers wait beside them
	answerTimeout = 30 * time.Second // for the client to take an answer
	retryAfter    = "1"              // seconds
)

// A server answers the requests of all operations.
type server struct {
	cfg        config
	known      tokens.Known
	hadToken   bool          // there were tokens at the start
	slots      chan struct{} // holds one token for each request under way
	explaining chan struct{} // holds one token for each piece under way that is explained
	events     http.Handler  // POST /v1/events; nil: labels are not taken
	document   []byte        // GET /openapi.json
	requests   *prometheus.CounterVec
}

// Handlers returns the door's handlers by pattern of [http.ServeMux]. token is the operator's
// bearer token, and may be empty. events takes labels. If it is nil, POST /v1/events is answered 403.
func Handlers(g *gateway.Gateway, token string, events stream.Appender) map[string]http.Handler {
	return newServer(config{Door: g.Door(Name), Token: token, Events: events}).handlers()
}

func (s *server) handlers() map[string]http.Handler {
	handlers := map[string]http.Handler{"/v1/": http.HandlerFunc(s.notFound)}
	for _, o := range operations {
		handlers[o.path] = s.handler(o)
	}
	return handlers
}

func newServer(cfg config) *server {
	cfg.pace = cfg.pace.OrDefault()
	s := &server{
		cfg: cfg, hadToken: cfg.Token != "" || cfg.Door.HasTokens(),
		known: tokens.Known{
			Operator: tokens.NewSecret(cfg.Token), File: cfg.Door.Tokens, Tenants: cfg.Door.Tenants, Source: Name,
		},
		slots: make(chan struct{}, maxRequests), explaining: make(chan struct{}, maxExplaining),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hamlet_gateway_http_requests_total", Help: "Requests to the HTTP door, by path and status.",
		}, []string{"path", "code"}),
	}
	var count *tokens.Metrics
	if r := cfg.Door.Registerer; r != nil {
		r.MustRegister(s.requests)
		count = tokens.NewMetrics(r)
	}
	var err error
	if s.document, err = json.Marshal(document()); err != nil {
		panic(err)
	}
	if cfg.Events == nil {
		return s
	}
	s.events = ingest.NewHTTP(ingest.HTTPConfig{
		Events: cfg.Events, Token: cfg.Token, Tokens: cfg.Door.Tokens, Tenants: cfg.Door.Tenants, TenantsFrom: Name, Ask: cfg.Door.Asked,
		StallTime: cfg.pace.Stall, Log: cfg.Door.Log,
		Count: func(token string, code, events int) {
			s.count(eventsPath, code)
			count.Count(token, code, events)
		},
	})
	return s
}

// A caller is who sends a request.
type caller struct {
	rights *tokens.Rights // nil: without a token, for its tenant alone
	tenant string         // of what names none
}

// teaches reports whether the caller may teach where doors take no labels.
func (c *caller) teaches() bool { return c.rights != nil && c.rights.Name != tokens.ByTenant }

// may returns a *refusal if the caller may not speak for a tenant.
func (c *caller) may(tenant string) *refusal {
	switch {
	case c.rights == nil && tenant == c.tenant:
	case c.rights != nil && c.rights.OfTenant(tenant):
	default:
		return &refusal{http.StatusForbidden, notYours}
	}
	return nil
}

const notYours = "the token is for another tenant: leave it out, or name the right one"

// mayAsk returns a *refusal if the caller may not ask for scores: at all, or of a mail or a
// text for its tenant. In JSON, each event says whose it is.
func (c *caller) mayAsk(contentType string) error {
	if c.rights != nil {
		if err := c.rights.Allow(tokens.Score); err != nil {
			return &refusal{http.StatusForbidden, err.Error()}
		}
	}
	if contentType == questions.JSON {
		return nil
	}
	if err := c.may(c.tenant); err != nil {
		return &refusal{err.code, nats.HeaderTenant + ": " + err.reason}
	}
	return nil
}

// A refusal is an answer that is an error.
type refusal struct {
	code   int
	reason string // a sentence
}

func (r *refusal) Error() string { return r.reason }

// handler returns what answers one operation.
func (s *server) handler(o operation) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			// Without this net/http reads the rest of a body before it sends a refusal, for as
			// long as a slow client likes.
			w.Header().Set("Connection", "close")
		}
		if r.Method != o.method && !(o.method == http.MethodGet && r.Method == http.MethodHead) {
			w.Header().Set("Allow", o.method)
			s.refuse(w, o.path, &refusal{http.StatusMethodNotAllowed, o.path + " is for " + o.method})
			return
		}
		var from caller
		if !o.open {
			var err error
			if from, err = s.caller(r); err != nil {
				s.refuse(w, o.path, err)
				return
			}
		}
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		default:
			s.refuse(w, o.path, &refusal{http.StatusTooManyRequests, "too many requests are under way: try again"})
			return
		}
		r = r.WithContext(stream.WithTrace(r.Context(), stream.ParseTrace(r.Header.Values(stream.HeaderTrace)...)))
		if err := o.serve(s, w, r, from); err != nil {
			s.refuse(w, o.path, err)
		}
	})
}

func (s *server) notFound(w http.ResponseWriter, r *http.Request) {
	if r.Body != http.NoBody {
		w.Header().Set("Connection", "close")
	}
	s.refuse(w, "other", &refusal{http.StatusNotFound, "no such path: /openapi.json says which there are"})
}

// closed reports whether requests need a token. A tenants' file that loses its last token
// opens nothing.
func (s *server) closed() bool { return s.hadToken || s.cfg.Door.HasTokens() }

// caller returns who sent the request. The error is a *refusal.
func (s *server) caller(r *http.Request) (caller, error) {
	tenants := s.cfg.Door.Tenants
	named := r.Header.Get(nats.HeaderTenant)
	from := caller{tenant: tenants.Default()}
	if s.closed() {
		if from.rights = s.known.Sender(r); from.rights == nil {
			return caller{}, &refusal{http.StatusUnauthorized,
				"the header Authorization must be: Bearer, and a token of this gateway"}
		}
		from.tenant = from.rights.Tenant(from.tenant)
	}
	if named == "" {
		return from, nil
	}
	if err := stream.ValidateTenant(named); err != nil {
		return caller{}, &refusal{http.StatusBadRequest, nats.HeaderTenant + ": " + err.Error()}
	}
	if err := from.may(named); err != nil {
		return caller{}, &refusal{err.code, nats.HeaderTenant + ": " + err.reason}
	}
	from.tenant = named
	return from, nil
}

// refuse answers with an error.
func (s *server) refuse(w http.ResponseWriter, path string, err error) {
	refused := refusalOf(err)
	switch refused.code {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="hamlet"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
	case http.StatusBadRequest, http.StatusUnsupportedMediaType:
		s.cfg.Door.Garbage(refused)
	}
	s.answer(w, path, refused.code, errorAnswer{refused.reason})
}

// refusalOf returns the answer to an error.
func refusalOf(err error) *refusal {
	var (
		refused *refusal
		service *questions.Refusal
	)
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &service):
		return refusalOfService(service)
	case errors.Is(err, gateway.ErrMemory):
		return &refusal{http.StatusTooManyRequests, "the requests under way take all the memory that they may: try again"}
	}
	return &refusal{http.StatusServiceUnavailable, "no scorer answers: try again"} // the log says more
}

func refusalOfService(e *questions.Refusal) *refusal {
	switch {
	case e.Code == questions.BadRequest:
		return &refusal{http.StatusBadRequest, e.Text}
	case e.Code == questions.TooLarge:
		return &refusal{http.StatusRequestEntityTooLarge, e.Text}
	case e.Overloaded():
		return &refusal{http.StatusTooManyRequests, e.Text}
	case e.Code == questions.Unavailable:
		return &refusal{http.StatusServiceUnavailable, e.Text}
	}
	return &refusal{http.StatusInternalServerError, e.Text}
}

// The answers beside those of package stream.
type (
	errorAnswer struct {
		Error string `json:"error"`
	}
	acceptedAnswer struct {
		Accepted int `json:"accepted"`
	}
)

// answer writes an answer. The client may be gone, which nobody needs to know.
func (s *server) answer(w http.ResponseWriter, path string, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("httpdoor: answer: " + err.Error()) // a NaN in a verdict is our bug
	}
	s.write(w, path, code, append(b, '\n'))
}

func (s *server) write(w http.ResponseWriter, path string, code int, b []byte) {
	s.count(path, code)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
	w.Header().Set("Content-Type", stream.ContentTypeJSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(code)
	_, _ = w.Write(b)
}

func (s *server) count(path string, code int) {
	s.requests.WithLabelValues(path, strconv.Itoa(code)).Inc()
}
