package now

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hamlet/algos/promise"
	"hamlet/cmd/internal/service/answered"
	"hamlet/stream"
)

// The sentence at the top says what went wrong in the last seven days. It is withdrawn, and says why, while an
// incident is open, and where labels contradict it.
func TestExpectedErrors(t *testing.T) {
	t.Parallel()
	conn := startNATS(t)
	old := func(n int, p float64, age time.Duration) stream.JournalEntry {
		verdict := stream.DecideHam
		if p > 0.9 {
			verdict = stream.DecideSpam
		}
		e := decision(n, verdict, p, "milter")
		e.Time = e.Time.Add(-age)
		return e
	}
	var lines []stream.JournalEntry
	for i := range 100 {
		lines = append(lines, old(i, 0.97, 5*day), old(1000+i, 0.12, 30*time.Hour), old(1000+i, 0.12, time.Hour))
	}
	appendTo(t, conn, "1", false, append(lines, old(5000, 0.2, 8*day), old(5001, 0.2, 9*day))...)
	var alarms atomic.Pointer[Alarms]
	alarms.Store(&Alarms{})
	f := follow(t, Config{Model: "default", NATS: conn, Alarms: func(context.Context) (Alarms, error) { return *alarms.Load(), nil }})
	says := func(what, want string) {
		t.Helper()
		got := ""
		await(t, f, what, func(s *Snapshot) bool {
			got = newView(s).Promise()
			return strings.Contains(got, want)
		})
	}
	s := await(t, f, "the journal", func(s *Snapshot) bool {
		return s.Alarms.Away == "" && s.Errors.Expected != nil && s.Errors.Expected.Withdrawn == ""
	})
	if got, want := newView(s).Promise(), "About 3 of yours went to Junk in the last 7 days (1 to 6), and about 12 spam came through (7 to 18)."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if html := draw(t, s); !strings.Contains(html, `<p class="notice">About 3 of yours went to Junk`) {
		t.Error("the page does not say it")
	}

	now := time.Now()
	alarms.Store(&Alarms{Doubts: answered.Doubts{{Kind: stream.AlertConcept, From: now.Add(-5*day - time.Minute), To: now.Add(-5*day + time.Minute)}}})
	says("an incident that is over", "That leaves out 100 answers of hours with an incident.")
	alarms.Store(&Alarms{Doubts: answered.Doubts{{Kind: stream.AlertConcept, From: now}}})
	says("an incident", "How much of your ham went to Junk in the last 7 days is not known: an incident of concept is open since ")
	alarms.Store(&Alarms{})
	says("it is over", "About 3 of yours")

	var labels []stream.JournalEntry
	for i := range 60 {
		labels = append(labels, label(i, stream.Ham))
	}
	appendTo(t, conn, "2", true, labels...)
	await(t, f, "labels that contradict", func(s *Snapshot) bool {
		f.journal.mu.Lock()
		f.journal.outlook.looked = time.Time{} // no need to wait ten seconds
		f.journal.mu.Unlock()
		return s.Errors.Expected.Withdrawn != ""
	})
	says("labels that contradict", "not known: labels contradict it: ")

	promoted := old(9000, 0.2, 0)
	promoted.Model = "shadow/0123456789ab"
	appendTo(t, conn, "3", false, promoted)
	says("another model", "the model shadow answers, and its incidents are not read here")
}

// Without answers, and while the past is read, nothing is said. A shorter past is named.
func TestPromiseSaysSinceWhen(t *testing.T) {
	s := &Snapshot{At: time.Now()}
	if got := newView(s).Promise(); got != "" {
		t.Error(got)
	}
	var sums promise.Expected
	for range 10 {
		sums.Add(.1, .1, .1, false)
	}
	var f answered.Figures
	f.Expect(sums, 0, "")
	for age, want := range map[time.Duration]string{9 * day: "last 7 days", 3 * day: "last 3.0 days", 5 * time.Hour: "last 5.0 hours"} {
		s.Errors = Errors{Since: s.At.Add(-age), Expected: f.Expected}
		if got := newView(s).Promise(); got != fmt.Sprintf("About 0 of yours went to Junk in the %s (0 to 0), and about 1 spam came through (0 to 3).", want) {
			t.Error(got)
		}
	}
	s.Journal.Reading = true
	if got := newView(s).Promise(); got != "" {
		t.Error(got)
	}
}

// Of a hundred answers ten are read, and stand for all. The interval knows by how much chance misleads.
func TestSampledErrors(t *testing.T) {
	var one promise.Expected
	one.Add(.2, .1, .3, false)
	got, all := promise.Count{}, promise.Count{}
	for range 10 {
		got = got.Plus(scaled(one.Missed, 10))
	}
	for range 100 {
		all = all.Plus(one.Missed)
	}
	if got.N != 100 || math.Abs(got.Mean-all.Mean) > 1e-9 || math.Abs(got.Doubt-all.Doubt) > 1e-9 || got.Independent < all.Independent+35 {
		t.Errorf("%+v of %+v", got, all)
	}
	if scaled(one.Missed, 1) != one.Missed {
		t.Error("one is not one")
	}
}
