package logtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"hamlet/stream"
)

// acknowledgedIsIn appends from many goroutines, most of which give up. Those that wait for others when
// they do are the ones that a log could take for done.
func acknowledgedIsIn(t *testing.T, s Subject) {
	const writers, times, each = 8, 12, 3
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range times {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration((w*times+i)%40)*50*time.Microsecond,
					errors.New("given up"))
				records := numbered((w*times+i)*each, each)
				err := s.Appender.Append(ctx, records...)
				cancel()
				if err != nil {
					continue
				}
				mu.Lock()
				for _, r := range records {
					acknowledged[string(r.Value)] = true
				}
				mu.Unlock()
			}
		})
	}
	writing.Wait()
	last := fmt.Append(nil, writers*times*each)
	add(t, s.Appender, stream.Record{Value: last})
	there := map[string]bool{}
	for _, r := range all(t, s.Log, 0, stream.Limit{}) {
		there[string(r.Value)] = true
	}
	for value := range acknowledged {
		if !there[value] {
			t.Errorf("record %s was acknowledged and is not in the log", value)
		}
	}
	if !there[string(last)] {
		t.Error("what was appended last is not in the log")
	}
}
