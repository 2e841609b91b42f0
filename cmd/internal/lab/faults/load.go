package faults

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/lab/product"
	"hamlet/stream"
	"hamlet/stream/mail"
	streamnats "hamlet/stream/nats"
	"hamlet/stream/questions"
)

// A fingerprint is the hash of what an event says to a model.
type fingerprint [sha256.Size]byte

// fingerprintOf returns the fingerprint of an event, on whichever side of Kafka.
func fingerprintOf(e *stream.Event) fingerprint {
	h := sha256.New()
	for _, field := range [][]byte{[]byte(e.ID), []byte(e.Source), []byte(e.Tenant), []byte(e.Label.String()),
		e.Body.Mail} {
		fmt.Fprintf(h, "%d:", len(field))
		h.Write(field)
	}
	return fingerprint(h.Sum(nil))
}

// A ledger holds what was sent to ingest. It may be used concurrently.
type ledger struct {
	mu    sync.Mutex
	sent  map[string]fingerprint // by ID: every event that ingest may have written
	acked map[string]struct{}    // those that it has acknowledged
}

func newLedger() *ledger {
	return &ledger{sent: map[string]fingerprint{}, acked: map[string]struct{}{}}
}

func (l *ledger) send(e *stream.Event) {
	l.mu.Lock()
	l.sent[e.ID] = fingerprintOf(e)
	l.mu.Unlock()
}

