package withdraw

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
	"hamlet/stream"
)

// planned plans the withdrawal of all labels of a liar.
func (r *rig) planned(servers Servers) *Plan {
	r.t.Helper()
	since, err := ParseBound("from", "1", "default", time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	read := 0
	plan, err := Make(r.t.Context(), servers, &Request{Model: "default", Source: "liar", Since: since, Recent: 5, SpamAt: 0.9, HamAt: 0.1}, func(p Progress) {
		if p.Doing != "reading" || p.Offset >= p.End {
			r.t.Errorf("%+v", p)
		}
		read++
	})
	if err != nil || read == 0 {
		r.t.Fatal(read, err)
	}
	return plan
}

func ignore(Progress) {}

// A plan is written later as it was shown, though others have labelled meanwhile. It is
// refused once the labels have left the window.
func TestAPlanIsWrittenAsItWasShown(t *testing.T) {
	r := newRig(t)
	servers := Servers{Kafka: r.kafka, Store: r.store}
	var events []stream.Event
	for i := range 20 {
		source := []string{"desk", "liar"}[i%2]
		events = append(events, label(i, source, source == "liar"))
	}
	r.write(events...)
	r.learn()
	plan := r.planned(servers)
	if plan.Withdrawable != 10 || plan.Oldest.IsZero() || r.end() != 20 {
		t.Fatalf("planned %d, the log ends at %d", plan.Withdrawable, r.end())
	}
	r.write(label(20, "desk", false), label(21, "liar", true))
	if err := plan.Recheck(t.Context(), servers, ignore); err != nil {
		t.Errorf("two events later: %v", err)
	}
	if n, err := plan.Write(t.Context(), servers, ignore); err != nil || n != 10 || r.end() != 32 || plan.Until != 32 {
		t.Errorf("%d written, %v, the log ends at %d", n, err, r.end())
	}
	of := map[string]bool{}
	err := follow.Range(t.Context(), follow.Topic(r.log, r.kafka), 22, 32, func(record *stream.Record) error {
		e, err := stream.DecodeRecord(record.Headers, record.Value)
		of[e.Of] = e.Action == stream.Unlearn
		return err
	})
	if err != nil || len(of) != 10 || of["e21"] || !of["e1"] || !of["e19"] {
		t.Errorf("withdrawn are %v, %v", of, err)
	}
	if saved, err := plan.Saved(t.Context(), servers, time.Nanosecond); err != nil || saved {
		t.Errorf("no learner runs, and it is saved: %v, %v", saved, err)
	}
	r.learn()
	if err := plan.Recheck(t.Context(), servers, ignore); err != nil {
		t.Errorf("all are withdrawn: %v", err)
	}

	late := r.planned(servers)
	if late.Withdrawable != 1 {
		t.Fatalf("planned %d more, want that of event 21", late.Withdrawable)
	}
	events = nil
	for i := range 2500 {
		events = append(events, label(1000+i, "desk", false))
	}
	r.write(events...)
	if err := late.Recheck(t.Context(), servers, ignore); err == nil || !strings.Contains(err.Error(), "1 of 1 labels have left the window") {
		t.Errorf("2,500 events later: %v", err)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Make(ended, servers, &Request{Model: "default", Source: "liar", Since: Bound{event: 1}}, ignore); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A plan is not written to a log that has something else where its labels were.
func TestAPlanOfAnotherLog(t *testing.T) {
	r := newRig(t)
	servers := Servers{Kafka: r.kafka, Store: r.store}
	r.write(label(0, "desk", false), label(1, "liar", true), label(2, "desk", false))
	r.learn()
	plan := r.planned(servers)
	plan.offsets[0] = 2
	for doing, err := range map[string]error{
		"check": plan.Recheck(t.Context(), servers, ignore),
		"write": func() error { _, err := plan.Write(t.Context(), servers, ignore); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), "another record at offset 2") {
			t.Errorf("%s: %v", doing, err)
		}
	}
	if r.end() != 3 {
		t.Errorf("something is written: the log ends at %d", r.end())
	}
	c := r.head()
	c.Position = state.Position{}.Advance(0, nil, []byte("x"))
	lease, err := r.store.Seize(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	c.Epoch, c.Writer, c.Position.Next = lease.Epoch, lease.Writer, 9
	if _, err := r.store.Save(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := plan.Recheck(t.Context(), servers, ignore); err == nil || !strings.Contains(err.Error(), "ends at 3") {
		t.Errorf("a shorter log: %v", err)
	}
}
