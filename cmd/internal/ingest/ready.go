package ingest

import (
	"context"
	"sync"
	"time"
)

const (
	// probeEvery is how long an answer about Kafka holds: probes that come every few
	// seconds, from several sides, ask it no more often.
	probeEvery = 5 * time.Second

	// probePatience is how long Kafka may take to answer. Kubernetes, unless told
	// otherwise, gives a probe a second, and takes a missing answer for a no.
	probePatience = time.Second
)

// A Readiness says whether events could be sent now. It asks when it is asked,
// and keeps the answer for a while.
type Readiness struct {
	ask func(context.Context) error

	mu  sync.Mutex
	at  time.Time // of err
	err error
}

// NewReadiness returns a Readiness by what ask says, which must end with its
// context.
func NewReadiness(ask func(context.Context) error) *Readiness { return &Readiness{ask: ask} }

// Ready returns nil, or why events cannot be sent.
func (r *Readiness) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) >= probeEvery {
		ctx, cancel := context.WithTimeout(context.Background(), probePatience)
		defer cancel()
		r.err = r.ask(ctx)
		r.at = time.Now()
	}
	return r.err
}
