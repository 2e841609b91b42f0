package nats_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

const letter = "From: a@example.org\r\nSubject: hello\r\n\r\nHow are you?\r\n"

func TestEveryTypeOfRequest(t *testing.T) {
	server := startServer(t)
	var got []*stream.Event
	serve(t, connect(t, server), scorer{score: func(_ context.Context, requests []*stream.Event, explain bool) ([]stream.Verdict, error) {
		got = requests
		verdicts := half(requests)
		if explain {
			verdicts[0].Reasons = []stream.Reason{{Name: "bias", Contribution: -1, SD: 0.5}}
		}
		return verdicts, nil
	}}, nats.ServiceConfig{})
	c := client(t, connect(t, server), "")

	for _, tt := range []struct {
		contentType, body string
		kind              stream.Kind
	}{
		{"message/rfc822", letter, stream.Mail},
		{"text/plain", "hello", stream.Text},
		{"text/plain; charset=UTF-8", "grüße", stream.Text},
		{"application/json", `{"id": "a", "text": "hello"}`, stream.Text},
		{"application/json", `{"mail": "RnJvbTogYUBiCgpoZWxsbwo="}`, stream.Mail},
		{"application/json", ` {"vector": {"b": 1, "a": 2}}`, stream.Vector},
	} {
		for _, explain := range []bool{false, true} {
			verdicts, err := c.Ask(patience(t), questions.Question{Body: []byte(tt.body), ContentType: tt.contentType, Explain: explain})
			if err != nil {
				t.Fatalf("%s %s: %v", tt.contentType, tt.body, err)
			}
			if len(verdicts) != 1 || verdicts[0].P != 0.5 || (len(verdicts[0].Reasons) == 1) != explain {
				t.Errorf("%s, explain %v: verdicts %+v", tt.contentType, explain, verdicts)
			}
			if len(got) != 1 || got[0].Body.Kind != tt.kind {
				t.Errorf("%s: the scorer was asked about %+v", tt.contentType, got)
			}
		}
	}
}

func TestBatchIsAnsweredInOrder(t *testing.T) {
	server := startServer(t)
	serve(t, connect(t, server), scorer{}, nats.ServiceConfig{MaxBatch: 300})
	conn := connect(t, server)
	c := client(t, conn, "")

	var events []string
	var want, got []string
	for i := range 300 {
		id := fmt.Sprintf("id-%03d", i)
		want = append(want, id)
		events = append(events, fmt.Sprintf(`{"id": %q, "text": "x"}`, id))
	}
	verdicts, err := c.Ask(patience(t), questions.Question{Body: []byte("[" + strings.Join(events, ",") + "]"), ContentType: questions.JSON})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		got = append(got, v.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}

	// An array is answered with an array, of one and of none, too.
	for body, want := range map[string]int{`[]`: 0, `[{"text": "x"}]`: 1} {
		m := natsgo.NewMsg("hamlet.score")
		m.Header.Set("content-type", questions.JSON) // NATS keeps the case; HTTP bridges write it so
		m.Data = []byte(body)
		answer, err := conn.RequestMsgWithContext(patience(t), m)
		if err != nil {
			t.Fatal(err)
		}
		var list []stream.Verdict
		if err := json.Unmarshal(answer.Data, &list); err != nil || list == nil || len(list) != want {
			t.Errorf("%s: answered %s (%v)", body, answer.Data, err)
		}
	}
}

