package endtoend

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/servertest/appends"
)

// takeOverRounds is HAMLET_TAKEOVER_ROUNDS. It is read before TestMain removes it.
var takeOverRounds, _ = strconv.Atoi(os.Getenv("HAMLET_TAKEOVER_ROUNDS"))

// A replica is a learner that can be cut off from its servers.
type replica struct {
	*process
	kafka *appends.Proxy
	redis *tunnel
}

// replica starts a learner behind a proxy of each server.
func (o *replicas) replica(kafka *appends.Proxy, redis *tunnel) *replica {
	o.t.Helper()
	return &replica{o.learnerAt(kafka.Addr(), "--redis", redis.listener.Addr().String(), "--nats", natsURL), kafka, redis}
}

// Of three learners the active one is disturbed. Another one takes over. No alert, dead letter or
// receipt is lost, and copies of one have the same id and the same bytes. The model is what its log
// says.
// HAMLET_TAKEOVER_ROUNDS=30 disturbs thirty times in each way, and logs how long it took.
func TestTakeOver(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(*replica)
		pause time.Duration // how long it lasts
		end   func(o *replicas, r *replica)
	}{
		{"kill", func(r *replica) { r.kill() }, 0, again},
		{"stop", func(r *replica) { _ = r.cmd.Process.Signal(syscall.SIGTERM) }, 0, func(o *replicas, r *replica) {
			<-r.done
			again(o, r)
		}},
		{"pause", func(r *replica) { r.signal(syscall.SIGSTOP) }, 30 * time.Second, func(_ *replicas, r *replica) { r.signal(syscall.SIGCONT) }},
		{"cut from Kafka", func(r *replica) { r.kafka.Stall(true) }, 5 * time.Second, func(_ *replicas, r *replica) { r.kafka.Stall(false) }},
		{"cut from Redis", func(r *replica) { r.redis.stall(true) }, 5 * time.Second, func(_ *replicas, r *replica) { r.redis.stall(false) }},
		{"cut from both", func(r *replica) { r.kafka.Stall(true); r.redis.stall(true) }, 5 * time.Second, func(_ *replicas, r *replica) {
			r.kafka.Stall(false)
			r.redis.stall(false)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := max(1, takeOverRounds)
			if takeOverRounds == 0 { // nobody measures
				t.Parallel()
				c.pause = min(c.pause, 5*time.Second)
			}
			random := rand.New(rand.NewPCG(8, 19))
			o := newReplicas(t)
			o.vectors, o.noise = true, 1200
			var learners []*replica
			for range 3 {
				kafka := appends.Start(t, appends.Config{Broker: kafkaAddr, Topic: o.topic, Fate: func() appends.Fate { return appends.Pass }})
				learners = append(learners, o.replica(kafka, startTunnel(t, redisAddr)))
			}
			processes := func() (all []*process) {
				for _, r := range learners {
					all = append(all, r.process)
				}
				return all
			}
			stop := o.flow(12, 20*time.Millisecond)
			var took []time.Duration
			for range n {
				for _, r := range learners {
					awaitReady(t, r.process)
				}
				// On a busy machine the active one may change by itself: whoever is disturbed was active until now.
				var before []int
				k := -1
				for now := takeOvers(learners); k < 0 || !slices.Equal(before, now); now = takeOvers(learners) {
					before = now
					k = o.awaitHolder(processes()...)
					o.wait(random, 300*time.Millisecond)
				}
				began := time.Now()
				c.begin(learners[k])
				await(t, "another learner is active", func() bool {
					for i, r := range learners {
						if i != k && r.takeOvers() > before[i] {
							took = append(took, time.Since(began))
							return true
						}
					}
					return false
				})
				if wait := c.pause - time.Since(began); wait > 0 {
					time.Sleep(wait)
				}
				c.end(o, learners[k])
			}
			await(t, "labels have been wrong for long", func() bool { return o.count() >= o.noise+1600 })
			stop()
			for _, r := range learners {
				awaitReady(t, r.process)
			}
			o.awaitOneActive(processes()...)
			o.wantReplayed()
			for _, p := range processes() {
				p.stop()
			}
			want := o.wantLetters(o.wantReplayed())
			alerts := publishedAlerts(t, o.model)
			if d := cmp.Diff(want.alerts, alerts, cmpopts.IgnoreFields(stream.Alert{}, "Time")); d != "" {
				t.Errorf("alerts (-of the log +published):\n%s", d)
			}
			if len(alerts) == 0 {
				t.Error("without an alert this shows little")
			}
			slices.Sort(took)
			t.Logf("%d times, %d alerts: another learner was active after %v (median), at most %v", len(took), len(alerts),
				took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
		})
	}
}

