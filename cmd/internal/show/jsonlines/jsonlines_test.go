package jsonlines

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
)

// echo answers with the request. It fails, panics or waits if the request asks for it.
func echo(ctx context.Context, request []byte) ([]byte, error) {
	switch string(request) {
	case "fail":
		return nil, errors.New("as asked")
	case "panic":
		panic("as asked")
	case "wait":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return bytes.Clone(request), nil
}

// A line that cannot be answered gets an error in its place, and is counted.
func TestServeAnswersEveryLineInOrder(t *testing.T) {
	var out bytes.Buffer
	err := Serve(t.Context(), strings.NewReader("\ufeffone\n\n  \t \nfail\npanic\nlast"), &out, echo)
	want := `one
{"error":"as asked"}
{"error":"a bug in hamlet, please report it with the request: as asked"}
last
`
	if out.String() != want {
		t.Errorf("got %s, want %s", out.String(), want)
	}
	var failed *FailedError
	if !errors.As(err, &failed) || *failed != (FailedError{Failed: 2, Requests: 4}) || cli.Status(err) != cli.StatusFailed {
		t.Errorf("error %v with status %d, want 2 of 4 and 1", err, cli.Status(err))
	}
}

// A reply is written before the next request arrives.
func TestServeTalks(t *testing.T) {
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error)
	go func() { done <- Serve(t.Context(), in, out, echo) }()
	lines := bufio.NewReader(answers)
	for range 3 {
		fmt.Fprintln(ask, "one")
		if got, err := lines.ReadString('\n'); err != nil || got != "one\n" {
			t.Fatalf("reply %q, %v", got, err)
		}
	}
	ask.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Serve returns an error if it is cancelled while it waits for a line or within one.
func TestServeStops(t *testing.T) {
	for _, line := range []string{"", "wait\n"} {
		ctx, cancel := context.WithCancel(t.Context())
		in, ask := io.Pipe()
		var out bytes.Buffer
		done := make(chan error)
		go func() { done <- Serve(ctx, in, &out, echo) }()
		io.WriteString(ask, line)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
		if out.Len() > 0 {
			t.Errorf("an interrupted request got the reply %s", &out)
		}
		ask.Close()
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (brokenPipe) Read([]byte) (int, error)  { return 0, io.ErrNoProgress }

func TestServeSaysWhatBroke(t *testing.T) {
	if err := Serve(t.Context(), strings.NewReader("one"), brokenPipe{}, echo); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v, want that of the writer", err)
	}
	if err := Serve(t.Context(), brokenPipe{}, io.Discard, echo); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error %v, want that of the reader", err)
	}
}

// The text of an error survives JSON, with everything that a request can hold.
func TestAppendError(t *testing.T) {
	for _, s := range []string{"", "a\"b\\c\nd\u2028<&>é\x00"} {
		var r map[string]string
		if err := json.Unmarshal(AppendError(nil, errors.New(s)), &r); err != nil || len(r) != 1 || r["error"] != s {
			t.Errorf("%q became %q, %v", s, r, err)
		}
	}
}
