package nats_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// The benchmarks ask one request after the other and report the median and the
// 99th percentile beside the mean that testing prints. The body is a mail of
// 4 KiB, about what SpamAssassin's mean is.
var benchmarkMail = []byte(letter + strings.Repeat("The quick brown fox jumps over the lazy dog.\r\n", 88))

// BenchmarkRoundTrip asks the service, with a scorer that does nothing, and a bare
// subscription that echoes, in turn: on one server, over the same connections, in the
// same milliseconds. The difference is the cost of the service: micro, the queue,
// reducing the mail, JSON.
func BenchmarkRoundTrip(b *testing.B) {
	server := startServer(b)
	serving, asking := connect(b, server), connect(b, server)
	serve(b, serving, scorer{}, nats.ServiceConfig{})
	echo(b, serving)
	c, ctx := client(b, asking, ""), b.Context()
	var scores, echoes []time.Duration
	b.ResetTimer()
	for b.Loop() {
		start := time.Now()
		if _, err := c.Ask(ctx, questions.Question{Body: benchmarkMail, ContentType: questions.Mail}); err != nil {
			b.Fatal(err)
		}
		scored := time.Now()
		if _, err := asking.RequestWithContext(ctx, "echo", benchmarkMail); err != nil {
			b.Fatal(err)
		}
		scores = append(scores, scored.Sub(start))
		echoes = append(echoes, time.Since(scored))
	}
	report(b, "score", scores)
	report(b, "echo", echoes)
}

// BenchmarkScore and BenchmarkEcho are the two parts of BenchmarkRoundTrip.
func BenchmarkScore(b *testing.B) {
	server := startServer(b)
	serve(b, connect(b, server), scorer{}, nats.ServiceConfig{})
	c, ctx := client(b, connect(b, server), ""), b.Context()
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		if _, err := c.Ask(ctx, questions.Question{Body: benchmarkMail, ContentType: questions.Mail}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	report(b, "score", took)
}

func BenchmarkEcho(b *testing.B) {
	server := startServer(b)
	echo(b, connect(b, server))
	asking, ctx := connect(b, server), b.Context()
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		if _, err := asking.RequestWithContext(ctx, "echo", benchmarkMail); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	report(b, "echo", took)
}

// echo subscribes the no-op service.
func echo(b *testing.B, conn *natsgo.Conn) {
	b.Helper()
	_, err := conn.QueueSubscribe("echo", "echo", func(m *natsgo.Msg) {
		if err := m.Respond(m.Data); err != nil {
			b.Error(err)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		b.Fatal(err)
	}
}

func report(b *testing.B, name string, took []time.Duration) {
	slices.Sort(took)
	at := func(q float64) float64 {
		return float64(took[int(q*float64(len(took)-1))].Nanoseconds()) / 1e3
	}
	b.ReportMetric(at(0.5), name+"-p50-µs")
	b.ReportMetric(at(0.99), name+"-p99-µs")
}
