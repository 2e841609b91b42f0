package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hamlet/stream"
)

// An answering is an appender that returns what a test says, once the test has said it.
type answering chan error

func (a answering) Append(context.Context, ...stream.Record) error { return <-a }

// A label is accepted once the log has acknowledged it, and only then.
func TestAcceptedIsAppended(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, http.StatusAccepted},
		{stream.ErrFull, http.StatusServiceUnavailable},
		{fmt.Errorf("no room: %w", stream.ErrFull), http.StatusServiceUnavailable},
		{stream.ErrAway, http.StatusServiceUnavailable},
		{errors.New("anything"), http.StatusServiceUnavailable},
		{stream.ErrTooLarge, http.StatusRequestEntityTooLarge},
	} {
		events := make(answering)
		h := NewHTTP(HTTPConfig{Events: events, Token: "operator", Log: slog.New(slog.DiscardHandler)})
		server := httptest.NewServer(h)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL,
			strings.NewReader(`{"id":"1","label":"spam","text":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer operator")
		request.Header.Set("Content-Type", "application/json")
		answered := make(chan int, 1)
		go func() {
			response, err := server.Client().Do(request)
			if err != nil {
				t.Error(err)
				answered <- 0
				return
			}
			answered <- response.StatusCode
			_ = response.Body.Close()
		}()
		select {
		case code := <-answered:
			t.Errorf("%d, before the log has said anything", code)
		case events <- c.err: // the append is under way, and so there is no answer yet
			if code := <-answered; code != c.code {
				t.Errorf("where the log says %v: %d, and not %d", c.err, code, c.code)
			}
		}
		server.Close()
	}
}
