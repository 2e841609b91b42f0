package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// activate builds testdata/activate into the machine once, and returns its path there.
func activate(m *machine) string {
	m.t.Helper()
	const path = "/tmp/activate"
	if _, err := os.Stat(m.root + path); err == nil {
		return path
	}
	build := exec.CommandContext(m.t.Context(), "go", "build", "-o", m.root+path, "./testdata/activate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		m.t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Chmod(m.root+path, 0o755); err != nil {
		m.t.Fatal(err)
	}
	return path
}

// A traffic labels and asks until it is stopped. No client does anything twice. Each request
// over HTTP has a connection of its own.
type traffic struct {
	m         *machine
	web, nats string

	stopped         chan struct{}
	clients         sync.WaitGroup
	labels          atomic.Int64 // that were acknowledged
	scores, asked   atomic.Int64 // over HTTP, over NATS
	lost            atomic.Int64
	slowest         atomic.Int64 // nanoseconds
	mu              sync.Mutex
	firstFailure    error
	httpConnections *http.Client
}

func (m *machine) traffic(web, nats string) *traffic {
	t := &traffic{m: m, web: web, nats: nats, stopped: make(chan struct{}),
		httpConnections: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	t.client(&t.labels, func(n int64) error {
		label, text := "spam", "win a prize"
		if n%2 == 0 {
			label, text = "ham", "lunch on friday"
		}
		return t.post("/v1/events", "application/json", fmt.Sprintf(`{"id":"traffic%d","source":"desk","label":%q,"text":"%s %d"}`, n, label, text, n))
	})
	t.client(&t.scores, func(n int64) error { return t.post("/v1/score", "text/plain", fmt.Sprint("win a prize ", n)) })
	m.write("/tmp/message.eml", "Subject: a prize\n\nwin a prize\n")
	t.client(&t.asked, func(int64) error {
		cmd := m.command([]string{"XDG_RUNTIME_DIR=/run/hamlet"}, "/usr/bin/hamlet", "score", "--server", "nats://"+nats, "--timeout", "60s", "/tmp/message.eml")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("hamlet score: %w: %s", err, out)
		}
		return nil
	})
	return t
}

// client does something again and again.
func (t *traffic) client(done *atomic.Int64, do func(n int64) error) {
	t.clients.Go(func() {
		for n := int64(0); ; n++ {
			select {
			case <-t.stopped:
				return
			default:
			}
			began := time.Now()
			if err := do(n); err != nil {
				t.lost.Add(1)
				t.mu.Lock()
				if t.firstFailure == nil {
					t.firstFailure = err
				}
				t.mu.Unlock()
				continue
			}
			done.Add(1)
			if took := int64(time.Since(began)); took > t.slowest.Load() {
				t.slowest.Store(took)
			}
		}
	})
}

func (t *traffic) post(path, kind, body string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+t.web+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Authorization", "Bearer secret")
	response, err := t.httpConnections.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return errors.New(path + ": " + response.Status)
	}
	return nil
}

// flows waits until each client has succeeded some times more.
func (t *traffic) flows() {
	t.m.t.Helper()
	for _, done := range []*atomic.Int64{&t.labels, &t.scores, &t.asked} {
		goal := done.Load() + 5
		for end := time.Now().Add(patience); done.Load() < goal; {
			if time.Now().After(end) {
				t.m.t.Fatalf("the traffic stands still: %v", t.firstFailure)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
}

func (t *traffic) stop() {
	close(t.stopped)
	t.clients.Wait()
}

// An upgrade in place with traffic: systemd holds the door (hamlet.socket) while hamlet.service
// restarts. No label and no question is lost. Every label is learnt once, and the model is that
// of a replay of the log.
func TestUpgradeWithTraffic(t *testing.T) {
	m := newMachine(t)
	m.dpkg("-i", ours(t))
	kafka, redis, nats := port(t), port(t), port(t)
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	socket, err := door.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	web := door.Addr().String()
	config, err := os.ReadFile(m.root + "/etc/hamlet/hamlet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(config), "http: 127.0.0.1:9104", "http: "+web, 1) +
		fmt.Sprintf("\nlisten-kafka: %s\nlisten-redis: %s\nlisten-nats: %s\ntable-bits: 12\nsave-every: 100ms\n", kafka, redis, nats)
	m.write("/etc/hamlet/hamlet.yaml", edited)
	m.write("/etc/hamlet/hamlet.env", "HAMLET_TOKEN=secret\n")

	up := m.startWith("hamlet.service", socket)
	up.await("READY=1")
	up.await("STATUS=not ready: ") // no label, no model
	for i, label := range []string{"spam", "ham"} {
		if _, err := ask(t, "http://"+web+"/v1/events", "application/json", "secret", fmt.Sprintf(`{"id":"first%d","label":%q,"text":"first %d"}`, i, label, i)); err != nil {
			t.Fatal(err)
		}
	}
	up.await("STATUS=ready")
	flow := m.traffic(web, nats)
	flow.flows()

	// As dpkg does it: new programs, and then postinst restarts what runs.
	newer := *release
	newer.Time = newer.Time.Add(time.Hour)
	m.dpkg("-i", debFile(t, &newer))
	began := time.Now()
	up.stop()
	up = m.startWith("hamlet.service", socket)
	up.await("READY=1")
	away := time.Since(began)
	flow.flows()
	flow.stop()

	if n := flow.lost.Load(); n > 0 {
		t.Errorf("%d requests are lost; the first: %v", n, flow.firstFailure)
	}
	labels := flow.labels.Load() + 2
	var sum string
	for end := time.Now().Add(patience); ; {
		a, err := ask(t, "http://"+web+"/v1/score", "text/plain", "secret", "win a prize")
		if err == nil && len(a.Model.Positions) == 1 && int64(a.Model.Positions[0]) == labels {
			sum = a.Model.SHA256
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d labels were acknowledged, the model stands at %+v, %v", labels, a.Model, err)
		}
		<-time.After(20 * time.Millisecond)
	}
	var replay struct {
		SHA256 string `json:"model_sha256"`
		Events int64  `json:"events"`
	}
	out, err := m.command([]string{"XDG_RUNTIME_DIR=/run/hamlet"}, "/usr/bin/hamlet", "eval", "--json", "--kafka", kafka, "--table-bits", "12").Output()
	if err := errors.Join(err, json.Unmarshal(out, &replay)); err != nil {
		t.Fatalf("hamlet eval: %v\n%s", err, out)
	}
	if replay.SHA256 != sum || replay.Events != labels {
		t.Errorf("%d labels made the model %s, a replay of %d makes %s", labels, sum, replay.Events, replay.SHA256)
	}
	t.Logf("the service was away for %v; %d labels, %d scores over HTTP and %d over NATS, %d lost, the slowest took %v; model %.12s",
		away.Round(time.Millisecond), labels, flow.scores.Load(), flow.asked.Load(), flow.lost.Load(), time.Duration(flow.slowest.Load()).Round(time.Millisecond), sum)
	up.stop()
}
