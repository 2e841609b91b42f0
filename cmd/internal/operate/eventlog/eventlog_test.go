package eventlog

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/logtest"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/leak"
	"hamlet/stream/servertest/topics"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A rig is an empty Kafka.
type rig struct {
	t     *testing.T
	kafka kafka.Config
}

func newRig(t *testing.T) *rig {
	t.Helper()
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return &rig{t, kafka.Config{Brokers: []string{k.Addr()}}}
}

// topic makes a topic. One of one partition keeps its records for ever.
func (r *rig) topic(name string, partitions int) {
	r.t.Helper()
	if partitions > 1 {
		topics.Make(r.t, r.kafka, name, partitions)
		return
	}
	if err := r.kafka.Ensure(r.t.Context(), name, 1, -1); err != nil {
		r.t.Fatal(err)
	}
}

// log returns the log of a model, which exists or not.
func (r *rig) log(model string) *Log {
	r.t.Helper()
	log, err := Of(r.kafka, model)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = log.Close() })
	return log
}

// end returns where the log of a model ends.
func (r *rig) end(model string) int64 {
	r.t.Helper()
	b, err := follow.Bounds(r.t.Context(), r.log(model).Config)
	if err != nil {
		r.t.Fatal(err)
	}
	return b.End
}

func (r *rig) publish(topic string, partition int, records ...stream.Record) {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.kafka.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	for _, one := range records {
		out := kgo.Record{Topic: topic, Partition: int32(partition), Key: one.Key, Value: one.Value, Timestamp: one.Time}
		for _, h := range one.Headers {
			out.Headers = append(out.Headers, kgo.RecordHeader(h))
		}
		if err := client.ProduceSync(r.t.Context(), &out).FirstErr(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// deleteBelow deletes the records of a partition below an offset, as retention does.
func (r *rig) deleteBelow(topic string, partition int32, offset int64) {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.kafka.Brokers...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	request := kmsg.NewPtrDeleteRecordsRequest()
	request.TimeoutMillis = 10_000
	below := []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: offset}}
	request.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: below}}
	response, err := request.RequestWith(r.t.Context(), client)
	if err != nil || response.Topics[0].Partitions[0].ErrorCode != 0 {
		r.t.Fatalf("%+v, %v", response, err)
	}
}

var began = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// record returns record i of a log. Some have no key or no headers, and every seventh is no event.
func record(i int) stream.Record {
	r := stream.Record{Time: began.Add(time.Duration(i) * time.Second)}
	if i%3 > 0 {
		r.Key = fmt.Append(nil, "key ", i)
	}
	if i%7 == 6 {
		r.Value = []byte("no event")
		return r
	}
	e := stream.Event{ID: fmt.Sprint("e", i), Source: "s", Tenant: "t", Label: stream.Spam}
	e.Body = stream.Body{Kind: stream.Text, Text: fmt.Sprint("words ", i)}
	var err error
	if r.Value, r.Headers, err = e.EncodeRecord(); err != nil {
		panic(err)
	}
	return r
}

// numbered are the records from to to−1.
func numbered(from, to int) (records []stream.Record) {
	for i := from; i < to; i++ {
		records = append(records, record(i))
	}
	return records
}

// of returns records as a source gives them.
func of(records []stream.Record) Records {
	return func(yield func(*stream.Record, error) bool) {
		for _, r := range records {
			if !yield(&r, nil) {
				return
			}
		}
	}
}

// all returns all records, and in one line what each is.
func all(t *testing.T, records Records) (got []stream.Record, lines []string) {
	t.Helper()
	for r, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, *r)
		b, err := json.Marshal([]any{r.Time.UTC(), r.Key, r.Headers, r.Value})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	return got, lines
}

// digest is the SHA-256 of records: of their times, keys, headers and values.
func digest(t *testing.T, records Records) string {
	t.Helper()
	_, lines := all(t, records)
	return fmt.Sprintf("%d records, %x", len(lines), sha256.Sum256([]byte(strings.Join(lines, "\n"))))
}

// The items come in the order of the log. What is no event is rejected.
func TestItems(t *testing.T) {
	r := newRig(t)
	r.topic("hamlet.events.m", 1)
	r.publish("hamlet.events.m", 0, numbered(3, 8)...)
	log, err := Open(t.Context(), r.kafka, "m")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var items []string
	for item, err := range Items("m", log.Records(t.Context())) {
		switch rejected, ok := err.(*source.Rejection); {
		case ok:
			items = append(items, fmt.Sprintf("%d rejected %s", item.Ordinal, rejected.Place))
		case err != nil:
			t.Fatal(err)
		default:
			items = append(items, fmt.Sprintf("%d %s %s", item.Ordinal, item.Event.ID, item.Truth))
		}
	}
	want := []string{
		"0 e3 spam", "1 e4 spam", "2 e5 spam", "3 rejected m, offset 3", "4 e7 spam",
	}
	if !slices.Equal(items, want) {
		t.Errorf("%q\nwant %q", items, want)
	}
	for item := range Items("m", log.Records(t.Context())) {
		if item.Event.ID == "e4" {
			break
		}
	}
}

// A cursor gives each record once, whatever its chunks hold, and waits for nothing at the end.
func TestCursor(t *testing.T) {
	var log logtest.Memory
	if err := log.Append(t.Context(), numbered(0, 50)...); err != nil {
		t.Fatal(err)
	}
	for _, most := range []int{1, 500, 1 << 20} {
		c := cursor{log: follow.Config{Log: &log}, most: most, next: 3, end: 40}
		for i := 3; ; i++ {
			got, err := c.peek(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got == nil && i == 40 {
				break
			}
			if got == nil || got.Offset != int64(i) {
				t.Fatalf("chunks of %d bytes: %+v, want offset %d", most, got, i)
			}
			c.take()
		}
	}
}