func TestErrorCodes(t *testing.T) {
	server := startServer(t)
	var observed sync.Map // code → times
	faulty := scorer{score: func(ctx context.Context, requests []*stream.Event, _ bool) ([]stream.Verdict, error) {
		switch requests[0].ID {
		case "no-model":
			return nil, &questions.Refusal{Code: questions.Unavailable, Text: "no model yet"}
		case "refused":
			return nil, fmt.Errorf("wrapped: %w", &questions.Refusal{Code: questions.BadRequest, Text: "dense name \"a\" is missing"})
		case "broken":
			return nil, errors.New("a secret")
		case "slow":
			<-ctx.Done()
			return nil, ctx.Err()
		case "panic":
			panic("out of cheese")
		case "nan":
			v := half(requests)
			v[0].P /= 0 * v[0].P
			return v, nil
		}
		return half(requests), nil
	}}
	cfg := nats.ServiceConfig{
		MaxBytes: 4096, MaxBatch: 3, Timeout: time.Minute,
	}
	observe := func(o questions.Observation) {
		n, _ := observed.LoadOrStore(o.Code, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
	}
	serveObserved(t, connect(t, server), faulty, cfg, observe)
	cfg.Model, cfg.Timeout = "hurried", 200*time.Millisecond // only its too slow answer may depend on the clock
	serveObserved(t, connect(t, server), faulty, cfg, observe)
	c, hurried := client(t, connect(t, server), ""), client(t, connect(t, server), "hurried")

	for _, tt := range []struct {
		name, contentType, body string
		code                    int
		says                    string
	}{
		{"no type", "", "x", 400, "possible are message/rfc822, text/plain and application/json"},
		{"broken type", "text/", "x", 400, "cannot be read"},
		{"unknown type", "image/png", "x", 400, `"image/png" is not known`},
		{"charset", "text/plain; charset=koi8-r", "x", 400, "UTF-8"},
		{"empty text", questions.Text, "", 400, "text: empty"},
		{"empty mail", questions.Mail, "", 400, "empty"},
		{"not UTF-8", questions.Text, "\xff", 400, "not UTF-8"},
		{"broken JSON", questions.JSON, `{"text": `, 400, "JSON"},
		{"unknown field", questions.JSON, `{"txet": "x"}`, 400, `"txet"`},
		{"labelled", questions.JSON, `{"text": "x", "label": "spam"}`, 400, "label"},
		{"no body", questions.JSON, `{}`, 400, "body"},
		{"bad item", questions.JSON, `[{"text": "x"}, {"text": ""}]`, 400, "[1]: text: empty"},
		{"large batch", questions.JSON, `[{"text":"x"},{"text":"x"},{"text":"x"},{"text":"x"}]`, 400, "more than 3"},
		{"too large", questions.Text, strings.Repeat("x", 4097), 413, "4097 bytes"},
		{"too large for the wire", questions.Text, strings.Repeat("x", 2<<20), 413, "the server carries"},
		{"no model", questions.JSON, `{"id": "no-model", "text": "x"}`, 503, "no model yet"},
		{"refused by the model", questions.JSON, `{"id": "refused", "text": "x"}`, 400, "dense name"},
		{"fault", questions.JSON, `{"id": "broken", "text": "x"}`, 500, "internal error"},
		{"too slow", questions.JSON, `{"id": "slow", "text": "x"}`, 503, "no answer within 200ms"},
		{"panic", questions.JSON, `{"id": "panic", "text": "x"}`, 500, "panicked"},
		{"NaN", questions.JSON, `{"id": "nan", "text": "x"}`, 500, "panicked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ask := c
			if tt.name == "too slow" {
				ask = hurried
			}
			verdicts, err := ask.Ask(patience(t), questions.Question{Body: []byte(tt.body), ContentType: tt.contentType})
			var e *questions.Refusal
			if !errors.As(err, &e) {
				t.Fatalf("answered %+v, %v; want an *questions.Refusal", verdicts, err)
			}
			if e.Code != tt.code || !strings.Contains(e.Text, tt.says) {
				t.Errorf("error %d %q, want %d with %q", e.Code, e.Text, tt.code, tt.says)
			}
			if strings.Contains(e.Text, "secret") || strings.ContainsAny(e.Text, "\r\n") {
				t.Errorf("the error text %q must not be on the wire", e.Text)
			}
		})
	}
	if _, err := c.Ask(patience(t), questions.Question{Body: []byte("x"), ContentType: questions.Text}); err != nil {
		t.Errorf("after all that: %v", err)
	}
	for code, want := range map[int]int64{200: 1, 400: 14, 413: 1, 500: 3, 503: 2} {
		n, _ := observed.Load(code)
		if got := n.(*atomic.Int64).Load(); got != want {
			t.Errorf("observed %d answers of code %d, want %d", got, code, want)
		}
	}
}

