package learn

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/cmd/internal/process/cli"
)

// A service answers requests in the place of a network.
type service func(*http.Request) (*http.Response, error)

func (s service) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

func answer(status int) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: io.NopCloser(strings.NewReader("{}"))}
}

// Each request has the whole timeout, however long the messages before it took.
func TestEachRequestHasTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := sender{url: "http://ingest/v1/events", timeout: 2 * time.Second, client: &http.Client{Transport: service(func(*http.Request) (*http.Response, error) {
			if asked++; asked%2 == 1 {
				return answer(http.StatusServiceUnavailable), nil
			}
			return answer(http.StatusAccepted), nil
		})}}
		for range 3 {
			time.Sleep(time.Minute) // a long folder is read
			s.batch = *bytes.NewBufferString("{}\n")
			s.events = 1
			if err := s.flush(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if s.accepted != 3 || asked != 6 {
			t.Errorf("%d messages were taken of %d requests", s.accepted, asked)
		}
	})
}

// A service that takes a request and does not answer holds nobody for longer than the timeout.
func TestSilentService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sender{url: "http://ingest/v1/events", timeout: 2 * time.Second, events: 1, client: &http.Client{Timeout: time.Minute, Transport: service(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}}
		began := time.Now()
		err := s.flush(t.Context())
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 2*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
	_, _, err := run(t, Command{Spam: true, URL: "http://127.0.0.1:1", Token: "secret", Timeout: -time.Second}, letter)
	if usage := new(cli.UsageError); !errors.As(err, &usage) {
		t.Errorf("a timeout below zero: %v", err)
	}
}
