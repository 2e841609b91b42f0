package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hamlet/state/redis/redistest"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
)

// Three brokers of Kafka, three servers of NATS, and a Redis that Sentinels watch lose a node
// each, by kill −9 in the middle of traffic: the leader of a partition, that of the journal's
// stream, the master. The model is what an undisturbed replay of its logs makes. No event is
// lost, or learnt twice. Every alert and every answer is in its stream.
func TestModelWhenANodeOfEachClusterIsLost(t *testing.T) {
	if !nightly {
		t.Skip("starts three clusters: HAMLET_NIGHTLY=1 runs it")
	}
	withoutUsers(t)
	brokers, buses, store := startKafkas(t), startNATS(t), redistest.Sentinel(t)
	hadNATS := natsURL
	natsURL = "nats://" + strings.Join(buses.addrs(), ",nats://")
	t.Cleanup(func() { natsURL = hadNATS })
	kafkaAddrs := strings.Join(brokers.addrs(), ",")
	o := newReplicasOn(t, servers{kafka: kafkaAddrs, redis: store.Addr(), sentinel: store.Name}, kafka.Config{Brokers: brokers.addrs()})
	o.vectors, o.noise = true, 2500

	var learners []*process
	for range 2 {
		learners = append(learners, o.learner("--redis-sentinel", store.Name, "--nats", natsURL, "--alert-replicas", "3"))
	}
	scorer := start(t, "scorer", "--model", o.model, "--nats", natsURL, "--redis", o.servers.redis, "--redis-sentinel", store.Name,
		"--http", "127.0.0.1:0", "--journal-replicas", "3")
	door := start(t, "hamlet", "gateway", "--model", o.model, "--nats", natsURL, "--http", "127.0.0.1:0")
	ingest := start(t, "ingest", "--model", o.model, "--kafka", kafkaAddrs, "--http", "127.0.0.1:0", "--token", "secret")
	asker := &prober{url: "http://" + door.httpAddr() + "/v1/score", body: func(id string) any {
		return map[string]any{"id": id, "vector": numbers(1)}
	}}
	labels := &prober{url: "http://" + ingest.httpAddr() + "/v1/events", token: "secret", body: func(id string) any {
		return map[string]any{"id": id, "source": "s", "label": "ham", "vector": numbers(0)}
	}}
	scorer.httpAddr()

	flowing := o.flow(4, 20*time.Millisecond)
	o.awaitActive(learners...)
	stopAsking, stopLabels := asker.run(t, "ask"), labels.run(t, "label")
	await(t, "there are answers", func() bool { return asker.done() > 0 })
	asker.longest() // that for the first model does not count
	for _, fault := range []struct {
		name string
		lose func() *node
	}{
		{"Kafka", func() *node { return leaderOf(t, brokers, o.topic, 0) }},
		{"NATS", func() *node { return leaderOfStream(t, buses, nats.JournalStream) }},
		{"NATS again", func() *node { return buses.at(t, buses[0].addr) }},
		{"Redis", func() *node { store.Master(t, "").Kill(t); return nil }},
		{"Kafka's order log", func() *node { return leaderOf(t, brokers, "hamlet.order."+o.model, 0) }},
	} {
		lost := fault.lose()
		if lost != nil {
			lost.kill()
		}
		before := o.count() + 800
		await(t, "events flow", func() bool { return o.count() >= before })
		o.awaitActive(learners...)
		if lost != nil {
			lost.start()
			lost.awaitOpen()
		}
		t.Logf("%s lost a node: the longest wait for a score was %v, for a label to be taken %v", fault.name, asker.longest(), labels.longest())
	}
	flowing()
	stopAsking()
	stopLabels()
	records := o.wantReplayed()

	// What ingest took is in the log.
	logged := map[string]bool{}
	for i := range records {
		if records[i].Key != nil {
			if e, err := stream.DecodeRecord(records[i].Headers, records[i].Value); err == nil {
				logged[e.ID] = true
			}
		}
	}
	for _, id := range labels.ids {
		if !logged[id] {
			t.Errorf("ingest took label %s, and the log lacks it", id)
		}
	}

	// The alerts are those of a replay.
	want, _ := evalAlerts(t, slices.Concat([]string{"--kafka", kafkaAddrs, "--model", o.model}, o.modelFlags())...)
	if len(want) == 0 {
		t.Error("the replay raises no alert")
	}
	var got []stream.Alert
	await(t, "all alerts are published", func() bool { got = publishedAlerts(t, o.model); return len(got) >= len(want) })
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(stream.Alert{}, "Model", "Time")); diff != "" {
		t.Errorf("alerts (-replay +published):\n%s", diff)
	}

	// Every answer has its line.
	lines := map[string]int{}
	await(t, "the journal has all answers", func() bool {
		conn, err := nats.Connect(nats.Config{URL: natsURL})
		if err != nil {
			return false
		}
		defer conn.Close()
		clear(lines)
		for e, err := range nats.ReadJournal(t.Context(), conn, o.model, time.Time{}) {
			if err != nil {
				return false
			}
			lines[e.Request]++
		}
		return !slices.ContainsFunc(asker.ids, func(id string) bool { return lines[stream.Unaddressed(id)] == 0 })
	})
	t.Logf("%d records, %d labels by ingest, %d answers, %d lines of the journal, %d alerts", len(records), len(labels.ids), len(asker.ids), len(lines), len(got))
	for _, p := range append(learners, scorer, door, ingest) {
		p.stop()
	}
}

// numbers returns a vector of ham, 0, or spam, 1.
func numbers(class float64) map[string]float64 {
	v := map[string]float64{}
	for i, name := range strings.Split(denseNames, ",") {
		if v[name] = 0; i < 4 {
			v[name] = 1.6 * class
		}
	}
	return v
}

// A prober posts one request after the other, each until it succeeds.
type prober struct {
	url, token string
	body       func(id string) any

	mu   sync.Mutex
	ids  []string      // of the requests that succeeded
	most time.Duration // that one took, since longest was called
}

// run posts until the returned function is called.
func (p *prober) run(t *testing.T, name string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			id := fmt.Sprint(name, n)
			begin := time.Now()
			for ctx.Err() == nil && !p.post(t, id) {
				<-tick.C
			}
			if ctx.Err() != nil {
				return
			}
			p.mu.Lock()
			p.ids, p.most = append(p.ids, id), max(p.most, time.Since(begin))
			p.mu.Unlock()
			<-tick.C
		}
	}()
	return func() { cancel(); <-ended }
}

func (p *prober) post(t *testing.T, id string) bool {
	b, err := json.Marshal(p.body(id))
	if err != nil {
		t.Error(err)
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(string(b)))
	if err != nil {
		t.Error(err)
		return false
	}
	r.Header.Set("Content-Type", "application/json")
	if p.token != "" {
		r.Header.Set("Authorization", "Bearer "+p.token)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	response.Body.Close()
	if response.StatusCode/100 == 4 {
		t.Errorf("%s: %s", id, response.Status)
	}
	return response.StatusCode/100 == 2
}

func (p *prober) done() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ids)
}

// longest returns how long the slowest request took since the last call.
func (p *prober) longest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := p.most
	p.most = 0
	return most.Round(time.Millisecond)
}