// One request is worked on, one waits, the third is refused at once; when the
// first is let go, both taken ones are answered.
func TestOverload(t *testing.T) {
	server := startServer(t)
	working, release := make(chan struct{}, 2), make(chan struct{})
	service, _ := serve(t, connect(t, server), scorer{score: func(_ context.Context, requests []*stream.Event, _ bool) ([]stream.Verdict, error) {
		working <- struct{}{}
		<-release
		return half(requests), nil
	}}, nats.ServiceConfig{Concurrency: 1, Queue: 1, Timeout: time.Minute})
	conn := connect(t, server)
	c := client(t, conn, "")

	answers := make(chan error, 2)
	ask := func() {
		_, err := c.Ask(patience(t), questions.Question{Body: []byte("x"), ContentType: questions.Text})
		answers <- err
	}
	go ask()
	<-working // the worker is busy, so the next one waits
	go ask()
	for service.InFlight() < 2 { // taken into the queue
		if err := conn.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Ask(patience(t), questions.Question{Body: []byte("x"), ContentType: questions.Text})
	var e *questions.Refusal
	if !errors.As(err, &e) || e.Code != 503 || !e.Overloaded() {
		t.Errorf("the third request: %v, want 503 overloaded", err)
	}
	if _, err := c.Info(patience(t)); err != nil {
		t.Errorf("info while overloaded: %v", err)
	}
	close(release)
	for range 2 {
		if err := <-answers; err != nil {
			t.Errorf("a taken request: %v", err)
		}
	}
}

// The queue is bounded in bytes, too: a few large requests fill it.
func TestOverloadOfBytes(t *testing.T) {
	server := startServer(t)
	working, release := make(chan struct{}, 8), make(chan struct{})
	service, _ := serve(t, connect(t, server), scorer{score: func(_ context.Context, requests []*stream.Event, _ bool) ([]stream.Verdict, error) {
		working <- struct{}{}
		<-release
		return half(requests), nil
	}}, nats.ServiceConfig{Concurrency: 1, Queue: 100, MaxBytes: 1000, QueueBytes: 2500, Timeout: time.Minute})
	conn := connect(t, server)
	c := client(t, conn, "")
	large := []byte(strings.Repeat("x", 1000))
	answers := make(chan error, 3)
	for i := range 3 { // one is worked on, two wait
		go func() {
			_, err := c.Ask(patience(t), questions.Question{Body: large, ContentType: questions.Text})
			answers <- err
		}()
		if i == 0 {
			<-working
		}
	}
	for service.InFlight() < 3 {
		if err := conn.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Ask(patience(t), questions.Question{Body: large, ContentType: questions.Text})
	var e *questions.Refusal
	if !errors.As(err, &e) || e.Code != 503 {
		t.Errorf("a request of 1000 bytes where 500 are free: %v, want 503", err)
	}
	close(release)
	for range 3 {
		if err := <-answers; err != nil {
			t.Errorf("a taken request: %v", err)
		}
	}
	if _, err := c.Ask(patience(t), questions.Question{Body: large, ContentType: questions.Text}); err != nil {
		t.Errorf("when the queue is empty again: %v", err)
	}
}

// A request that waited longer than the timeout is not processed.
func TestLateRequestsAreShed(t *testing.T) {
	// A machine that takes longer than this to begin with a request sheds the first
	// one, too: then the time for it was too short.
	for timeout := 50 * time.Millisecond; !shed(t, timeout); timeout *= 4 {
		if timeout > 20*time.Second {
			t.Fatalf("after %v no request is worked on", timeout)
		}
	}
}

// shed reports whether a service with a timeout had begun with a request when it
// was over, and checks what then becomes of one that waits.
func shed(t *testing.T, timeout time.Duration) bool {
	t.Helper()
	server := startServer(t)
	working, release := make(chan struct{}, 1), make(chan struct{})
	var worked atomic.Int64
	service, _ := serve(t, connect(t, server), scorer{score: func(ctx context.Context, requests []*stream.Event, _ bool) ([]stream.Verdict, error) {
		if worked.Add(1) == 1 {
			working <- struct{}{}
			<-release
			<-ctx.Done() // its own deadline has passed, too
			return nil, ctx.Err()
		}
		return half(requests), nil
	}}, nats.ServiceConfig{Concurrency: 1, Queue: 8, Timeout: timeout})
	conn := connect(t, server)
	c := client(t, conn, "")
	answers := make(chan error, 2)
	ask := func() {
		_, err := c.Ask(patience(t), questions.Question{Body: []byte("x"), ContentType: questions.Text})
		answers <- err
	}
	go ask()
	select {
	case <-working:
	case err := <-answers:
		t.Logf("with a timeout of %v: %v", timeout, err)
		return false
	}
	go ask()
	for service.InFlight() < 2 {
		if err := conn.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	// The second request arrived before now, so its deadline is before this one's.
	deadline, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	<-deadline.Done()
	close(release)
	var late int
	for range 2 {
		var e *questions.Refusal
		if err := <-answers; errors.As(err, &e) && e.Code == 503 {
			late++
		} else {
			t.Errorf("a late request: %v, want 503", err)
		}
	}
	if late != 2 || worked.Load() != 1 {
		t.Errorf("%d requests were late and %d worked on, want 2 and 1", late, worked.Load())
	}
	return true
}

func TestTwoServicesShareTheLoad(t *testing.T) {
	server := startServer(t)
	var served [2]atomic.Int64
	for i := range served {
		serve(t, connect(t, server), scorer{score: func(_ context.Context, requests []*stream.Event, _ bool) ([]stream.Verdict, error) {
			served[i].Add(1)
			return half(requests), nil
		}}, nats.ServiceConfig{})
	}
	c := client(t, connect(t, server), "")
	const requests = 200
	for range requests {
		if _, err := c.Ask(patience(t), questions.Question{Body: []byte("x"), ContentType: questions.Text}); err != nil {
			t.Fatal(err)
		}
	}
	// The server picks at random: fewer than 50 of 200 has probability 1e-12.
	a, b := served[0].Load(), served[1].Load()
	if a+b != requests || a < 50 || b < 50 {
		t.Errorf("the services answered %d and %d of %d requests", a, b, requests)
	}
}

func TestModelsHaveSubjectsOfTheirOwn(t *testing.T) {
	server := startServer(t)
	for _, model := range []string{"", "billing"} {
		serve(t, connect(t, server), scorer{info: func(context.Context) (stream.Info, error) {
			return stream.Info{Model: stream.ModelRef{Name: model}, Numerics: "n1"}, nil
		}}, nats.ServiceConfig{Model: model})
	}
	conn := connect(t, server)
	for model, want := range map[string]string{"default": "", "billing": "billing"} {
		info, err := client(t, conn, model).Info(patience(t))
		if err != nil || info.Model.Name != want || info.Numerics != "n1" {
			t.Errorf("info of %s: %+v, %v", model, info, err)
		}
	}
	_, err := client(t, conn, "nobody").Ask(patience(t), questions.Question{Body: []byte("x"), ContentType: questions.Text})
	if !errors.Is(err, questions.ErrNoAnswerer) || !strings.Contains(err.Error(), "hamlet.score.nobody") {
		t.Errorf("a model that nobody serves: %v, want questions.ErrNoAnswerer", err)
	}
}

// Requests that the service has taken, worked on or waiting, are answered
// after it was told to stop; later ones find nobody.
func TestStopAnswersWhatWasTaken(t *testing.T) {
	server := startServer(t)
	working, release := make(chan struct{}, 16), make(chan struct{})
	service, stop := serve(t, connect(t, server), scorer{score: func(_ context.Context, requests []*stream.Event, _ bool) ([]stream.Verdict, error) {
		working <- struct{}{}
		<-release
		return half(requests), nil
	}}, nats.ServiceConfig{Concurrency: 2, Timeout: time.Minute})
	conn := connect(t, server)
	c := client(t, conn, "")
	const requests = 10
	answers := make(chan error, requests)
	for range requests {
		go func() {
			_, err := c.Ask(patience(t), questions.Question{Body: []byte("x"), ContentType: questions.Text})
			answers <- err
		}()
	}
	for service.InFlight() < requests {
		if err := conn.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	<-working
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for { // until the server has seen the subscription end
		_, err := c.Info(patience(t))
		if errors.Is(err, questions.ErrNoAnswerer) {
			break
		}
	}
	select {
	case err := <-stopped:
		t.Errorf("Run returned %v while requests were in flight", err)
	default:
	}
	close(release)
	for range requests {
		if err := <-answers; err != nil {
			t.Errorf("a taken request: %v", err)
		}
	}
	if err := <-stopped; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// Stopping in the middle of a stream of requests loses none: each is answered
// or told that nobody listens.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	server := startServer(t)
	_, stop := serve(t, connect(t, server), scorer{}, nats.ServiceConfig{Concurrency: 2, Queue: 1000})
	c := client(t, connect(t, server), "")
	var answered, nobody atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				_, err := c.Ask(patience(t), questions.Question{Body: []byte("x"), ContentType: questions.Text})
				if errors.Is(err, questions.ErrNoAnswerer) {
					nobody.Add(1)
					return
				}
				if err != nil {
					t.Errorf("a request was lost: %v", err)
					return
				}
				answered.Add(1)
			}
		})
	}
	for answered.Load() < 100 {
		if _, err := c.Info(patience(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	wg.Wait()
	if nobody.Load() != 8 {
		t.Errorf("%d of 8 clients heard that nobody listens", nobody.Load())
	}
}

func TestAnswerTooLargeForTheWire(t *testing.T) {
	server := startServer(t)
	long := strings.Repeat("n", 2000)
	serve(t, connect(t, server), scorer{score: func(_ context.Context, requests []*stream.Event, _ bool) ([]stream.Verdict, error) {
		verdicts := half(requests)
		for i := range verdicts {
			verdicts[i].Reasons = []stream.Reason{{Name: long}}
		}
		return verdicts, nil
	}}, nats.ServiceConfig{})
	body := "[" + strings.Repeat(`{"text":"x"},`, 999) + `{"text":"x"}]`
	_, err := client(t, connect(t, server), "").Ask(patience(t), questions.Question{Body: []byte(body), ContentType: questions.JSON, Explain: true})
	var e *questions.Refusal
	if !errors.As(err, &e) || e.Code != 413 || !strings.Contains(e.Text, "fewer messages") {
		t.Errorf("an answer of 2 MB: %v, want 413", err)
	}
}

// $SRV.STATS has our own counts, because micro's end at the queue.
func TestDiscoveryAndStats(t *testing.T) {
	server := startServer(t)
	serve(t, connect(t, server), scorer{}, nats.ServiceConfig{})
	conn := connect(t, server)
	c := client(t, conn, "")
	for range 3 {
		if _, err := c.Ask(patience(t), questions.Question{Body: []byte("x"), ContentType: questions.Text}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Ask(patience(t), questions.Question{Body: nil, ContentType: questions.Text}); err == nil {
		t.Fatal("an empty text was scored")
	}
	answer, err := conn.RequestWithContext(patience(t), "$SRV.STATS.hamlet", nil)
	if err != nil {
		t.Fatal(err)
	}
	var stats micro.Stats
	if err := json.Unmarshal(answer.Data, &stats); err != nil {
		t.Fatal(err)
	}
	for _, e := range stats.Endpoints {
		if e.QueueGroup != "hamlet" {
			t.Errorf("%s is in the queue group %q", e.Name, e.QueueGroup)
		}
		if e.Name != questions.Score {
			continue
		}
		var own struct{ Answered, Refused int }
		if err := json.Unmarshal(e.Data, &own); err != nil || own.Answered != 3 || own.Refused != 1 {
			t.Errorf("stats of score: %s (%v)", e.Data, err)
		}
	}
	if len(stats.Endpoints) != 3 {
		t.Errorf("%d endpoints, want 3", len(stats.Endpoints))
	}
}

func TestServiceConfigReportsAll(t *testing.T) {
	_, err := nats.NewService(nil, nats.ServiceConfig{Model: "Ünï", Queue: -1})
	for _, want := range []string{"model name", "queue"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v doesn't name the %s", err, want)
		}
	}
}

// A connection closed under a service ends it with an error.
func TestConnectionClosedUnderTheService(t *testing.T) {
	server := startServer(t)
	conn := connect(t, server)
	service, err := nats.NewService(conn, nats.ServiceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- service.Serve(context.Background(), scorer{}, nil) }()
	<-service.Ready()
	conn.Close()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Run: %v, want an error that says that the connection was closed", err)
	}
	if err := service.Serve(context.Background(), scorer{}, nil); err == nil {
		t.Error("the service ran twice")
	}
}
