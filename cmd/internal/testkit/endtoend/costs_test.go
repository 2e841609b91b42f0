//go:build linux

package endtoend

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/machine"
	"hamlet/state"
	"hamlet/stream"
)

// modelBytes is about what the tables of a model take at the default of --table-bits, and what a save writes.
const modelBytes = 31 << 20

// said returns a number that a file of a process in /proc says, in its unit.
func (p *process) said(file, name string) (n int64) {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut("\n"+string(text), "\n"+name+":")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		p.t.Fatalf("%s of %s: %v", name, file, err)
	}
	return n
}

func (p *process) awaitLearnt(http string, events float64) {
	p.t.Helper()
	for metric(http, "hamlet_learner_events") < events || metric(http, "hamlet_learner_unsaved_records") != 0 {
		select {
		case <-p.done:
			p.t.Fatal("it ended")
		case <-time.After(time.Second):
		}
	}
}

// What a hamlet up with a model writes in ten minutes without a label, and in five with one every 5 s.
func TestWhatAMachineWrites(t *testing.T) {
	needsMachine(t)
	t.Parallel()
	p := start(t, "hamlet", "up", "--data", filepath.Join(t.TempDir(), "data"), "--demo", "--generate", "3000",
		"--token", correctionsSecret, "--http", "127.0.0.1:0", "--listen-nats", "127.0.0.1:0")
	c := &corrections{t: t, up: p, http: p.upHTTP()}
	p.awaitLearnt(c.http, 3000)
	time.Sleep(time.Minute) // what is under way
	before := p.said("io", "write_bytes")
	time.Sleep(10 * time.Minute)
	written := p.said("io", "write_bytes") - before
	t.Logf("%d bytes in ten idle minutes, of at most 1 MB", written)
	if written > 1e6 {
		t.Error("it writes too much while nothing happens")
	}
	before = p.said("io", "write_bytes")
	began, tick := time.Now(), time.NewTicker(5*time.Second)
	defer tick.Stop()
	for id := 0; time.Since(began) < 5*time.Minute; id++ {
		body := fmt.Sprintf(`{"id":"one-%d","label":"spam","text":"cheap pills %d"}`, id, id)
		header := http.Header{"Authorization": {"Bearer " + correctionsSecret}, "Content-Type": {"application/json"}}
		if answer, code := c.post(c.http+"/v1/events", header, []byte(body)); code != http.StatusAccepted {
			t.Fatalf("%d, %s", code, answer)
		}
		<-tick.C
	}
	minute := float64(p.said("io", "write_bytes")-before) / time.Since(began).Minutes()
	t.Logf("%.1f MB a minute with a label every 5 s, of at most 40 MB", minute/1e6)
	if minute > 40e6 {
		t.Error("it writes too much")
	}
	p.stop()
}

// What a hamlet up takes of memory after 200,000 events, and after a restart: a model, which learner and scorer
// share, and at most 96 MB.
func TestWhatAMachineHolds(t *testing.T) {
	needsMachine(t)
	t.Parallel()
	const most = modelBytes>>10 + 96<<10 // KiB
	data := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{{"--demo", "--generate", "200000"}, nil} {
		p := start(t, "hamlet", append([]string{"up", "--data", data, "--http", "127.0.0.1:0", "--listen-nats", "127.0.0.1:0"}, args...)...)
		addr := p.upHTTP()
		p.awaitLearnt(addr, 200_000)
		time.Sleep(3 * time.Minute) // Go gives back what it does not use
		rss := p.said("status", "VmRSS")
		t.Logf("%v: %d MB, at its peak %d MB; of at most %d MB", args, rss>>10, p.said("status", "VmHWM")>>10, most>>10)
		if rss > most {
			t.Error("it holds too much memory")
		}
		p.stop()
	}
}

// A start over a log of 1,000,000 records of 2 kB that a model has learnt. Only its memory is bounded: how long
// it takes depends on the machine.
func TestStartOverALongLog(t *testing.T) {
	needsMachine(t)
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	for _, records := range []int64{1000, 1_000_000} {
		size := longLog(t, data, records)
		began := time.Now()
		p := start(t, "hamlet", "up", "--data", data, "--http", "127.0.0.1:0", "--listen-nats", "127.0.0.1:0")
		addr := p.upHTTP()
		serving := time.Since(began)
		var next float64
		await(t, "it has its model", func() bool {
			next = metric(addr, "hamlet_learner_next_offset")
			return next == float64(records)
		})
		took, peak := time.Since(began), p.said("status", "VmHWM")
		t.Logf("%d records: it serves after %v, and learns after %v, with at most %d MB; the model has %d MB",
			records, serving.Round(time.Millisecond), took.Round(time.Millisecond), peak>>10, size>>20)
		time.Sleep(time.Minute)
		rss := p.said("status", "VmRSS")
		t.Logf("%d records: %d MB a minute later", records, rss>>10)
		if most := int64(size)>>10 + 64<<10; rss > most {
			t.Errorf("it holds %d MB, more than %d", rss>>10, most>>10)
		}
		p.stop()
		if err := os.RemoveAll(data); err != nil {
			t.Fatal(err)
		}
	}
}

// longLog makes a folder with a log of events, and a model that has learnt it. It returns the model's bytes.
func longLog(t *testing.T, data string, n int64) (size int) {
	t.Helper()
	dir, err := machine.Open(t.Context(), data, machine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	topic := stream.EventsTopic("default")
	if err := dir.Ensure(t.Context(), topic, 1, 0); err != nil {
		t.Fatal(err)
	}
	log, err := dir.Open(topic)
	if err != nil {
		t.Fatal(err)
	}
	value := bytes.Repeat([]byte("x"), 2000)
	position := state.Position{}
	for at := int64(0); at < n; {
		batch := make([]stream.Record, 0, 1000)
		for ; at < n && len(batch) < 1000; at++ {
			r := stream.Record{Key: fmt.Appendf(nil, "e%d", at), Value: value, Time: time.Now()}
			batch = append(batch, r)
			position = position.Advance(at, r.Key, r.Value)
		}
		if err := log.Append(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	m, err := model.New(model.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := dir.Store("default")
	if err != nil {
		t.Fatal(err)
	}
	lease, err := store.Seize(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Save(t.Context(), &state.Checkpoint{Epoch: lease.Epoch, Writer: "test", Position: position, Model: b,
		Numerics: model.CurrentNumerics(), Saved: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}
