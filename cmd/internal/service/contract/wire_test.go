package contract

import (
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// fill gives every exported field below v a value that is not zero.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 20, 10, 0, 0, 5e6, time.UTC)))
		return
	case v.Type() == reflect.TypeFor[stream.Decision]():
		v.Set(reflect.ValueOf(stream.DecideUnsure))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint64:
		v.SetUint(3)
	case reflect.Float64:
		v.SetFloat(0.25)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Tag.Get("json") != "-" {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), reflect.ValueOf("x"))
	default:
		panic("fill: " + v.Type().String())
	}
}

func full[T any]() (v T) {
	fill(reflect.ValueOf(&v).Elem())
	return v
}

// marshal is the encoder of answers.
func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fullAlert() stream.Alert {
	return stream.Alert{
		Incident: 6102, Transition: 2, Kind: stream.AlertLabelNoise, State: stream.AlertRaised, Accused: "desk", Event: 6250,
		Level: -4.1, Reference: -3.8, Threshold: 0.2, Body: stream.AlertText, Reading: "labels went bad",
		Labels: &stream.LabelReport{
			Epsilon: 0.03, SNR: 8.3, NoiseGrade: 0.4, HamCalledSpam: stream.FlipRate{Known: true, Rate: 0.2, Low: 0.1, High: 0.3}, SpamCalledHam: stream.FlipRate{High: 1},
			Suspects: []stream.Suspect{full[stream.Suspect]()}, Sources: []stream.SourceRate{full[stream.SourceRate]()},
		},
		Model: "default", Time: full[time.Time](),
	}
}

func fullAction() stream.AuditEntry {
	e := full[stream.AuditEntry]()
	e.Model, e.Outcome = nats.DefaultModel, stream.AuditDone
	return e
}

var (
	label   = stream.JournalEntry{Time: full[time.Time](), ID: "5f3c", Label: stream.Spam, Source: "users", Model: "default"}
	doubted = stream.JournalEntry{
		Time: full[time.Time](), ID: "5f3c", Label: stream.Spam, Source: "users", Model: "default", Withdrawn: true, Tenant: "t", P: .1, Doubt: &stream.Doubt{Phi: .2, Offset: 3},
	}
	learnt = stream.Event{
		ID: "1", Source: "s", Tenant: "t", Label: stream.Spam, Body: stream.Body{Kind: stream.Text, Text: "x"},
		Sampled: stream.Sampled{Probability: 0.5, Least: 0.02, Why: stream.SampledReview},
	}
	assumed = stream.Event{
		ID: "2", Time: full[time.Time](), Source: "answers", Tenant: "t", Action: stream.Assume, Of: "5f3c", OwnOnly: true, Label: stream.Ham,
		Body: stream.Body{Kind: stream.Mail, Mail: []byte("Subject: x\n\nx\n")},
	}
)

