//go:build unix

package from010

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
)

// fill writes records of all kinds into an Kafka of tests: each compression, batches of one and of many,
// headers and keys that are empty or not there, transactions that end well and that do not.
func fill(t *testing.T, addr string, topics []string) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	n := 0
	record := func(topic string) *kgo.Record {
		n++
		r := &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%d %s", n, strings.Repeat("free prize ",
			rnd.IntN(200))), Timestamp: time.UnixMilli(int64(1_700_000_000_000 + 7*n))}
		switch n % 4 {
		case 0:
			r.Key = []byte{}
		case 1:
			r.Key = fmt.Append(nil, n%5)
		}
		if n%9 == 0 {
			r.Value = nil
		}
		for i := range n % 3 {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: "h", Value: bytes.Repeat([]byte{byte(i)}, i)})
		}
		return r
	}
	for i, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(),
		kgo.Lz4Compression(), kgo.ZstdCompression()} {
		client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ProducerBatchCompression(codec),
			kgo.ProducerLinger(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range topics {
			for _, batch := range []int{1, 200, 3} {
				var some []*kgo.Record
				for range batch {
					some = append(some, record(topic))
				}
				if err := client.ProduceSync(t.Context(), some...).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
		}
		client.Close()
		client, err = kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(fmt.Sprint("t", i)))
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
			err := client.BeginTransaction()
			if err == nil {
				err = client.ProduceSync(t.Context(), record(topics[0]), record(topics[0])).FirstErr()
			}
			if err = errors.Join(err, client.EndTransaction(t.Context(), end)); err != nil {
				t.Fatal(err)
			}
		}
		client.Close()
	}
}

// deleteBefore deletes records, as retention does.
func deleteBefore(t *testing.T, addr, topic string, offset int64) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Offset = offset
	of := kmsg.NewDeleteRecordsRequestTopic()
	of.Topic, of.Partitions = topic, []kmsg.DeleteRecordsRequestTopicPartition{part}
	request := kmsg.NewPtrDeleteRecordsRequest()
	request.Topics, request.TimeoutMillis = []kmsg.DeleteRecordsRequestTopic{of}, 5000
	response, err := request.RequestWith(t.Context(), client)
	if err != nil || response.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatal(response, err)
	}
}

// asKafka returns what a client of the Kafka of tests reads.
func asKafka(t *testing.T, addr, topic string) (all []stream.Record, bounds stream.Bounds) {
	t.Helper()
	l, err := kafka.NewLog(kafka.Config{Brokers: []string{addr}}, topic)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if bounds, err = l.Bounds(t.Context()); err != nil {
		t.Fatal(err)
	}
	bounds.ID = ""
	for next := bounds.First; next < bounds.End; {
		some, _, err := l.Read(t.Context(), next, stream.Limit{}, 100*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			break
		}
		all = append(all, some...)
		next = some[len(some)-1].Offset + 1
	}
	return all, bounds
}

// text returns all that a log keeps of a record. It need not tell nil from empty.
func text(r stream.Record) string {
	return fmt.Sprintf("%d %q %q %q %d", r.Offset, r.Key, r.Value, r.Headers, r.Time.UnixMilli())
}

// The converted logs have what clients of the Kafka of tests read before, after an orderly stop too.
func TestLogsAreThoseOfKafka(t *testing.T) {
	dir := t.TempDir()
	topics := []string{"hamlet.events.m", "hamlet.receipts", "odd.Topic_1", "hamlet.dead-letters"}
	start := func() *servertest.Kafka {
		k, err := servertest.StartKafka(servertest.KafkaOptions{Dir: filepath.Join(dir, kafkaFolder), Topics: topics})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := start()
	fill(t, k.Addr(), topics[:3])
	deleteBefore(t, k.Addr(), topics[1], 217) // within a batch
	want, bounds := map[string][]stream.Record{}, map[string]stream.Bounds{}
	for _, topic := range topics {
		want[topic], bounds[topic] = asKafka(t, k.Addr(), topic)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Convert(t.Context(), dir, Config{}); err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics {
		got, b := records(t, dir, topic)
		if len(got) != len(want[topic]) {
			t.Fatalf("%s: %d records, want %d", topic, len(got), len(want[topic]))
		}
		for i := range got {
			if got, want := text(got[i]), text(want[topic][i]); got != want {
				t.Errorf("%s: record\n%s, want\n%s", topic, got, want)
			}
		}
		if b != bounds[topic] {
			t.Errorf("%s: bounds %+v, want %+v", topic, b, bounds[topic])
		}
	}
	if len(want[topics[0]]) < 1000 || bounds[topics[1]].First != 217 {
		t.Errorf("%d records of %s, %+v", len(want[topics[0]]), topics[0], bounds[topics[1]])
	}
}
