package endtoend

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
)

// A release adds a folder below testdata/golden:
//
//	go test ./cmd/internal/testkit/endtoend -run AddGolden -add-golden v0.2
//
// It has a log of each kind of event, a backup that was taken in its middle, and the models
// that its learners made. Later programs replay it. No folder is ever changed.
var addGolden = flag.String("add-golden", "", "make the folder of this release below testdata/golden")

const goldenFolder = "testdata/golden"

// A golden is what goldens.json of a folder says.
type golden struct {
	Numerics string        `json:"numerics"`
	Models   []goldenModel `json:"models"`
}

type goldenModel struct {
	Name       string   `json:"model"`
	Partitions int      `json:"partitions"`
	Flags      []string `json:"flags"`        // of its learner
	SHA256     string   `json:"model_sha256"` // at the end of the log
}

// ofOne returns the models of one partition. TestGoldenImport has the others: they are imported.
func (g *golden) ofOne() []goldenModel {
	return slices.DeleteFunc(slices.Clone(g.Models), func(m goldenModel) bool { return m.Partitions != 1 })
}

// A goldenRecord is a record of Kafka. Those of a partition stand in order.
type goldenRecord struct {
	Topic     string          `json:"topic"`
	Partition int             `json:"partition"`
	Key       []byte          `json:"key,omitempty"`
	Value     []byte          `json:"value"`
	Headers   []stream.Header `json:"headers,omitempty"`
}

// A stage is a Kafka and the Redis servers of learners.
type stage struct {
	t     *testing.T
	kafka kafka.Config
	addr  string
	ends  map[string]int64 // of the topics of events
}

func newStage(t *testing.T) *stage {
	t.Helper()
	if passwords != nil {
		t.Skip("a golden log needs an empty Kafka of its own: beside servers with users there is none")
	}
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return &stage{t: t, kafka: kafka.Config{Brokers: []string{k.Addr()}}, addr: k.Addr(), ends: map[string]int64{}}
}

// topics makes the topics of a model.
func (s *stage) topics(m *goldenModel) {
	s.t.Helper()
	if err := s.kafka.Ensure(s.t.Context(), stream.EventsTopic(m.Name), 1, time.Hour); err != nil {
		s.t.Fatal(err)
	}
}

// publish writes the records of a model's log.
func (s *stage) publish(m *goldenModel, records []goldenRecord) {
	s.t.Helper()
	topic := stream.EventsTopic(m.Name)
	var log []stream.Record
	for _, r := range records {
		if r.Topic == topic {
			log = append(log, stream.Record{Key: r.Key, Value: r.Value, Headers: r.Headers})
		}
	}
	if err := logOf(s.t, s.kafka, topic).Append(s.t.Context(), log...); err != nil {
		s.t.Fatal(err)
	}
	s.ends[topic] += int64(len(log))
}

// dump returns all records of a topic.
func (s *stage) dump(topic string) (all []goldenRecord) {
	s.t.Helper()
	for _, r := range allOf(s.t, s.kafka, topic) {
		all = append(all, goldenRecord{topic, 0, r.Key, r.Value, r.Headers})
	}
	return all
}

// learner starts a learner.
func (s *stage) learner(m *goldenModel, redis string) *process {
	s.t.Helper()
	return start(s.t, "learner", slices.Concat([]string{"--model", m.Name, "--kafka", s.addr, "--redis", redis, "--save-every", "50ms"}, m.Flags)...)
}

