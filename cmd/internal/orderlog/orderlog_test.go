package orderlog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/orderlog"
	"hamlet/cmd/internal/sequencer"
	"hamlet/cmd/internal/source"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/embedded/leak"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A rig is an events topic of two partitions with three records each, and an order log.
type rig struct {
	t        *testing.T
	cfg      orderlog.Config
	producer *kafka.Producer
}

func newRig(t *testing.T) *rig {
	t.Helper()
	k, err := embedded.StartKafka(embedded.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	r := &rig{t: t, cfg: orderlog.Config{Kafka: kafka.Config{Brokers: []string{k.Addr()}}, Events: "events", Order: order.Topic("m")}}
	if err := kafka.EnsureTopic(t.Context(), r.cfg.Kafka, "events", 2, 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := kafka.EnsureOrder(t.Context(), r.cfg.Kafka, "m", "events", 1); err != nil {
		t.Fatal(err)
	}
	if r.producer, err = kafka.NewProducer(r.cfg.Kafka); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.producer.Close() })
	for p := range 2 {
		for offset := range 3 {
			r.publish("events", p, event(p, offset))
		}
	}
	return r
}

// event returns the record at an offset: the one at 2 of partition 1 is no event.
func event(partition, offset int) kafka.Record {
	if partition == 1 && offset == 2 {
		return kafka.Record{Value: []byte("no event")}
	}
	e := stream.Event{ID: fmt.Sprintf("e%d%d", partition, offset), Source: "s", Tenant: "t", Label: stream.Spam, Body: stream.Body{Kind: stream.Text, Text: "x"}}
	value, headers, err := e.EncodeRecord()
	if err != nil {
		panic(err)
	}
	if offset == 1 {
		headers = append(headers, kafka.Header{Key: stream.HeaderTrueLabel, Value: []byte("ham")})
	}
	return kafka.Record{Value: value, Headers: headers}
}

func (r *rig) publish(topic string, partition int, records ...kafka.Record) {
	r.t.Helper()
	if err := r.producer.PublishTo(r.t.Context(), topic, partition, records...); err != nil {
		r.t.Fatal(err)
	}
}

// append appends to the order log.
func (r *rig) append(records ...order.Record) {
	r.t.Helper()
	for i := range records {
		records[i].Writer = "w"
		value, err := records[i].AppendProto(nil)
		if err != nil {
			r.t.Fatal(err)
		}
		r.publish(r.cfg.Order, 0, kafka.Record{Value: value})
	}
}

// upTo returns a range of a partition.
func upTo(partition, from, to int) order.Record {
	var at state.Position
	for offset := range to {
		e := event(partition, offset)
		var headers []state.Header
		for _, h := range e.Headers {
			headers = append(headers, state.Header(h))
		}
		at = at.Advance(int64(offset), e.Key, e.Value, headers...)
	}
	return order.Record{Kind: order.Range, Partition: partition, From: int64(from), To: int64(to), Chain: at.Chain}
}

func (r *rig) items() (items []string, err error) {
	for item, itemErr := range orderlog.Items(r.t.Context(), r.cfg) {
		if items, err = appendItem(items, item, itemErr); err != nil {
			return items, err
		}
	}
	return items, nil
}

// appendItem appends what an item is.
func appendItem(items []string, item source.Item, err error) ([]string, error) {
	var rejected *source.Rejection
	switch {
	case errors.As(err, &rejected):
		return append(items, fmt.Sprintf("%d rejected %s", item.Ordinal, rejected.Place)), nil
	case err != nil:
		return items, err
	}
	return append(items, fmt.Sprintf("%d %s %s", item.Ordinal, item.Event.ID, item.Truth)), nil
}

// The items come in the order of the log, each once, whatever else stands in it.
func TestItems(t *testing.T) {
	r := newRig(t)
	if items, err := r.items(); len(items) != 0 || err != nil {
		t.Errorf("of an empty order log: %v, %v", items, err)
	}
	r.append(upTo(0, 0, 1), sequencer.Beginning("w", 1, make([]state.Position, 2), [32]byte{}),
		upTo(1, 0, 1), upTo(0, 0, 2), upTo(1, 0, 3), upTo(0, 0, 2), upTo(0, 0, 3))
	want := []string{"0 e10 spam", "1 e00 spam", "2 e01 ham", "3 e11 ham", "4 rejected events, offset 2", "5 e02 spam"}
	if items, err := r.items(); err != nil || !slices.Equal(items, want) {
		t.Errorf("%q, %v\nwant %q", items, err, want)
	}
	r.cfg.End = 4
	if items, err := r.items(); err != nil || !slices.Equal(items, want[:3]) {
		t.Errorf("up to offset 4: %q, %v", items, err)
	}
	for item := range orderlog.Items(t.Context(), r.cfg) {
		if item.Event.ID == "e00" {
			break
		}
	}
	r.cfg.End = 100
	if _, err := r.items(); !errors.Is(err, kafka.ErrBehind) {
		t.Errorf("beyond the end: %v, want ErrBehind", err)
	}
}

func TestWhatIsNotTheLogIsRefused(t *testing.T) {
	r := newRig(t)
	r.append(sequencer.Beginning("w", 1, make([]state.Position, 2), [32]byte{}), upTo(1, 0, 2))
	foreign := upTo(0, 0, 2)
	foreign.Chain[0]++
	r.append(foreign)
	if items, err := r.items(); !errors.Is(err, sequencer.ErrForeign) || len(items) != 2 {
		t.Errorf("a foreign range: %q, %v", items, err)
	}

	r = newRig(t)
	r.append(sequencer.Beginning("w", 1, make([]state.Position, 2), [32]byte{7}))
	if _, err := r.items(); err == nil || !strings.Contains(err.Error(), "goes on from a model with SHA-256 07") {
		t.Errorf("a beginning that is not in the log: %v", err)
	}
}
