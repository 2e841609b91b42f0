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

	// maxDoubts is how many askings in a row must fail before who was ready is not:
	// one fails when a broker is slow, or changes, and events are sent all the same.
	// Kubernetes gives up on as many probes.
	maxDoubts = 3
)

// A Readiness says whether events could be sent now. It asks when it is asked,
// and keeps the answer for a while. The first answer counts at once; later a
// success does, and failures when there have been three in a row.
type Readiness struct {
	ask      func(context.Context) error
	patience time.Duration

	mu     sync.Mutex
	at     time.Time // of the last asking
	doubts int       // failures since the last success
	err    error
}

// NewReadiness returns a Readiness by what ask says, which must end with its
// context.
func NewReadiness(ask func(context.Context) error) *Readiness {
	return &Readiness{ask: ask, patience: probePatience}
}

// Ready returns nil, or why events cannot be sent.
func (r *Readiness) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < probeEvery {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.patience)
	defer cancel()
	err := r.ask(ctx)
	r.doubts++
	if err == nil {
		r.doubts = 0
	}
	wasReady := !r.at.IsZero() && r.err == nil
	if !wasReady || r.doubts == 0 || r.doubts >= maxDoubts {
		r.err = err
	}
	r.at = time.Now()
	return r.err
}
