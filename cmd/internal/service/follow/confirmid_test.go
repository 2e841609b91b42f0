package follow

import (
	"errors"
	"testing"
	"testing/synctest"

	"hamlet/stream"
)

// A log that knows its ID is confirmed by that: one of another ID is another log, whatever its records.
func TestConfirmByID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, records := filled(t, 20)
		log.Replace("a", records...)
		r := readingOf(t, log, 6)
		r.seen = stream.Bounds{End: 20, ID: "a"}
		r.taken(records[4:6])
		if err := r.confirm(t.Context()); err != nil {
			t.Errorf("the same log: %v", err)
		}
		r.taken(records[6:8])
		log.Replace("b", records...)
		if err := r.confirm(t.Context()); !errors.Is(err, ErrReplaced) {
			t.Errorf("a log of another ID with the same records: %v", err)
		}
	})
}
