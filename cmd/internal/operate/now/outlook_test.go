package now

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/service/answered"
	"hamlet/stream"
)

// outlookOf returns what is expected after lines of the journal.
func outlookOf(lines []stream.JournalEntry, now time.Time, alarms Alarms) *answered.Expected {
	return snapshotOf(lines, now, alarms).Errors.Expected
}

func snapshotOf(lines []stream.JournalEntry, now time.Time, alarms Alarms) *Snapshot {
	j := newJournal("default")
	for i := range lines {
		j.add(&lines[i], now, 1)
	}
	s := &Snapshot{At: now, Alarms: alarms}
	j.show(s)
	s.Journal.Reading = false
	return s
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
		if x := outlookOf(lines, now, Alarms{}); x.Withdrawn != "labels contradict it: 20 errors in 96 answers, 1.9 expected; p or the labels are wrong" {
			t.Errorf("%d tenants: %q", tenants, x.Withdrawn)
		}
	}
}

// labelledLines returns n answers of an hour, of p and of 1-p in turn, with their labels. One of so many is wrong.
func labelledLines(from, n int, model string, begin time.Time, p float64, oneOf int) (lines []stream.JournalEntry) {
	for i := range n {
		e := decision(from+i, stream.DecideHam, p, "milter")
		spam := i/2%oneOf == 0
		if i%2 == 1 {
			e.Verdict, e.P, spam = stream.DecideSpam, 1-p, !spam
		}
		e.Low, e.High, e.Model = e.P, e.P, model+"/0123456789ab"
		e.Time = begin.Add(time.Duration(i) * time.Hour / time.Duration(n))
		given := label(from+i, stream.Ham)
		if spam {
			given.Label = stream.Spam
		}
		lines = append(lines, e, given)
	}
	return lines
}

const tooUnsure = "the last 500 labelled answers have the slope "

// The slope is of the answers that the sums count: neither of an incident's, nor of another model's.
func TestSlopeIsOfWhatCounts(t *testing.T) {
	now := time.Now().Truncate(time.Hour)
	fine := labelledLines(0, 400, "default", now.Add(-10*time.Hour), .1, 10)
	last := labelledLines(2000, 20, "default", now.Add(-time.Hour), .1, 10)
	for _, c := range []struct {
		what, model string
		alarms      Alarms
		want        string
	}{
		{"all count", "default", Alarms{}, tooUnsure},
		{"an incident", "default", Alarms{Doubts: answered.Doubts{{Kind: stream.AlertConcept, From: now.Add(-170 * time.Minute),
			To: now.Add(-160 * time.Minute)}}}, ""},
		{"another model", "shadow", Alarms{}, ""},
	} {
		other := labelledLines(1000, 480, c.model, now.Add(-3*time.Hour), .3, 20)
		x := outlookOf(slices.Concat(fine, other, last), now, c.alarms)
		if got := x.Withdrawn; !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// Of very many labelled answers the newest are known. Those of the same time are what they are a share of.
func TestSlopeIsAskedWhereOldLabelsAreForgotten(t *testing.T) {
	now := time.Now().Truncate(time.Hour)
	var lines []stream.JournalEntry
	for i := range 3 * mostMatches {
		e := decision(i, stream.DecideHam, .1, "milter")
		e.Time = now.Add(-10 * time.Hour)
		lines = append(lines, e)
	}
	lines = append(lines, labelledLines(len(lines), mostMatches+1000, "default", now.Add(-time.Hour), .3, 20)...)
	if got := outlookOf(lines, now, Alarms{}).Withdrawn; !strings.HasPrefix(got, tooUnsure) {
		t.Errorf("%q", got)
	}
}

// What is left out is counted by its reason. Without a figure nothing is said to be left out of it.
func TestWhatIsLeftOutIsNamed(t *testing.T) {
	now := time.Now().Truncate(time.Hour).Add(30 * time.Minute)
	at := func(n int, model string, age time.Duration) stream.JournalEntry {
		e := decision(n, stream.DecideHam, .1, "milter")
		e.Model, e.Time = model+"/0123456789ab", now.Add(-age)
		return e
	}
	over := answered.Doubts{{Kind: stream.AlertConcept, From: now.Add(-3 * time.Hour), To: now.Add(-3 * time.Hour)}}
	open := answered.Doubts{{Kind: stream.AlertConcept, From: now}}
	shadow, ours, incident := at(1, "shadow", 5*time.Hour), at(2, "default", time.Hour), at(3, "default", 3*time.Hour)
	for _, c := range []struct {
		what   string
		lines  []stream.JournalEntry
		doubts answered.Doubts
		want   string
	}{
		{"another model", []stream.JournalEntry{shadow, ours}, nil, "(0 to 1). That leaves out 1 answers of other models."},
		{"an incident", []stream.JournalEntry{incident, ours}, over, "(0 to 1). That leaves out 1 answers of hours with an incident."},
		{"both", []stream.JournalEntry{shadow, incident, ours}, over,
			"(0 to 1). That leaves out 1 answers of hours with an incident, and 1 answers of other models."},
		{"an open incident", []stream.JournalEntry{shadow, incident, ours}, open, " UTC."},
		{"another a minute ago", []stream.JournalEntry{at(5, "shadow", time.Minute), at(6, "default", 0)}, nil,
			" is not known: the model shadow answers, and its incidents are not read here."},
		{"another alone", []stream.JournalEntry{shadow, at(4, "default", 8*day)}, nil,
			" is not known: other models gave all answers, and their incidents are not read here."},
	} {
		s := snapshotOf(c.lines, now, Alarms{Doubts: c.doubts})
		if got := newView(s).Promise(); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// What a scorer answered whose clock is ahead counts in the present hour.
func TestAnswersOfTheFutureCount(t *testing.T) {
	now := time.Now()
	e := decision(1, stream.DecideHam, .1, "milter")
	e.Time = now.Add(5 * time.Hour)
	if x := outlookOf([]stream.JournalEntry{e}, now, Alarms{}); x == nil || x.Answers != 1 {
		t.Errorf("%+v", x)
	}
}
