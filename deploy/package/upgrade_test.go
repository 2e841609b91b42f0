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

// A replay is what hamlet eval prints of a log.
type replay struct {
	SHA256 string `json:"model_sha256"`
	Events int64  `json:"events"`
}

// replay learns the log of hamlet.service again, with the flags of its model.
func (m *machine) replay(model ...string) (r replay) {
	m.t.Helper()
	const file = "/tmp/log.jsonl.zst"
	env := []string{"XDG_RUNTIME_DIR=/run/hamlet"}
	if out, err := m.command(env, "/usr/bin/hamlet", "log", "export", file).CombinedOutput(); err != nil {
		m.t.Fatalf("hamlet log export: %v\n%s", err, out)
	}
	out, err := m.command(env, append([]string{"/usr/bin/hamlet", "eval", "--json", "--log", file}, model...)...).Output()
	if err := errors.Join(err, json.Unmarshal(out, &r), os.Remove(m.root+file)); err != nil {
		m.t.Fatalf("hamlet eval: %v\n%s", err, out)
	}
	return r
}

// relearnt waits until the model that answers is the replay of the log, and returns its SHA-256. After an upgrade to
// another numerics the old one answers first.
func (m *machine) relearnt(web string, events int, model ...string) string {
	m.t.Helper()
	want := m.replay(model...).SHA256
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		_, sum := scored(m.t, web, events)
		if sum == want {
			return sum
		}
		if time.Now().After(end) {
			m.t.Fatalf("a replay of the log makes %s, the newest model is %s", want, sum)
		}
	}
}

// An upgrade in place with traffic: systemd holds the door (hamlet.socket) while hamlet.service
// restarts. No label and no question is lost. Every label is learnt once, and the model is that
// of a replay of the log.
func TestUpgradeWithTraffic(t *testing.T) {
	m := newMachine(t)
	m.dpkg("-i", ours(t))
	nats := port(t)
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
		fmt.Sprintf("\nlisten-nats: %s\ntable-bits: 12\nsave-every: 100ms\n", nats)
	m.write("/etc/hamlet/hamlet.yaml", edited)
	m.write("/etc/hamlet/hamlet.env", "HAMLET_TOKEN=secret\n")

	up := m.startWith("hamlet.service", socket)
	up.await("READY=1")
	up.await("STATUS=ready") // to take labels: without one, no model is missed
	for i, label := range []string{"spam", "ham"} {
		if _, err := ask(t, "http://"+web+"/v1/events", "application/json", "secret", fmt.Sprintf(`{"id":"first%d","label":%q,"text":"first %d"}`, i, label, i)); err != nil {
			t.Fatal(err)
		}
	}
	scored(t, web, 2)
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
	replay := m.replay("--table-bits", "12")
	if replay.SHA256 != sum || replay.Events != labels {
		t.Errorf("%d labels made the model %s, a replay of %d makes %s", labels, sum, replay.Events, replay.SHA256)
	}
	t.Logf("the service was away for %v; %d labels, %d scores over HTTP and %d over NATS, %d lost, the slowest took %v; model %.12s",
		away.Round(time.Millisecond), labels, flow.scores.Load(), flow.asked.Load(), flow.lost.Load(), time.Duration(flow.slowest.Load()).Round(time.Millisecond), sum)
	up.stop()
}

// from010Pinned is what hamlet 0.1.0 printed of version 1, of 20 events, in v0.1.0.tar.gz, which
// cmd/internal/service/machine/from010 has.
const from010Pinned = "13c4b8df219e7660e6b0280d1742aa344843482f09b972e6d08948e9c7ced17c"

// An upgrade from 0.1.0: the first start converts what 0.1.0 has learnt. Answers come from the version
// that was pinned, which has the same bytes. The newest is the replay of the log by this program's mathematics. The old
// settings and passwords are taken. The old files stay aside until somebody removes them.
func TestUpgradeFrom010(t *testing.T) {
	m := newMachine(t)
	m.dpkg("-i", ours(t))
	const data = "/var/lib/hamlet"
	if err := os.MkdirAll(m.root+data, 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, "tar", "xzf", "../../cmd/internal/service/machine/from010/testdata/v0.1.0.tar.gz", "-C", m.root+data)
	m.write(data+"/passwords.json", `{"kafka":"K","redis":"R","nats":"N","client":"C"}`)
	uid, gid := m.login("hamlet")
	command(t, "chown", "-R", fmt.Sprintf("%d:%d", uid, gid), m.root+data)
	command(t, "chmod", "600", m.root+data+"/passwords.json")
	web, nats := port(t), port(t)
	config, err := os.ReadFile(m.root + "/etc/hamlet/hamlet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m.write("/etc/hamlet/hamlet.yaml", strings.Replace(string(config), "http: 127.0.0.1:9104", "http: "+web, 1)+
		fmt.Sprintf("\nlisten-kafka: %s\nlisten-redis: %s\nlisten-nats: %s\ntable-bits: 8\nexperts: lean\nkeep-versions: 5\n", port(t), port(t), nats))
	m.write("/etc/hamlet/hamlet.env", "HAMLET_TOKEN=secret\n")

	up := m.start("hamlet.service")
	up.await("READY=1")
	if _, sum := scored(t, web, 20); sum != from010Pinned {
		t.Errorf("the pinned model is %s, 0.1.0 had %s", sum, from010Pinned)
	}
	m.kept(data)
	for _, name := range []string{"kafka", "redis"} {
		if _, err := os.Stat(m.root + data + "/" + name); err == nil {
			t.Errorf("%s/%s is still there", data, name)
		}
		if _, err := os.Stat(m.root + data + "/" + name + "-0.1.0"); err != nil {
			t.Error(err)
		}
	}
	if out, err := m.command([]string{"XDG_RUNTIME_DIR=/run/hamlet"}, "/usr/bin/hamlet", "model", "unpin").CombinedOutput(); err != nil {
		t.Fatalf("hamlet model unpin: %v\n%s", err, out)
	}
	m.relearnt(web, 42, "--table-bits", "8", "--experts", "lean")
	if _, err := ask(t, "http://"+web+"/v1/events", "application/json", "secret", `{"id":"new","source":"desk","label":"ham","text":"lunch"}`); err != nil {
		t.Fatal(err)
	}
	_, sum := scored(t, web, 43)
	up.stop()
	for _, gone := range []string{"--listen-kafka", "--listen-redis"} {
		if !strings.Contains(up.output.String(), gone+" does nothing any more") {
			t.Errorf("nothing is said of %s:\n%s", gone, up.output.String())
		}
	}

	// The operator removes the old files.
	command(t, "rm", "-r", m.root+data+"/kafka-0.1.0", m.root+data+"/redis-0.1.0")
	up = m.start("hamlet.service")
	up.await("READY=1")
	if _, again := scored(t, web, 43); again != sum {
		t.Errorf("the model is %q, before the restart it was %q", again, sum)
	}
	m.backup(42, 43) // a record of the log was a dead letter
	up.stop()
	m.dpkg("-P", "hamlet")
	if _, err := os.Stat(m.root + data); err == nil {
		t.Errorf("after the purge %s is there", data)
	}
}
