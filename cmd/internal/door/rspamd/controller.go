package rspamd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/process/tokens"
	"hamlet/stream"
	"hamlet/stream/mail"
)

// A controller answers the requests of a controller door.
type controller struct {
	*Server
	password tokens.Secret
}

// NewController returns the server of a controller door. Clients send the password in the
// header Password; empty: nobody is asked. counts are also of the scan door.
func NewController(d *gateway.Door, password string, counts *Counts) *Server {
	c := &controller{Server: newServer(d, counts), password: tokens.NewSecret(password)}
	mux := http.NewServeMux()
	c.routes(mux)
	mux.HandleFunc("POST /learnspam", func(w http.ResponseWriter, r *http.Request) { c.learn(w, r, gateway.LearnSpam) })
	mux.HandleFunc("POST /learnham", func(w http.ResponseWriter, r *http.Request) { c.learn(w, r, gateway.LearnHam) })
	mux.HandleFunc("GET /stat", c.stat)
	c.mux = c.guarded(mux)
	return c.Server
}

// guarded asks for the password of every request but a ping.
func (c *controller) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if c.password.Set() && r.URL.Path != "/ping" && !c.password.Is(r.Header.Get("Password")) {
			c.unauthorized(w, "Unauthorized")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// unauthorized refuses as rspamd does, also a request to learn that has only the password
// for reading.
func (c *controller) unauthorized(w http.ResponseWriter, reason string) {
	w.Header().Set("Connection", "close") // the message is not awaited
	c.refuse(w, http.StatusUnauthorized, reason)
}

func (c *controller) refuse(w http.ResponseWriter, code int, reason string) {
	c.send(w, code, map[string]any{"error": reason})
}

func (c *controller) send(w http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	c.reply(w, code, "application/json", text)
}

// learn teaches a message for each tenant whose mail it is.
func (c *controller) learn(w http.ResponseWriter, r *http.Request, lesson gateway.Lesson) {
	if !c.door.CanLearn() {
		c.unauthorized(w, "Unauthorized: "+gateway.ErrNotAllowed.Error())
		return
	}
	e, err := envelopeOf(r.Header)
	if err != nil {
		c.garbage(w, http.StatusRequestHeaderFieldsTooLarge, err)
		return
	}
	body := c.door.NewBody()
	defer body.Release()
	err = c.receive(w, r, body)
	if body.Err() != nil {
		err = body.Err()
	}
	if err != nil {
		w.Header().Set("Connection", "close")
		c.refuse(w, statusOf(err), err.Error())
		return
	}
	tenants, more := c.tenants(e)
	if more {
		c.refuse(w, http.StatusBadRequest, fmt.Sprintf("the recipients belong to more than %d tenants", maxTenants))
		return
	}
	ctx := context.WithoutCancel(r.Context()) // a client that has said all may close its side
	ctx = stream.WithTrace(ctx, cmp.Or(e.trace, stream.NewTrace()))
	for _, tenant := range tenants {
		if err = c.door.Learn(ctx, tenant, body.Bytes(), lesson); err != nil {
			break
		}
	}
	body.Release()
	switch {
	case err == nil:
		c.counts.learned.Add(1)
		c.send(w, http.StatusOK, map[string]any{"success": true})
	case errors.Is(err, mail.ErrEmpty), errors.Is(err, mail.ErrTooLarge):
		c.refuse(w, http.StatusBadRequest, err.Error())
	default:
		c.refuse(w, http.StatusServiceUnavailable, "the label did not reach the learner: try again")
	}
}

// Counts are what /stat shows. They may be used concurrently.
type Counts struct {
	since       time.Time
	connections atomic.Int64
	learned     atomic.Int64
	none        atomic.Int64 // by action
	header      atomic.Int64
	subject     atomic.Int64
}

// NewCounts returns counts of zero.
func NewCounts() *Counts { return &Counts{since: time.Now()} }

func (c *Counts) scanned(action string) {
	switch action {
	case actionHeader:
		c.header.Add(1)
	case actionSubject:
		c.subject.Add(1)
	default:
		c.none.Add(1)
	}
}

// version is what clients that ask for rspamd's are told.
const version = "hamlet"

// stat answers with the counts. The learnt events are the served model's.
func (c *controller) stat(w http.ResponseWriter, r *http.Request) {
	none, header, subject := c.counts.none.Load(), c.counts.header.Load(), c.counts.subject.Load()
	answer := map[string]any{
		"version": version, "uptime": int64(time.Since(c.counts.since).Seconds()), "read_only": !c.door.CanLearn(),
		"scanned": none + header + subject, "spam_count": header + subject, "ham_count": none,
		"learned": c.counts.learned.Load(), "connections": c.counts.connections.Load(), "control_connections": 0,
		"actions":      map[string]int64{actionNone: none, actionHeader: header, actionSubject: subject},
		"total_learns": 0, "statfiles": []any{},
	}
	if info, err := c.door.Info(r.Context()); err == nil {
		answer["total_learns"] = info.Events
		answer["statfiles"] = []any{map[string]any{
			"symbol": "HAMLET", "type": info.Model.Name, "revision": info.Events,
			"size": 0, "total": 0, "used": 0, "languages": 0, "users": 0,
		}}
	}
	c.send(w, http.StatusOK, answer)
}
