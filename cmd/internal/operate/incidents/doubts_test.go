package incidents

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// An incident that NATS does not keep withdraws what is expected all the same, if a scorer has it open. Where neither
// can say it, that is the reason.
func TestDoubtsWithoutAlerts(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	log := NewLog(r.conn, "default", func() time.Time { return now })
	says := func(what, want string) {
		t.Helper()
		now = now.Add(time.Minute)
		all, err := log.Open(t.Context())
		if got := all.Doubts.Open(); err != nil || got != want {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	says("nobody", "neither NATS nor a scorer says whether an incident is open")

	if err := r.alerts.Prepare(t.Context()); err != nil { // as a learner does that starts
		t.Fatal(err)
	}
	says("a learner that publishes alerts", "")

	var served atomic.Pointer[stream.Info]
	serve := func(model string, open ...stream.OpenIncident) {
		served.Store(&stream.Info{Model: stream.ModelRef{Name: model}, Incidents: open})
	}
	serve("default")
	scorer, err := r.conn.Subscribe(nats.Subject(questions.Info, "default"), func(m *natsgo.Msg) {
		body, err := json.Marshal(served.Load())
		if err == nil {
			err = m.Respond(body)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	says("a scorer without an incident", "")
	serve("default", stream.OpenIncident{Incident: "default.0.7", Kind: stream.AlertCovariate})
	says("unusual mail", "")
	concept := stream.OpenIncident{Incident: "default.0.7", Kind: stream.AlertConcept}
	serve("default", concept)
	says("an incident", "an incident of concept is open")
	serve("shadow", concept)
	says("of another model", "")
	serve("default", concept)

	r.publish(published(7, 1, stream.AlertConcept, stream.AlertRaised, 8), published(7, 2, stream.AlertConcept, stream.AlertCleared, 9))
	says("NATS knows that it is over, and the served model is older", "")
	if err := scorer.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	says("alerts, and no scorer", "")
	if _, err := r.conn.Request(nats.IncidentSubject("default"), []byte("{"), time.Minute); err != nil {
		t.Fatal(err)
	}
	says("a damaged alert", "neither NATS nor a scorer says whether an incident is open")
}
