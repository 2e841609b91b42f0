package ingest

import (
	"context"
	"sync"
	"time"
)

const (
	// probeEvery is how long an answer is reused.
	probeEvery = 5 * time.Second

	// probeTimeout bounds the wait for Kafka. By default, Kubernetes waits a second
	// for a probe.
	probeTimeout = time.Second

	// maxFailures is how many probes in a row must fail before ingest is not ready.
	// One fails while a leader changes, and events are sent all the same.
	maxFailures = 3
)

// A Readiness reports whether events can be sent now. It probes Kafka when asked and
// reuses the answer for probeEvery. The first answer counts at once. Later a success
// counts at once, and failures when maxFailures came in a row.
type Readiness struct {
	probe   func(context.Context) error
	timeout time.Duration

	mu       sync.Mutex // guards the fields below, which Ready changes
	at       time.Time  // of the last probe; zero: none yet
	failures int        // probes that failed since the last success
	err      error      // the answer
}

// NewReadiness returns a Readiness for a probe, which must end with its context.
func NewReadiness(probe func(context.Context) error) *Readiness {
	return &Readiness{probe: probe, timeout: probeTimeout}
}

// Ready returns nil, or why events cannot be sent.
func (r *Readiness) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < probeEvery {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	err := r.probe(ctx)
	if r.failures++; err == nil {
		r.failures = 0
	}
	wasReady := !r.at.IsZero() && r.err == nil
	if !wasReady || err == nil || r.failures >= maxFailures {
		r.err = err
	}
	r.at = time.Now()
	return r.err
}
