package follow_test

import (
	"testing"
	"testing/synctest"
	"time"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/logtest"
)

// Behind holes and an outage, reading goes on where it was: no record is handed over twice.
func TestAnOutageBehindHoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, k := filled(t, 100), newKeeper()
		log.Compact(3, 4, 5, 20, 21, 50)
		stop := k.start(t, follow.Config{Log: log})
		time.Sleep(time.Second)
		log.Fail(stream.ErrAway)
		time.Sleep(5 * time.Second)
		log.Fail(nil)
		if err := log.Append(t.Context(), numbered(100, 10)...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if err := stop(); err != nil || len(k.taken) != 104 {
			t.Errorf("Run = %v, %d records, and not 104", err, len(k.taken))
		}
		for i := 1; i < len(k.taken); i++ {
			if k.taken[i].Offset <= k.taken[i-1].Offset {
				t.Fatalf("offset %d behind %d", k.taken[i].Offset, k.taken[i-1].Offset)
			}
		}
	})
}

// A log whose records differ from those that were read in headers alone is another one: a label may be
// a header.
func TestOtherHeadersAreAnotherLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		labelled := func(label string) (records []stream.Record) {
			for _, r := range numbered(0, 20) {
				r.Headers = []stream.Header{{Key: "label", Value: []byte(label)}}
				records = append(records, r)
			}
			return records
		}
		log, k := new(logtest.Memory), newKeeper()
		log.Replace("", labelled("spam")...)
		stop := k.start(t, follow.Config{Log: log})
		time.Sleep(time.Second)
		log.Replace("", labelled("ham")...)
		if err := log.Append(t.Context(), numbered(20, 5)...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		opened := 0
		for _, what := range k.now().log {
			if what == "open" {
				opened++
			}
		}
		if err := stop(); opened < 2 {
			t.Errorf("it is read on as the same log: Run = %v, %v", err, k.now().log)
		}
	})
}