// taken waits until the saved model has taken all events that were published, and returns it.
func (s *stage) taken(m *goldenModel, addr string) *state.Checkpoint {
	s.t.Helper()
	store, err := redis.New(redis.Config{Addr: addr, Model: m.Name})
	if err != nil {
		s.t.Fatal(err)
	}
	defer store.Close()
	var c *state.Checkpoint
	await(s.t, "the model "+m.Name+" has taken all events", func() bool {
		c, _, err = store.Load(s.t.Context(), state.Head)
		if errors.Is(err, state.ErrNone) {
			return false
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return c.Position.Next == s.ends[stream.EventsTopic(m.Name)]
	})
	return c
}

// A folder's log ends in the stated models: from the beginning, and from the checkpoints of
// its backup. A folder of other numerics is refused with words, and its wire is read.
func TestGoldenLog(t *testing.T) {
	t.Parallel()
	folders, err := os.ReadDir(goldenFolder)
	if err != nil || len(folders) == 0 {
		t.Fatalf("there is no golden log: %v", err)
	}
	for _, f := range folders {
		t.Run(f.Name(), func(t *testing.T) { replayGolden(t, filepath.Join(goldenFolder, f.Name())) })
	}
}

func replayGolden(t *testing.T, dir string) {
	var want golden
	b, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err := errors.Join(err, json.Unmarshal(b, &want)); err != nil {
		t.Fatal(err)
	}
	records := readRecords(t, filepath.Join(dir, "log.jsonl.gz"))
	wantDecoded(t, records)
	backups := filepath.Join(dir, "backup")
	verified := mustOutput(t, "hamlet", "verify", backups)

	s := newStage(t)
	models := want.ofOne()
	for i := range models {
		s.topics(&models[i])
		s.publish(&models[i], records)
	}
	first, second := ownRedis(t), ownRedis(t)
	if want.Numerics != model.CurrentNumerics() {
		if !strings.Contains(verified, "not for this program") {
			t.Errorf("verify does not say that the backup is of other numerics:\n%s", verified)
		}
		_, stderr, status := output(t, "hamlet", "restore", backups, "--model", models[0].Name, "--redis", second, "--kafka", s.addr)
		if status != 1 || !strings.Contains(stderr, "of numerics "+want.Numerics) {
			t.Errorf("restore of numerics %s: status %d\n%s", want.Numerics, status, stderr)
		}
		for i := range models { // the log is learnt again
			s.learner(&models[i], first)
		}
		for i := range models {
			s.taken(&models[i], first)
		}
		return
	}
	out := mustOutput(t, "hamlet", "restore", backups, "--model", models[0].Name, "--redis", second, "--kafka", s.addr)
	if strings.Contains(out, "Nothing follows") {
		t.Errorf("the backup was not taken in the middle of the log:\n%s", out)
	}
	for i := range models {
		s.learner(&models[i], first)
		s.learner(&models[i], second)
	}
	for i := range models {
		m := &models[i]
		for from, addr := range map[string]string{"its beginning": first, "the checkpoint of the backup": second} {
			c := s.taken(m, addr)
			if got := fmt.Sprintf("%x", c.ModelSHA256); got != m.SHA256 {
				t.Errorf("%s: the log makes model %s from %s, want %s", m.Name, got, from, m.SHA256)
			}
		}
	}
}

// wantDecoded fails unless this program reads all records but those that were no event then.
func wantDecoded(t *testing.T, records []goldenRecord) {
	t.Helper()
	kinds := map[string]int{}
	for i := range records {
		r := &records[i]
		headers := make([]stream.Header, len(r.Headers))
		for k, h := range r.Headers {
			headers[k] = stream.Header(h)
		}
		var err error
		kind := ""
		switch {
		case strings.HasPrefix(r.Topic, "hamlet.order."): // of 0.1.0, which nobody reads any more
			continue
		case stream.IsStanding(headers):
			_, err = stream.DecodeStandingRecord(headers, r.Value)
			kind = "standing"
		case string(r.Value) == noEvent:
			kind = noEvent
		default:
			var e stream.Event
			e, err = stream.DecodeRecord(headers, r.Value)
			kind = e.Action.String()
		}
		if err != nil {
			t.Errorf("record %d of topic %s, partition %d: %v", i, r.Topic, r.Partition, err)
		}
		kinds[kind]++
	}
	for _, kind := range []string{"learn", "relearn", "unlearn", "correct", "assume", "standing", noEvent} {
		if kinds[kind] == 0 {
			t.Errorf("the log has no %s: %v", kind, kinds)
		}
	}
}

func readRecords(t *testing.T, path string) (all []goldenRecord) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for lines := json.NewDecoder(z); ; {
		var r goldenRecord
		err := lines.Decode(&r)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

// TestAddGolden makes the folder of a release.
func TestAddGolden(t *testing.T) {
	if *addGolden == "" {
		t.Skip("-add-golden NAME makes the folder of a release")
	}
	dir := filepath.Join(goldenFolder, *addGolden)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	small := []string{"--table-bits", "8", "--dense", "x,y"}
	made := golden{Numerics: model.CurrentNumerics(), Models: []goldenModel{
		{Name: "golden-one", Partitions: 1, Flags: small},
	}}
	s := newStage(t)
	addr := ownRedis(t)
	var rest [][]goldenRecord
	backup := []string{"backup", filepath.Join(dir, "backup"), "--redis", addr, "--kafka", s.addr}
	for i := range made.Models {
		m := &made.Models[i]
		s.topics(m)
		all := goldenEvents(t, m, 300)
		s.publish(m, all[:len(all)/2])
		rest = append(rest, all[len(all)/2:])
		s.learner(m, addr)
		s.taken(m, addr)
		backup = append(backup, "--model", m.Name)
	}
	mustOutput(t, "hamlet", backup...)
	var log []goldenRecord
	for i := range made.Models {
		m := &made.Models[i]
		s.publish(m, rest[i])
		c := s.taken(m, addr)
		m.SHA256 = fmt.Sprintf("%x", c.ModelSHA256)
		log = append(log, s.dump(stream.EventsTopic(m.Name))...)
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is one
	for i := range log {
		if err := json.NewEncoder(z).Encode(log[i]); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.MarshalIndent(made, "", "  ")
	if err := errors.Join(err, z.Close(), os.WriteFile(filepath.Join(dir, "log.jsonl.gz"), packed.Bytes(), 0o644),
		os.WriteFile(filepath.Join(dir, "golden.json"), append(b, '\n'), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// noEvent is the value of records that become dead letters.
const noEvent = "no event"

// goldenEvents makes n records of all kinds: mail, text and vectors of two sources, of which
// one is often wrong; copies, withdrawals, corrections and assumptions; standings; no events.
func goldenEvents(t *testing.T, m *goldenModel, n int) (all []goldenRecord) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, uint64(m.Partitions)))
	var mails []stream.Event
	items, err := synthetic.Items(synthetic.Config{Seed: 7}, n, source.FlipConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for item, err := range items {
		if err != nil {
			t.Fatal(err)
		}
		mails = append(mails, item.Event)
	}
	topic := stream.EventsTopic(m.Name)
	add := func(partition int, value []byte, headers []stream.Header, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, goldenRecord{Topic: topic, Partition: partition, Key: []byte("k"), Value: value, Headers: headers})
	}
	var labels []stream.Event
	for i := range n {
		partition := random.IntN(m.Partitions)
		e := stream.Event{ID: fmt.Sprint("e", i), Source: "desk", Tenant: "t", Time: time.Unix(1e9+int64(i), 0).UTC(), Label: stream.Ham}
		class := random.IntN(2)
		if class == 1 {
			e.Label = stream.Spam
		}
		switch i % 3 {
		case 0:
			e.Body, e.Label = mails[i].Body, mails[i].Label
		case 1:
			words := feedWords[class]
			e.Body = stream.Body{Kind: stream.Text, Text: fmt.Sprintf("%s %s %d", words[random.IntN(5)], words[random.IntN(5)], random.IntN(9))}
		default:
			e.Body = stream.Body{Kind: stream.Vector, Vector: []stream.Number{{Name: "x", Value: random.NormFloat64() + 2*float64(class)},
				{Name: "y", Value: random.NormFloat64()}, {Name: fmt.Sprint("z", random.IntN(5)), Value: 1}}}
		}
		if random.IntN(3) == 0 {
			e.Source = "feed"
			if random.IntN(3) == 0 {
				e.Label = stream.Ham + stream.Spam - e.Label
			}
		}
		switch k := i % 20; {
		case len(labels) < 9:
		case k == 3: // a copy
			e = labels[random.IntN(len(labels))]
		case k == 7 || k == 9 || k == 11:
			of := labels[random.IntN(len(labels))]
			of.ID, of.Of, of.Action = e.ID, of.ID, stream.Unlearn
			if k == 9 {
				of.Action, of.Label = stream.Relearn, stream.Ham+stream.Spam-of.Label
			} else if k == 11 { // about the message that is its body
				of.Action, of.Label, of.Of = stream.Correct, stream.Ham+stream.Spam-of.Label, ""
			}
			e = of
		case k == 13:
			e.Action = stream.Assume
		case k == 15:
			add(partition, []byte(noEvent), nil, nil)
			continue
		case k == 17 && i > 100: // a standing stands in each partition
			st := stream.Standing{ID: fmt.Sprint("st", i), Source: "feed", Role: stream.Role(i / 20 % 3)}
			value, headers, err := st.EncodeRecord()
			for p := range m.Partitions {
				add(p, value, headers, err)
			}
			continue
		}
		if e.Action == stream.Learn {
			labels = append(labels, e)
		}
		if k := i % 20; k == 5 { // JSON has no headers
			value, err := e.AppendJSON(nil)
			add(partition, value, nil, err)
			continue
		}
		value, headers, err := e.EncodeRecord()
		add(partition, value, headers, err)
	}
	return all
}
