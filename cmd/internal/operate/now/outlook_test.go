package now

import (
	"fmt"
	"testing"
	"time"

	"hamlet/cmd/internal/service/answered"
	"hamlet/stream"
)

// outlookOf returns what is expected after lines of the journal.
func outlookOf(lines []stream.JournalEntry, now time.Time, alarms Alarms) *answered.Expected {
	j := newJournal("default")
	for i := range lines {
		j.add(&lines[i], now, 1)
	}
	s := &Snapshot{At: now, Alarms: alarms}
	j.show(s)
	return s.Errors.Expected
}

// Labels that contradict one tenant's answers withdraw the sum, however many answers of others are between.
func TestOneTenantContradicts(t *testing.T) {
	now := time.Now()
	for _, tenants := range []int{1, 20} {
		var lines []stream.JournalEntry
		for i := range 100 * tenants {
			e := decision(i, stream.DecideHam, .02, "milter")
			e.Tenant, e.Time = fmt.Sprint("t", i%tenants), now.Add(-time.Hour+time.Duration(i)*time.Second)
			if lines = append(lines, e); i%(5*tenants) == 0 {
				lines = append(lines, label(i, stream.Spam))
			}
		}
		if x := outlookOf(lines, now, Alarms{}); x.Withdrawn != "labels contradict it: 20 errors in 96 answers, 1.9 expected" {
			t.Errorf("%d tenants: %q", tenants, x.Withdrawn)
		}
	}
}