// again starts a learner in place of one that has ended.
func again(o *replicas, r *replica) { *r = *o.replica(r.kafka, r.redis) }

// takeOvers returns how often each learner has become active.
func takeOvers(learners []*replica) (times []int) {
	for _, r := range learners {
		times = append(times, r.takeOvers())
	}
	return times
}

// takeOvers returns how often the learner has become active. Its log says so at once.
func (p *process) takeOvers() int { return strings.Count(p.log(), `msg="active: `) }

// awaitReady waits until a learner has a model, in any role.
func awaitReady(t *testing.T, p *process) {
	t.Helper()
	addr := p.httpAddr()
	await(t, "a learner is ready", func() bool {
		said := readiness(addr)
		return strings.Contains(said, "active, ") || strings.Contains(said, "standby, ") && !strings.Contains(said, "behind the saved")
	})
}

// awaitOneActive waits until exactly one of several learners is active, and returns which.
func (o *replicas) awaitOneActive(learners ...*process) int {
	o.t.Helper()
	found := -1
	await(o.t, "exactly one learner is active", func() bool {
		n := 0
		for k, p := range learners {
			if addr := p.knownAddr(); addr != "" && strings.Contains(readiness(addr), "active, ") {
				found, n = k, n+1
			}
		}
		return n == 1
	})
	return found
}

// awaitHolder waits until one of several learners holds the lease, and returns which. The store knows.
// What a learner says of itself may be old.
func (o *replicas) awaitHolder(learners ...*process) int {
	o.t.Helper()
	store, err := redis.New(redisAs(admin, o.model))
	if err != nil {
		o.t.Fatal(err)
	}
	defer store.Close()
	found := -1
	await(o.t, "one of the learners holds the lease", func() bool {
		lease, err := store.Holder(o.t.Context())
		if err != nil {
			o.t.Fatal(err)
		}
		writer, _, _ := strings.Cut(lease.Writer, "#") // HOST/PID
		found = slices.IndexFunc(learners, func(p *process) bool {
			return strings.HasSuffix(writer, fmt.Sprint("/", p.cmd.Process.Pid))
		})
		return found >= 0
	})
	return found
}

// A tunnel forwards TCP connections to a server. While it is stalled nothing passes, and nobody is
// told.
type tunnel struct {
	listener net.Listener
	ctx      context.Context

	mu     sync.Mutex
	passes chan struct{} // closed while bytes pass
}

func startTunnel(t *testing.T, server string) *tunnel {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &tunnel{listener: listener, ctx: ctx, passes: make(chan struct{})}
	close(w.passes)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { w.serve(client, server) })
		}
	})
	t.Cleanup(func() { cancel(); listener.Close(); running.Wait() })
	return w
}

// stall has nothing pass, or lets it pass.
func (w *tunnel) stall(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if on {
		w.passes = make(chan struct{})
	} else {
		close(w.passes)
	}
}

func (w *tunnel) serve(client net.Conn, server string) {
	defer client.Close()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer upstream.Close()
	end := context.AfterFunc(w.ctx, func() { client.Close(); upstream.Close() })
	defer end()
	var both sync.WaitGroup
	both.Go(func() { w.pump(upstream, client) })
	both.Go(func() { w.pump(client, upstream) })
	both.Wait()
}

func (w *tunnel) pump(to io.WriteCloser, from io.Reader) {
	defer to.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			w.mu.Lock()
			passes := w.passes
			w.mu.Unlock()
			select {
			case <-passes:
			case <-w.ctx.Done():
				return
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
