package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/process/cli"
)

// up is ready to take the first event, and from then on when it answers: not while
// what it has learnt is not saved, for then no score can be asked for.
func TestUpIsReadyWhenItAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stdin, events := io.Pipe()
	stderr, said := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"up", "-", "--format=text", "--http=127.0.0.1:0", "--save-every=1h", "--table-bits=10", "--log-level=error"},
			cli.IO{In: stdin, Out: io.Discard, Err: said})
		said.Close()
		ended <- err
	}()
	url := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if _, address, ok := strings.Cut(lines.Text(), "  http   "); ok {
				url <- address
			}
		}
	}()
	var readyz string
	select {
	case address := <-url:
		readyz = address + "/readyz"
	case err := <-ended:
		t.Fatal(err)
	}
	await := func(status int, body string) {
		t.Helper()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, readyz, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatalf("never %d, %q: %v", status, body, err)
			}
			text, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err == nil && response.StatusCode == status && strings.Contains(string(text), body) {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatalf("never %d, %q; last %d, %q", status, body, response.StatusCode, text)
			}
		}
	}
	await(http.StatusOK, "ready")
	if _, err := io.WriteString(events, "spam\twin a prize\nham\tlunch on friday\n"); err != nil {
		t.Fatal(err)
	}
	events.Close()
	await(http.StatusServiceUnavailable, "no model yet")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
