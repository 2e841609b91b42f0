package httpdoor

import (
	"context"
	"testing"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
	"hamlet/stream/questions"
)

// The trace of a request goes on to the scoring service. A malformed one does not.
func TestTrace(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	asked := make(chan stream.Trace, 1)
	s := serve(t, config{Token: operator, Door: newGateway(t, gateway.Config{Asker: &fakeClient{
		score: func(ctx context.Context, _ string, _ []byte, _ string) error {
			asked <- stream.ContextTrace(ctx)
			return nil
		},
	}})})
	for sent, want := range map[string]stream.Trace{trace: trace, "00-mallory": "", "": ""} {
		a := s.ask(t, question{method: "POST", path: scorePath, token: operator, kind: questions.Text, body: "x", header: [2]string{stream.HeaderTrace, sent}})
		if a.code != 200 {
			t.Fatalf("%d %s", a.code, a.body)
		}
		if got := <-asked; got != want {
			t.Errorf("%q became %q, want %q", sent, got, want)
		}
	}
}
