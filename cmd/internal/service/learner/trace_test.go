package learner

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"hamlet/stream"
)

// What the log says of a record that carries a trace names it. A malformed one is not shown.
func TestLogsNameTraces(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	trace := stream.ParseTrace("00-" + id + "-b7ad6b7169203331-01")
	r := newRig(t)
	records, _ := texts(t, 4)
	records[1].Headers = trace.AppendHeader(records[1].Headers)
	records[2].Headers = append(records[2].Headers, stream.Header{Key: stream.HeaderTrace, Value: []byte("00-mallory")})
	records[3].Headers, records[3].Value = trace.AppendHeader(records[3].Headers), []byte("no event")
	var log bytes.Buffer
	cfg := r.config()
	cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p := opened(t, cfg)
	if err := handle(t, p, records, 0); err != nil {
		t.Fatal(err)
	}
	settled(t, p)
	said := log.String()
	for _, want := range []string{"msg=applied model=default trace=" + id + " offset=1 outcome=learned", `msg="dead letter" model=default trace=` + id + " offset=3"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if n := strings.Count(said, "trace="); n != 3 || strings.Contains(said, "mallory") { // two of the dead letter
		t.Errorf("%d lines have a trace, want 3:\n%s", n, said)
	}
}
