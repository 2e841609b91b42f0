package nats_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// startServer runs a NATS server in this process, on a free port.
func startServer(t testing.TB) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the nats server doesn't listen")
	}
	return s
}

func connect(t testing.TB, s *server.Server) *natsgo.Conn {
	t.Helper()
	conn, err := nats.Connect(nats.Config{URL: s.ClientURL(), Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := nats.Close(ctx, conn); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return conn
}

// serve is serveObserved without an observer.
func serve(t testing.TB, conn *natsgo.Conn, scorer questions.Answerer, cfg nats.ServiceConfig) (service *nats.Service, stop func() error) {
	t.Helper()
	return serveObserved(t, conn, scorer, cfg, nil)
}

// serveObserved runs a service until the test ends or stop is called, whichever is
// first; stop returns what Serve did.
func serveObserved(t testing.TB, conn *natsgo.Conn, scorer questions.Answerer, cfg nats.ServiceConfig, observe func(questions.Observation)) (service *nats.Service, stop func() error) {
	t.Helper()
	cfg.Timeout = cmp.Or(cfg.Timeout, time.Minute) // the default sheds requests where a machine stands still
	service, err := nats.NewService(conn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Serve(ctx, scorer, observe) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
	})
	select {
	case <-service.Ready():
	case err := <-ended:
		ended <- err
		t.Fatalf("run: %v", err)
	}
	return service, stop
}

func client(t testing.TB, conn *natsgo.Conn, model string) *nats.Client {
	t.Helper()
	c, err := nats.NewClient(conn, model)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func patience(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// A scorer answers by what its functions say; nil functions answer p = ½ and an
// empty description.
type scorer struct {
	score func(ctx context.Context, requests []*stream.Event, explain bool) ([]stream.Verdict, error)
	info  func(ctx context.Context) (stream.Info, error)
}

func (s scorer) Score(ctx context.Context, requests []*stream.Event, explain bool) ([]stream.Verdict, error) {
	if s.score != nil {
		return s.score(ctx, requests, explain)
	}
	return half(requests), nil
}

func (s scorer) Info(ctx context.Context) (stream.Info, error) {
	if s.info != nil {
		return s.info(ctx)
	}
	return stream.Info{}, nil
}

func half(requests []*stream.Event) []stream.Verdict {
	verdicts := make([]stream.Verdict, len(requests))
	for i, r := range requests {
		verdicts[i] = stream.Verdict{ID: r.ID, P: 0.5, Interval: [2]float64{0.1, 0.9}, Decision: stream.DecideUnsure}
	}
	return verdicts
}

// afterDelete does what makes a deleted stream again. A server that still removes the stream's
// files refuses that for a moment (error 10049).
func afterDelete(t testing.TB, do func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
