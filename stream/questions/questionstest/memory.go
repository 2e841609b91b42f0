package questionstest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"hamlet/stream"
	"hamlet/stream/questions"
)

// A Memory brings questions to answerers in this process. Its Serve may be called more than
// once: the answerers take turns. The zero value is ready.
type Memory struct {
	// MaxBatch bounds the events of a question; 0: 1000.
	MaxBatch int
	// Before, if not nil, is called before each question goes on its way, and again before its
	// answer does. Its error is the asker's.
	Before func(ctx context.Context) error

	mu       sync.Mutex
	serving  []*served // those who answer
	turn     int
	ready    chan struct{} // made and closed under mu
	inFlight int
}

// A served is one call of Serve.
type served struct {
	answerer questions.Answerer
	observe  func(questions.Observation)
	asked    sync.WaitGroup // questions that it has taken
}

// Serve implements [questions.Questions].
func (m *Memory) Serve(ctx context.Context, a questions.Answerer, observe func(questions.Observation)) error {
	if observe == nil {
		observe = func(questions.Observation) {}
	}
	s := &served{answerer: a, observe: observe}
	m.mu.Lock()
	m.serving = append(m.serving, s)
	ready := m.readyLocked()
	if len(m.serving) == 1 {
		close(ready)
	}
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	for i, other := range m.serving {
		if other == s {
			m.serving = append(m.serving[:i:i], m.serving[i+1:]...)
			break
		}
	}
	if len(m.serving) == 0 {
		m.ready = nil
	}
	m.mu.Unlock()
	s.asked.Wait()
	return nil
}

func (m *Memory) readyLocked() chan struct{} {
	if m.ready == nil {
		m.ready = make(chan struct{})
	}
	return m.ready
}

// Ready is closed while somebody serves.
func (m *Memory) Ready() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.readyLocked()
}

// Connected is always true.
func (m *Memory) Connected() bool { return true }

// InFlight is how many questions have been taken and not yet answered.
func (m *Memory) InFlight() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inFlight
}

// Ask implements [questions.Asker].
func (m *Memory) Ask(ctx context.Context, q questions.Question) ([]stream.Verdict, error) {
	if err := check(&q); err != nil {
		return nil, err
	}
	endpoint := questions.Score
	if q.Explain {
		endpoint = questions.Explain
	}
	var verdicts []stream.Verdict // the answerer's, until ask has its answer
	err := m.ask(ctx, endpoint, &q, func(ctx context.Context, a questions.Answerer) (messages int, err error) {
		asked, refusal := questions.Decode(q.ContentType, q.Tenant, q.Body, cmp.Or(m.MaxBatch, 1000))
		if refusal != nil {
			return 0, refusal
		}
		if len(asked.Events) > 1 {
			q.Words = 0
		}
		at := questions.Arrival{Door: q.Door, At: time.Now(), Words: min(q.Words, questions.MostWords)}
		verdicts, err = a.Score(questions.WithArrival(ctx, at), asked.Events, q.Explain)
		return len(asked.Events), err
	})
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

// Info implements [questions.Asker].
func (m *Memory) Info(ctx context.Context) (stream.Info, error) {
	var info stream.Info
	var q questions.Question
	err := m.ask(ctx, questions.Info, &q, func(ctx context.Context, a questions.Answerer) (_ int, err error) {
		info, err = a.Info(ctx)
		return 0, err
	})
	if err != nil {
		return stream.Info{}, err
	}
	return info, nil
}

// check refuses what no question may say of where it comes from.
func check(q *questions.Question) error {
	if q.Door != "" && !questions.IsDoor(q.Door) {
		return questions.Wrong("%q is no name of a door", q.Door)
	}
	if err := stream.ValidateTenant(q.Tenant); err != nil {
		return questions.Wrong("tenant: %v", err)
	}
	if strings.Trim(q.Tenant, " ") != q.Tenant {
		return questions.Wrong("tenant: a blank at the start or the end")
	}
	return nil
}

// A work asks an answerer, and returns about how many messages.
type work func(context.Context, questions.Answerer) (messages int, err error)

// ask lets one answerer work, and waits for it or for the end of ctx.
func (m *Memory) ask(ctx context.Context, endpoint string, q *questions.Question, do work) error {
	if err := m.pass(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	if len(m.serving) == 0 {
		m.mu.Unlock()
		return fmt.Errorf("%w", questions.ErrNoAnswerer)
	}
	s := m.serving[m.turn%len(m.serving)]
	m.turn++
	m.inFlight++
	s.asked.Add(1)
	m.mu.Unlock()
	start, answered := time.Now(), make(chan error, 1)
	go func() {
		messages, err := guarded(ctx, s.answerer, do)
		o := questions.Observation{
			Endpoint: endpoint, Door: q.Door, Code: questions.OK, Messages: messages, Took: time.Since(start),
		}
		if err != nil {
			refusal := asRefusal(err)
			o.Code, err = refusal.Code, refusal
		}
		s.observe(o)
		m.mu.Lock()
		m.inFlight--
		m.mu.Unlock()
		answered <- err
		s.asked.Done()
	}()
	select {
	case err := <-answered:
		if err == nil {
			err = m.pass(ctx)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Memory) pass(ctx context.Context) error {
	if err := ctx.Err(); err != nil || m.Before == nil {
		return err
	}
	return m.Before(ctx)
}

// guarded makes a panic one question's refusal.
func guarded(ctx context.Context, a questions.Answerer, do work) (messages int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do(ctx, a)
}

func asRefusal(err error) *questions.Refusal {
	var r *questions.Refusal
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, context.DeadlineExceeded):
		return questions.Overload("no answer in time")
	}
	return &questions.Refusal{Code: questions.Internal, Text: "internal error"}
}