// What the encoders write is what the document says: with every field and with as few as there
// can be.
func TestPayloadsAgainstEncoders(t *testing.T) {
	v := newValidator(t)
	check := func(message string, value []byte, err error, full bool) {
		t.Helper()
		if err == nil {
			err = v.payload(t, message, value, full)
		}
		if err != nil {
			t.Errorf("%s: %s: %v", message, value, err)
		}
	}
	check("Verdict", marshal(t, full[stream.Verdict]()), nil, true)
	check("Verdict", marshal(t, stream.Verdict{Decision: stream.DecideHam, Model: stream.ModelRef{Positions: []int64{}}}), nil, false)
	check("Verdicts", marshal(t, []stream.Verdict{full[stream.Verdict]()}), nil, false)
	check("Info", marshal(t, full[stream.Info]()), nil, true)
	check("Info", marshal(t, stream.Info{Model: stream.ModelRef{Positions: []int64{}}}), nil, false)

	receipt := full[stream.Receipt]()
	receipt.Action, receipt.Outcome = stream.Correct.String(), stream.OutcomeReplaced
	b, err := receipt.AppendJSON(nil)
	check("Receipt", b, err, true)
	b, err = (&stream.Receipt{Action: stream.Unlearn.String(), Outcome: stream.OutcomeUnchanged}).AppendJSON(nil)
	check("Receipt", b, err, false)

	alert := fullAlert()
	b, err = alert.AppendJSON(nil)
	check("Alert", b, err, true)
	b, err = (&stream.Alert{
		Incident: 1, Transition: 1, Kind: stream.AlertUnknown, State: stream.AlertSuspected, Event: 1, Body: stream.AlertVector, Model: "m", Time: full[time.Time](),
	}).AppendJSON(nil)
	check("Alert", b, err, false)

	decision := full[stream.JournalEntry]()
	b, err = decision.AppendJSON(nil)
	check("Decision", b, err, true)
	b, err = (&stream.JournalEntry{Verdict: stream.DecideHam}).AppendJSON(nil)
	check("Decision", b, err, false)
	b, err = doubted.AppendJSON(nil)
	check("DecisionLabel", b, err, true)
	b, err = label.AppendJSON(nil)
	check("DecisionLabel", b, err, false)

	action := fullAction()
	b, err = action.AppendJSON(nil)
	check("Action", b, err, true)
	b, err = (&stream.AuditEntry{Outcome: stream.AuditIntended}).AppendJSON(nil)
	check("Action", b, err, false)

	for _, s := range []stream.Standing{{ID: "1", Source: "s", Role: stream.Muted, Time: full[time.Time]()}, {ID: "1", Source: "s"}} {
		b, headers, err := s.EncodeRecord()
		check("Standing", b, err, !s.Time.IsZero())
		v.record(t, "Standing", headers)
	}
	body := v.doc["components"].(map[string]any)["schemas"].(map[string]any)["Event"].(map[string]any)["properties"].(map[string]any)
	written := map[string]bool{}
	for _, e := range []stream.Event{learnt, assumed, {ID: "3", Label: stream.Ham, Body: stream.Body{Kind: stream.Vector, Vector: []stream.Number{{Name: "a", Value: 1}}}}} {
		b, err := e.AppendJSON(nil)
		check("EventJSON", b, err, false)
		for field := range body {
			written[field] = written[field] || strings.Contains(string(b), `"`+field+`":`)
		}
		b, headers, err := e.EncodeRecord()
		check("EventProtobuf", b, err, false)
		v.record(t, "EventProtobuf", headers)
		d := stream.DeadLetter{Reason: "id: missing", Topic: "t", Time: e.Time, Truncated: len(e.Tenant)}
		v.record(t, "DeadLetter", d.AppendHeaders(headers))
		v.record(t, "DeadLetter", d.AppendHeaders(nil))
	}
	for field, ok := range written {
		if !ok {
			t.Errorf("nobody writes an event's %s", field)
		}
	}
}

// record holds the headers of a Kafka record against the document.
func (v *validator) record(t testing.TB, message string, headers []stream.Header) {
	t.Helper()
	all := map[string]string{}
	for _, h := range headers {
		all[h.Key] = string(h.Value)
	}
	if err := v.headers(t, message, all); err != nil {
		t.Errorf("%s: %v: %v", message, all, err)
	}
}

// Constants of the schemas that the code enforces elsewhere.
func TestEventsAgainstDecoder(t *testing.T) {
	_, err := stream.DecodeJSON([]byte(`{"?":1}`))
	_, known, _ := strings.Cut(err.Error(), "known are ")
	for _, field := range strings.Split(known, ", ") {
		if recorded()["properties"].(Schema)[field] == nil {
			t.Errorf("an event's %s is not in the document", field)
		}
	}
}

// A scorer answers so that every field of an answer is there.
type scorer struct{}

func (scorer) Score(_ context.Context, requests []*stream.Event, _ bool) ([]stream.Verdict, error) {
	verdicts := make([]stream.Verdict, len(requests))
	for i := range verdicts {
		verdicts[i] = full[stream.Verdict]()
	}
	return verdicts, nil
}

func (scorer) Info(context.Context) (stream.Info, error) { return full[stream.Info](), nil }

