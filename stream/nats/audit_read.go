package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
)

// MaxAuditRead is how many lines Read returns at most.
const MaxAuditRead = 10_000

// Read returns the newest lines of the audit, at most n, that were written since a time (zero:
// all), the newest first. It reads the stream back from its end. bad is how many messages on
// the way are no lines. Without a stream there are none.
func (a *Audit) Read(ctx context.Context, n int, since time.Time) (lines []stream.AuditEntry, bad int, err error) {
	n = min(n, MaxAuditRead)
	if !a.conn.IsConnected() {
		return nil, 0, fmt.Errorf("read the audit: %w", ErrNoServer)
	}
	state, err := streamState(ctx, a.js, AuditStream, "the audit")
	if err != nil {
		return nil, 0, fmt.Errorf("read the audit: %w", err)
	}
	if state.Msgs == 0 || n <= 0 {
		return nil, 0, nil
	}
	end := state.LastSeq + 1 // messages from there on have been read
	for step := uint64(n); end > state.FirstSeq && len(lines) < n; step *= 2 {
		begin := state.FirstSeq
		if end-begin > step {
			begin = end - step
		}
		var found []stream.AuditEntry
		older := false // a message is older than since
		err := a.each(ctx, begin, end-1, func(e stream.AuditEntry, at *jetstream.MsgMetadata, err error) {
			switch {
			case at.Timestamp.Before(since):
				older = true
			case err != nil:
				bad++
			default:
				found = append(found, e)
			}
		})
		if err != nil {
			return nil, 0, fmt.Errorf("read the audit: %w", err)
		}
		for i := len(found) - 1; i >= 0 && len(lines) < n; i-- {
			lines = append(lines, found[i])
		}
		if older {
			break
		}
		end = begin
	}
	return lines, bad, nil
}

// each calls take for the lines of this model from one message to another.
func (a *Audit) each(ctx context.Context, first, last uint64, take func(e stream.AuditEntry, at *jetstream.MsgMetadata, err error)) error {
	messages := stored{stream: AuditStream, subjects: []string{AuditSubject(a.model)}, first: first, last: last, what: "the audit"}
	return messages.each(ctx, a.conn, func(m jetstream.Msg, _ uint64) bool {
		at, err := m.Metadata()
		if err != nil {
			return true // it came from no stream
		}
		e, err := stream.DecodeAuditEntry(m.Data())
		if err == nil && e.Model != a.model {
			err = errors.New("a line of another model than its subject")
		}
		take(e, at, err)
		return true
	})
}

// acknowledged are the incidents that somebody has acknowledged, up to a message of the stream.
type acknowledged struct {
	mu   sync.Mutex // held while the stream is read
	seen uint64     // the sequence of the last message that was read; guarded by mu
	all  map[string]stream.AuditEntry
}

// maxAcknowledged bounds what is known of incidents: the oldest are lost.
const maxAcknowledged = 10_000

// Acknowledged returns who acknowledged which incident, by the target of the action; of several
// the last. It reads what was written since the last call.
func (a *Audit) Acknowledged(ctx context.Context) (map[string]stream.AuditEntry, error) {
	k := &a.acked
	k.mu.Lock()
	defer k.mu.Unlock()
	if !a.conn.IsConnected() {
		return nil, fmt.Errorf("read the audit: %w", ErrNoServer)
	}
	state, err := streamState(ctx, a.js, AuditStream, "the audit")
	if err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	if k.all == nil || state.LastSeq < k.seen { // another stream of this name
		k.seen, k.all = 0, map[string]stream.AuditEntry{}
	}
	if state.Msgs > 0 && state.LastSeq > k.seen {
		err := a.each(ctx, max(k.seen+1, state.FirstSeq), state.LastSeq, func(e stream.AuditEntry, at *jetstream.MsgMetadata, err error) {
			k.seen = at.Sequence.Stream // what was read is not read again, even after an error
			if err == nil && e.Action == stream.ActionAcknowledge && e.Outcome == stream.AuditDone && e.Target != "" {
				k.all[e.Target] = e
			}
		})
		if err != nil {
			return nil, fmt.Errorf("read the audit: %w", err)
		}
		k.seen = state.LastSeq
	}
	for len(k.all) > maxAcknowledged {
		oldest := ""
		for target, e := range k.all {
			if oldest == "" || e.Time.Before(k.all[oldest].Time) {
				oldest = target
			}
		}
		delete(k.all, oldest)
	}
	return maps.Clone(k.all), nil
}
