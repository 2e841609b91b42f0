package httpdoor

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream/questions"
)

// slow serves a scoring service that answers arrays never, and all else when release is
// closed. It notes how long each question may last.
func slow(t *testing.T, release chan struct{}) (s *server, allowed *[]time.Duration) {
	t.Helper()
	allowed = new([]time.Duration)
	s = newServer(config{Door: newGateway(t, gateway.Config{Asker: &fakeClient{score: func(ctx context.Context, _ string, body []byte, _ string) error {
		until, _ := ctx.Deadline()
		*allowed = append(*allowed, time.Until(until)) // in turn: the tests wait between questions
		if body[0] == '[' {
			<-ctx.Done()
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-release:
			return nil
		}
	}}})})
	return s, allowed
}

func code(err error) int {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused.code
	}
	if err != nil {
		return refusalOf(err).code
	}
	return http.StatusOK
}

// A batch that takes too long is the client's trouble, and no outage for other doors.
func TestLargeBatchIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, allowed := slow(t, release)
		r := httptest.NewRequest(http.MethodPost, explainPath, nil)
		for _, explain := range []bool{true, false} {
			if _, err := s.ask(r, caller{}, piece{0, 2, []byte("[")}, questions.JSON, explain); code(err) != http.StatusTooManyRequests {
				t.Errorf("explain %v: %v, want 429", explain, err)
			}
		}
		*allowed = nil
		ended := make(chan error, 2)
		for range 2 { // in an outage the first has the whole deadline, and the second does not
			go func() {
				_, err := s.ask(r, caller{}, piece{0, 1, []byte("x")}, questions.Text, false)
				ended <- err
			}()
			synctest.Wait()
		}
		for _, d := range *allowed {
			if d != deadline {
				t.Errorf("after a batch without an answer a question has %v, want %v", d, deadline)
			}
		}
		close(release)
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}

		// One event without an answer is an outage as ever, and a client that goes away is none.
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.ask(r.WithContext(gone), caller{}, piece{0, 2, []byte("[")}, questions.JSON, false); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that went away: %v", err)
		}
		if _, err := s.ask(r, caller{}, piece{0, 1, []byte("[")}, questions.JSON, false); !errors.Is(err, gateway.ErrNoAnswer) || code(err) != http.StatusServiceUnavailable {
			t.Errorf("one event: %v", err)
		}
	})
}

// Two explanations are under way, and others wait for their turn; scores pass beside them.
func TestExplanationsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, allowed := slow(t, release)
		r := httptest.NewRequest(http.MethodPost, explainPath, nil)
		ask := func(explain bool) chan error {
			ended := make(chan error, 1)
			go func() {
				_, err := s.ask(r, caller{}, piece{0, 1, []byte("x")}, questions.Text, explain)
				ended <- err
			}()
			synctest.Wait()
			return ended
		}
		first, second, third, score := ask(true), ask(true), ask(true), ask(false)
		if len(*allowed) != 3 {
			t.Errorf("%d questions are under way, want two explanations and a score", len(*allowed))
		}
		close(release)
		for _, ended := range []chan error{first, second, third, score} {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		for range maxExplaining {
			s.explaining <- struct{}{}
		}
		if err := <-ask(true); code(err) != http.StatusTooManyRequests {
			t.Errorf("no turn comes: %v, want 429", err)
		}
	})
}