// Every message that goes over NATS is on a channel of the document and satisfies it; and
// every channel carries one.
func TestWireAgainstDocument(t *testing.T) {
	server, err := embedded.StartNATS(embedded.NATSOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conn, err := nats.Connect(nats.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var (
		mu   sync.Mutex
		sent []*natsgo.Msg
	)
	for _, subject := range []string{"hamlet.>", "$O.>", natsgo.InboxPrefix + ">"} {
		if _, err := conn.Subscribe(subject, func(m *natsgo.Msg) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, m)
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(stream.WithTrace(t.Context(), stream.ParseTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")), time.Minute)
	defer cancel()
	for _, model := range []string{nats.DefaultModel, "billing"} {
		say(t, ctx, conn, model)
	}
	if err := conn.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	if err := conn.Barrier(func() { close(done) }); err != nil {
		t.Fatal(err)
	}
	<-done

	v, seen := newValidator(t), map[string]bool{}
	mu.Lock()
	defer mu.Unlock()
	for _, m := range sent {
		c := channelOf(m.Subject)
		if strings.HasPrefix(m.Subject, natsgo.InboxPrefix) {
			if strings.Contains(string(m.Data), `"stream":`) || strings.Contains(string(m.Data), "io.nats.jetstream") {
				continue // JetStream's answer
			}
			c = &channel{name: "answers", carries: []string{"Verdict", "Verdicts", "Info", "Error"}}
		}
		if c == nil {
			t.Errorf("%s is no channel of the document", m.Subject)
			continue
		}
		headers := map[string]string{}
		for name, values := range m.Header {
			if !strings.HasPrefix(name, "Nats-Expected-") {
				headers[name] = values[0]
			}
		}
		var errs []error
		fits := slices.ContainsFunc(c.carries, func(message string) bool {
			kind := v.doc["components"].(map[string]any)["messages"].(map[string]any)[message].(map[string]any)["contentType"]
			if said := headers["Content-Type"]; said != "" && said != kind {
				return false
			}
			err := v.headers(t, message, headers)
			for _, line := range strings.Split(strings.TrimSuffix(string(m.Data), "\n"), "\n") {
				if kind != lines {
					line = string(m.Data)
				}
				if err == nil {
					err = v.payload(t, message, []byte(line), false)
				}
			}
			if err != nil {
				errs = append(errs, err)
				return false
			}
			seen[c.name+"/"+message] = true
			return true
		})
		if !fits {
			t.Errorf("%s: no message of the channel fits %v %.200s: %v", m.Subject, headers, m.Data, errs)
		}
	}
	for _, c := range channels {
		for _, message := range c.carries {
			if !c.kafka && !seen[c.name+"/"+message] {
				t.Errorf("%s: no %s was seen", c.address, message)
			}
		}
	}
	for _, message := range []string{"Verdict", "Verdicts", "Info", "Error"} {
		if !seen["answers/"+message] {
			t.Errorf("no answer was a %s", message)
		}
	}
}

// channelOf returns the first channel of NATS that has a subject.
func channelOf(subject string) *channel {
	for i := range channels {
		c := &channels[i]
		pattern := regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(c.address), `[^.]+`)
		if !c.kafka && regexp.MustCompile("^"+pattern+"$").MatchString(subject) {
			return c
		}
	}
	return nil
}

// say makes every kind of message about a model.
func say(t *testing.T, ctx context.Context, conn *natsgo.Conn, model string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	service, err := nats.NewService(conn, nats.ServiceConfig{Model: model})
	must(err)
	serving, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- service.Serve(serving, scorer{}, nil) }()
	select {
	case <-service.Ready():
	case err := <-stopped:
		t.Fatal(err)
	}
	client, err := nats.NewClient(conn, model)
	must(err)
	for _, explain := range []bool{false, true} {
		for _, asked := range [][2]string{{questions.Mail, "Subject: x\n\nx\n"}, {questions.Text, "x"}, {questions.JSON, `{"id":"1","text":"x"}`}, {questions.JSON, `[{"text":"x"}]`}} {
			_, err := client.Ask(ctx, questions.Question{Body: []byte(asked[1]), ContentType: asked[0], Explain: explain, Tenant: "example.org", Door: "http", Words: 30})
			must(err)
		}
	}
	_, err = client.Info(ctx)
	must(err)
	if _, err := client.Ask(ctx, questions.Question{Body: []byte("\xff"), ContentType: questions.Text}); err == nil {
		t.Error("a text that is not UTF-8 has a verdict")
	}
	stop()
	must(<-stopped)

	alerts, err := nats.NewAlerts(conn, nats.AlertsConfig{})
	must(err)
	alert := fullAlert()
	alert.Model = model
	must(alerts.Publish(ctx, alert))

	journal, err := nats.NewJournal(conn, nats.JournalConfig{Model: model})
	must(err)
	must(journal.Append(ctx, "1", []stream.JournalEntry{full[stream.JournalEntry](), full[stream.JournalEntry]()}))
	labels, err := nats.NewJournal(conn, nats.JournalConfig{Model: model, Labels: true})
	must(err)
	must(labels.Append(ctx, "2", []stream.JournalEntry{label}))

	audit, err := nats.NewAudit(conn, model)
	must(err)
	action := fullAction()
	action.Model = model
	must(audit.Append(ctx, action))

	waiting, err := nats.NewWaiting(conn, nats.WaitingConfig{Model: model, After: time.Hour})
	must(err)
	must(waiting.Put(ctx, &assumed))

	kept, err := nats.NewMailArchive(conn, nats.MailArchiveConfig{Model: model, Age: time.Hour})
	must(err)
	must(kept.Put(ctx, &nats.ArchivedMail{Identity: "5f3c", Tenant: "t", Message: assumed.Body.Mail}))
}