func (l *ledger) ack(ids ...string) {
	l.mu.Lock()
	for _, id := range ids {
		l.acked[id] = struct{}{}
	}
	l.mu.Unlock()
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// A sender sends synthetic mail to an ingest over HTTP, in requests of one to eight
// events. It repeats a request until it is acknowledged.
type sender struct {
	url    string
	rate   float64 // events a second
	ledger *ledger
	prefix string // of the events' IDs

	mu        sync.Mutex
	generator *synthetic.Generator
	random    *rand.Rand
	number    int
}

const (
	senders  = 3 // requests under way at once
	mostSent = 8 // events of a request
	tenants  = 8
	token    = "faults"
)

func newSender(url, prefix string, seed uint64, rate float64) (*sender, error) {
	generator, err := synthetic.New(synthetic.Config{Seed: seed})
	if err != nil {
		return nil, err
	}
	return &sender{url: url, rate: rate, ledger: newLedger(), prefix: prefix,
		generator: generator, random: rand.New(rand.NewPCG(seed, 1))}, nil
}

// next returns the next request and the IDs in it.
func (s *sender) next() (body []byte, ids []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 1 + s.random.IntN(mostSent) {
		item, err := s.generator.Next()
		if err != nil {
			return nil, nil, err
		}
		e := item.Event
		s.number++
		e.ID = fmt.Sprintf("%s-%d", s.prefix, s.number)
		e.Tenant = fmt.Sprintf("tenant-%d", s.number%tenants)
		if body, err = e.AppendJSON(body); err != nil {
			return nil, nil, err
		}
		body = append(body, '\n')
		if e.Body.Mail, err = mail.Reduce(e.Body.Mail); err != nil { // as ingest does
			return nil, nil, err
		}
		s.ledger.send(&e)
		ids = append(ids, e.ID)
	}
	return body, ids, nil
}

// run sends until stop is closed, and returns when everything sent is acknowledged or
// ctx ends.
func (s *sender) run(ctx context.Context, stop <-chan struct{}) error {
	client := &http.Client{Timeout: 6 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	errs := make(chan error, senders)
	for range senders {
		wg.Go(func() {
			errs <- s.work(ctx, client, stop)
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *sender) work(ctx context.Context, client *http.Client, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		body, ids, err := s.next()
		if err != nil {
			return err
		}
		begun := time.Now()
		for !s.post(ctx, client, body) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			wait(ctx, 100*time.Millisecond)
		}
		s.ledger.ack(ids...)
		pace := time.Duration(float64(len(ids)*senders) / s.rate * float64(time.Second))
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pace - time.Since(begun)):
		}
	}
}

// post sends a request and reports whether ingest has acknowledged it.
func (s *sender) post(ctx context.Context, client *http.Client, body []byte) bool {
	status, _, err := product.Post(ctx, client, s.url, product.Labels, token, body)
	return err == nil && status == http.StatusAccepted
}

// newQuestions makes n mails to ask about that are not among the events of seed.
func newQuestions(n int, seed uint64) (mails [][]byte, err error) {
	generator, err := synthetic.New(synthetic.Config{Seed: seed ^ 0x5155})
	if err != nil {
		return nil, err
	}
	for range n {
		item, err := generator.Next()
		if err != nil {
			return nil, err
		}
		mails = append(mails, item.Event.Body.Mail)
	}
	return mails, nil
}

// An answer is what a scorer said of a question.
type answer struct {
	question int
	model    string  // the SHA-256 that the answer names
	next     int64   // the position that it names; -1: not one
	p, z     float64 // probability, log-odds
	lo, hi   float64
}

// An asker asks scorers and keeps their distinct answers. It may be used concurrently.
type asker struct {
	url, model string
	questions  [][]byte // mails
	rate       float64  // questions a second

	mu       sync.Mutex
	answers  map[string]answer // by question, model and position
	received int               // answers received, equal ones too
	differ   []string          // two answers that should be equal and are not
	last     time.Time         // of the last answer; zero: none yet
	gaps     func(from, to time.Time)
}

// run asks until ctx ends. It connects again for ever.
func (a *asker) run(ctx context.Context) {
	var conn *natsgo.Conn
	for ctx.Err() == nil {
		var err error
		if conn, err = streamnats.Connect(streamnats.Config{URL: a.url, Name: "hamlet-lab-faults",
			Wait: true}); err == nil {
			break
		}
		wait(ctx, 100*time.Millisecond)
	}
	if conn == nil {
		return
	}
	defer conn.Close()
	client, err := streamnats.NewClient(conn, a.model)
	if err != nil {
		panic(err) // the campaign chose the name
	}
	for n := 0; ctx.Err() == nil; n++ {
		i := n % len(a.questions)
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		verdicts, err := client.Ask(attempt, questions.Question{Body: a.questions[i], ContentType: questions.Mail})
		cancel()
		if err == nil && len(verdicts) == 1 {
			a.note(i, &verdicts[0])
		}
		wait(ctx, time.Duration(float64(time.Second)/a.rate))
	}
}

// note keeps an answer.
func (a *asker) note(question int, v *stream.Verdict) {
	got := answer{question: question, model: v.Model.SHA256, next: -1, p: v.P, z: v.LogOdds, lo: v.Interval[0],
		hi: v.Interval[1]}
	if len(v.Model.Positions) == 1 {
		got.next = v.Model.Positions[0]
	}
	key := fmt.Sprint(question, got.model, got.next)
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.last.IsZero() && a.gaps != nil {
		a.gaps(a.last, now)
	}
	a.last = now
	a.received++
	if before, ok := a.answers[key]; ok {
		if !sameAnswer(&before, &got) {
			a.differ = append(a.differ, fmt.Sprintf("question %d: %+v, and from the same model %+v", question,
				before, got))
		}
		return
	}
	a.answers[key] = got
}

func sameAnswer(a, b *answer) bool {
	return a.p == b.p && a.z == b.z && a.lo == b.lo && a.hi == b.hi
}

// take returns the answers since the last call.
func (a *asker) take() (answers []answer, received int, differ []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, got := range a.answers {
		answers = append(answers, got)
	}
	received, differ = a.received, a.differ
	a.answers, a.received, a.differ = map[string]answer{}, 0, nil
	return answers, received, differ
}

// count returns how many answers have come since the last take.
func (a *asker) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.received
}

// rest forgets when the last answer came: what follows is no pause.
func (a *asker) rest() {
	a.mu.Lock()
	a.last = time.Time{}
	a.mu.Unlock()
}
