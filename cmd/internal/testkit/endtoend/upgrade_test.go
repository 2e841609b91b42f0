package endtoend

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// A rolling upgrade within one numerics, scorers first or learners first: two of each are
// replaced one after the other, with requests and labels flowing. No request is lost, though
// nobody asks twice. No event is lost or doubled, and the model is that of an undisturbed
// replay.
//
// Beside real servers and with HAMLET_NIGHTLY=1 it makes both orders, and the second programs
// are of another build.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	newer := otherBuild(t)
	for name, upgrade := range map[string]func(u *upgrading){
		"scorers first":  func(u *upgrading) { u.scorers(newer); u.learners(newer) },
		"learners first": func(u *upgrading) { u.learners(newer); u.scorers(newer) },
	} {
		t.Run(name, func(t *testing.T) {
			if name != "scorers first" && !real && !nightly {
				t.Skip("the other order: HAMLET_NIGHTLY=1 or real servers run it")
			}
			u := newUpgrading(t)
			upgrade(u)
			u.finish()
		})
	}
}

// otherBuild returns a folder with other programs of the same sources.
func otherBuild(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if real || nightly {
		for _, name := range []string{"learner", "scorer"} {
			build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", folder, "hamlet/cmd/"+name)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("go build: %v\n%s", err, out)
			}
		}
		return folder
	}
	for _, name := range []string{"learner", "scorer"} {
		if err := os.Symlink(filepath.Join(bin, name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// An upgrading is a model with two learners and two scorers, which are asked all the time.
type upgrading struct {
	*replicas
	learning []*process
	scoring  []*process
	stopFeed func()
	stopAsk  context.CancelFunc
	asking   sync.WaitGroup

	answered, lost atomic.Int64
	failure        atomic.Pointer[error] // of the first that was lost
	longest        atomic.Int64          // answer, in nanoseconds
}

func newUpgrading(t *testing.T) *upgrading {
	t.Helper()
	u := &upgrading{replicas: newReplicas(t)}
	u.learning = []*process{u.learner(), u.learner()}
	u.send(50)
	u.awaitSaved()
	u.scoring = []*process{u.scorer(bin), u.scorer(bin)}
	u.stopFeed = u.flow(5, 20*time.Millisecond)
	u.ask(4)
	return u
}

// scorer starts a scorer and waits until it has the model.
func (u *upgrading) scorer(folder string) *process {
	u.t.Helper()
	p := startFrom(u.t, folder, "scorer", "--model", u.model, "--nats", natsURL, "--redis", u.servers.redis, "--http", "127.0.0.1:0", "--poll-interval", "100ms")
	addr := p.httpAddr()
	await(u.t, "a scorer is ready", func() bool {
		response, err := http.Get("http://" + addr + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return p
}

// ask has clients ask, each again as soon as it has an answer. None asks twice for one.
func (u *upgrading) ask(clients int) {
	ctx, cancel := context.WithCancel(context.Background())
	u.stopAsk = cancel
	u.t.Cleanup(cancel)
	for range clients {
		conn, err := nats.Connect(natsAs("client"))
		if err != nil {
			u.t.Fatal(err)
		}
		u.t.Cleanup(conn.Close)
		client, err := nats.NewClient(conn, u.model)
		if err != nil {
			u.t.Fatal(err)
		}
		u.asking.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				began := time.Now()
				limit, cancel := context.WithTimeout(context.Background(), patience)
				_, err := client.Ask(limit, questions.Question{Body: fmt.Appendf(nil, "cheap pills for lunch %d", n), ContentType: questions.Text})
				cancel()
				if err != nil {
					u.lost.Add(1)
					u.failure.CompareAndSwap(nil, &err)
					continue
				}
				u.answered.Add(1)
				if took := int64(time.Since(began)); took > u.longest.Load() {
					u.longest.Store(took)
				}
			}
		})
	}
}

// scorers replaces the scorers: a new one is ready before an old one is stopped.
func (u *upgrading) scorers(folder string) {
	u.t.Helper()
	for i, old := range u.scoring {
		u.scoring[i] = u.scorer(folder)
		old.stop()
	}
}

// learners replaces the learners, the standby first. The active one is stopped last, and a new
// one takes over.
func (u *upgrading) learners(folder string) {
	u.t.Helper()
	active := u.awaitActive(u.learning...)
	for _, i := range []int{1 - active, active} {
		next := u.learnerFrom(folder, u.servers.kafka)
		u.learning[i].httpAddr() // a standby has begun, and is told of signals
		u.learning[i].stop()
		u.learning[i] = next
	}
	u.awaitActive(u.learning...)
}

// finish ends the traffic and compares.
func (u *upgrading) finish() {
	u.t.Helper()
	u.stopFeed()
	u.stopAsk()
	u.asking.Wait()
	if n := u.lost.Load(); n > 0 {
		u.t.Errorf("%d of %d requests are lost: %v", n, n+u.answered.Load(), *u.failure.Load())
	}
	u.wantReplayed()
	u.t.Logf("%d requests answered, the slowest in %v; %d records sent", u.answered.Load(), time.Duration(u.longest.Load()).Round(time.Millisecond), u.count())
	if u.answered.Load() < 20 {
		u.t.Error("hardly a request was made")
	}
}
