// Package alerttest holds the laws that every [stream.AlertPublisher] obeys, as a test
// suite, and [Memory], which keeps them in memory. A publisher applies it to itself in one test:
//
//	alerttest.Run(t, func(t *testing.T) alerttest.Subject {
//		conn := connect(t, startJetStream(t))
//		return alerttest.Subject{AlertPublisher: newAlerts(conn), Published: func() []stream.Alert { return read(conn) }}
//	})
package alerttest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hamlet/stream"
)

// A Subject is a publisher under test, with nothing published yet.
type Subject struct {
	stream.AlertPublisher
	Published func() []stream.Alert // what subscribers of Model see, in order
	Model     string                // of the alerts; "" means "default"
}

// Now returns the present in UTC, as a publisher sets it.
func Now() time.Time { return time.Now().UTC() }

// Run runs every law as a subtest, each on a new subject.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, law := range []struct {
		name string
		test func(t *testing.T, s Subject)
	}{
		{"order and content", order},
		{"each alert once", once},
		{"nothing to publish", nothing},
		{"refusals last", refused},
		{"an ended context", ended},
		{"concurrent publishers", concurrent},
	} {
		t.Run(law.name, func(t *testing.T) {
			s := open(t)
			if s.Model == "" {
				s.Model = "default"
			}
			law.test(t, s)
		})
	}
}

// alert returns a valid alert at an event count: label noise is over at odd counts, and a
// change is suspected at every fourth.
func (s *Subject) alert(event uint64) stream.Alert {
	a := stream.Alert{
		Incident: event, Transition: 1,
		Kind: stream.AlertConcept, State: stream.AlertRaised, Event: event, Level: 25, Reference: .2, Threshold: 24,
		Body: stream.AlertVector, Reading: "mail means something else", Model: s.Model, Partition: 3,
	}
	switch {
	case event%4 == 0:
		a.Kind, a.State = stream.AlertUnknown, stream.AlertSuspected
	case event%2 == 1:
		a.Kind, a.State, a.Transition, a.Body = stream.AlertLabelNoise, stream.AlertCleared, 3, stream.AlertText
		a.Labels = &stream.LabelReport{
			Epsilon: .03, SNR: 9, NoiseGrade: -.5,
			HamCalledSpam: stream.FlipRate{Known: true, Rate: .19, Low: .15, High: .24}, SpamCalledHam: stream.FlipRate{High: 1},
			Suspects: []stream.Suspect{{ID: "a", Source: "desk", Phi: .01}},
			Sources:  []stream.SourceRate{{Source: "desk", Events: 50, FlipRate: .3, Low: .2, High: .4}},
		}
	}
	return a
}

func (s *Subject) publish(t *testing.T, alerts ...stream.Alert) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Publish(ctx, alerts...); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

func (s *Subject) want(t *testing.T, alerts ...stream.Alert) {
	t.Helper()
	options := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(stream.Alert{}, "Time")}
	if d := cmp.Diff(alerts, s.Published(), options); d != "" {
		t.Errorf("published (-want +got):\n%s", d)
	}
}

// Subscribers see every alert when Publish returns: in order, with every field,
// and with the time of its publication. The caller's alerts stay as they were.
func order(t *testing.T, s Subject) {
	given := []stream.Alert{s.alert(1), s.alert(2), s.alert(3)}
	before := slices.Clone(given)
	start := Now()
	s.publish(t, given...)
	s.publish(t, s.alert(4))
	end := Now()
	s.want(t, s.alert(1), s.alert(2), s.alert(3), s.alert(4))
	for _, a := range s.Published() {
		if a.Time.Before(start) || a.Time.After(end) {
			t.Errorf("alert %d has the time %v, want one from %v to %v", a.Event, a.Time, start, end)
		}
	}
	if d := cmp.Diff(before, given); d != "" {
		t.Errorf("Publish changed its arguments (-before +after):\n%s", d)
	}
}

// A copy of an alert is acknowledged and not published again. Alerts that differ
// in partition, incident or transition are no copies, even where one event made them.
func once(t *testing.T, s Subject) {
	first, second, other := s.alert(1), s.alert(2), s.alert(2)
	other.Partition++
	incident := s.alert(2)
	incident.Incident, incident.Transition = 1, 2
	transition := incident
	transition.Transition, transition.State = 4, stream.AlertCleared
	s.publish(t, first)
	s.publish(t, first, second)
	s.publish(t, second, other, incident, transition, first)
	s.want(t, first, second, other, incident, transition)
}

func nothing(t *testing.T, s Subject) {
	s.publish(t)
	s.want(t)
}

// An alert that no subscriber could read, or whose copies nobody could tell, is refused
// with [stream.ErrAlerts]. The alerts before it are published, and the publisher goes on
// working.
func refused(t *testing.T, s Subject) {
	invalid, nameless, lone := s.alert(2), s.alert(2), s.alert(2)
	invalid.Event, nameless.Model = 0, ""
	lone.Incident, lone.Transition = 0, 0
	for _, wrong := range []stream.Alert{invalid, nameless, lone} {
		if err := s.Publish(t.Context(), s.alert(1), wrong); !errors.Is(err, stream.ErrAlerts) {
			t.Errorf("error %v, want stream.ErrAlerts", err)
		}
	}
	s.publish(t, s.alert(4))
	s.want(t, s.alert(1), s.alert(4))
}

// Publish under an ended context returns the context's error, which is no refusal.
func ended(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Publish(ctx, s.alert(1))
	if !errors.Is(err, context.Canceled) || errors.Is(err, stream.ErrAlerts) {
		t.Errorf("error %v, want context.Canceled and not stream.ErrAlerts", err)
	}
	s.publish(t, s.alert(1))
	s.want(t, s.alert(1))
}

// Publish may be called concurrently.
func concurrent(t *testing.T, s Subject) {
	const n = 20
	var wg sync.WaitGroup
	for range 2 { // the second is a copy of the first
		for event := range uint64(n) {
			wg.Go(func() {
				if err := s.Publish(t.Context(), s.alert(event+1)); err != nil {
					t.Errorf("publish alert %d: %v", event+1, err)
				}
			})
		}
	}
	wg.Wait()
	var ids []string
	for _, a := range s.Published() {
		ids = append(ids, a.MessageID())
	}
	slices.Sort(ids)
	if got := len(slices.Compact(slices.Clone(ids))); len(ids) != n || got != n {
		t.Errorf("%d alerts were published, %d of them different, want %d:\n%s", len(ids), got, n, strings.Join(ids, "\n"))
	}
}
