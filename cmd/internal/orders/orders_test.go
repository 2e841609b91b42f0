package orders

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/orderlog"
	"hamlet/cmd/internal/sequencer"
	"hamlet/cmd/internal/settings"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/embedded/leak"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

func TestMain(m *testing.M) { leak.Main(m) }

// The command says how far partitions are ordered and where records are lost, and writes that a
// model goes on behind them: once, and only where records are lost.
func TestOrder(t *testing.T) {
	k, err := embedded.StartKafka(embedded.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	cfg := kafka.Config{Brokers: []string{k.Addr()}}
	events := stream.EventsTopic("m")
	for topic, partitions := range map[string]int{events: 2, stream.EventsTopic("alone"): 1} {
		if err := kafka.EnsureTopic(t.Context(), cfg, topic, partitions, 1, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := kafka.EnsureOrder(t.Context(), cfg, "m", events, 1); err != nil {
		t.Fatal(err)
	}
	producer, err := kafka.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	var at state.Position
	for i := range 5 {
		r := kafka.Record{Value: fmt.Append(nil, i)}
		if err := producer.PublishTo(t.Context(), events, 1, r); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			at = at.Advance(int64(i), nil, r.Value)
		}
	}
	for _, r := range []order.Record{
		sequencer.Beginning("w", 1, make([]state.Position, 2), [32]byte{}),
		{Kind: order.Range, Writer: "w", Epoch: 1, Partition: 1, From: 0, To: 2, Chain: at.Chain},
	} {
		value, err := r.AppendProto(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := producer.Publish(t.Context(), kafka.Record{Topic: order.Topic("m"), Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args string) (string, error) {
		t.Helper()
		var g struct {
			Order Command `cmd:""`
		}
		var out bytes.Buffer
		stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}
		command, err := settings.Parse("hamlet", "", &g, append([]string{"order", "--kafka", k.Addr()}, strings.Fields(args)...), stdio)
		if err != nil {
			return "", err
		}
		_, rest, _ := strings.Cut(command.Command(), " ")
		err = g.Order.Run(t.Context(), rest, &out, io.Discard)
		return out.String(), err
	}
	shown := func() (s Shown) {
		t.Helper()
		out, err := run("--model m --json")
		if err == nil {
			err = json.Unmarshal([]byte(out), &s)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := shown(); s.Order != 2 || len(s.Partitions) != 2 || s.Partitions[1] != (Partition{Partition: 1, Next: 2, End: 5, Joined: true}) ||
		len(s.Writers) != 1 || s.Writers[0] != (Writer{"w", 2, 2}) {
		t.Errorf("%+v", s)
	}
	for args, want := range map[string]string{
		"accept-gap 1 --model m": "nothing is written: partition 1 has all records from offset 2 on",
		"accept-gap 2 --model m": "no partition 2", "--model alone": "has no order log", "--model none": "there is no topic",
	} {
		if _, err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}

	client, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	request := kmsg.NewPtrDeleteRecordsRequest()
	request.TimeoutMillis = 10_000
	request.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: events, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 1, Offset: 4}}}}
	if response, err := request.RequestWith(t.Context(), client); err != nil || response.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("%+v, %v", response, err)
	}
	if out, err := run("--model m"); err != nil || !strings.Contains(out, "hamlet order accept-gap 1 --model m") || !strings.Contains(out, "offsets 2 to 3") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run("accept-gap 1 --model m"); err != nil || !strings.Contains(out, "at offset 4, without 2 records") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := run("accept-gap 1 --model m"); err == nil {
		t.Error("a gap is accepted twice")
	}
	log := orderlog.Config{Kafka: cfg, Events: events, Order: order.Topic("m")}
	s, err := orderlog.Walk(t.Context(), log, func(*sequencer.Decision) error { return nil })
	if err != nil || s.Places[1].Next != 4 || s.Places[1].Gaps != 1 || s.Log.Next != 3 {
		t.Errorf("%+v, %v", s, err)
	}

	// What was shown is no longer so when the record comes.
	before := shown()
	before.Partitions[1].Next, before.Partitions[1].First, before.Partitions[1].Lost = 2, 5, true
	var c Command
	c.Model, c.Gap.Partition = "m", 1
	var out bytes.Buffer
	if err := c.goOn(t.Context(), log, before, &out); err == nil || !strings.Contains(err.Error(), "changes nothing") || out.Len() > 0 {
		t.Errorf("a gap that does not count is accepted: %v\n%s", err, &out)
	}

	// A partition that the model does not have yet has lost nothing.
	if err := more(t.Context(), client, events, 3); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: events, Partition: 2, Value: []byte("a")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	request.Topics[0].Partitions[0] = kmsg.DeleteRecordsRequestTopicPartition{Partition: 2, Offset: 1}
	if response, err := request.RequestWith(t.Context(), client); err != nil || response.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("%+v, %v", response, err)
	}
	if out, err := run("--model m"); err != nil || strings.Contains(out, "accept-gap 2") || !strings.Contains(out, "Partition 2 has not joined the model") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := run("accept-gap 2 --model m"); err == nil || !strings.Contains(err.Error(), "lets it join first") {
		t.Errorf("a gap of a partition that has not joined: %v", err)
	}
}

// more gives a topic more partitions.
func more(ctx context.Context, client *kgo.Client, topic string, partitions int32) error {
	request := kmsg.NewPtrCreatePartitionsRequest()
	request.TimeoutMillis = 10_000
	request.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: topic, Count: partitions}}
	response, err := request.RequestWith(ctx, client)
	if err == nil && response.Topics[0].ErrorCode != 0 {
		err = fmt.Errorf("%+v", response)
	}
	return err
}
