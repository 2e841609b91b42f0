package kafka

import (
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream"
)

// A Header is one of a record's named values; names may repeat.
type Header = stream.Header

// A Record is one entry of a partition's log. A producer reads Topic, Key, Value,
// Headers and Time (zero: now). The log sets the other fields.
type Record struct {
	Topic         string
	Partition     int
	Offset        int64
	Key           []byte // nil: no key, any partition
	Value         []byte
	Headers       []Header
	Time          time.Time
	HighWatermark int64 // the log's end when the record was fetched
}

// stream returns the record without its topic.
func (r *Record) stream() stream.Record {
	return stream.Record{Offset: r.Offset, Key: r.Key, Value: r.Value, Headers: r.Headers, Time: r.Time}
}

// sizeOf returns an upper bound of the record's bytes in a record batch. RECORD v2 adds at
// most 35 bytes of varints to key and value, and 10 for each header.
func sizeOf(r *stream.Record) int { return 35 + r.Size() + 10*len(r.Headers) }

// encode returns the record as a produce request takes it.
func encode(r *stream.Record) kafkago.Record {
	k := kafkago.Record{Key: kafkago.NewBytes(r.Key), Value: kafkago.NewBytes(r.Value), Time: r.Time}
	if k.Time.IsZero() {
		k.Time = time.Now()
	}
	for _, h := range r.Headers {
		k.Headers = append(k.Headers, kafkago.Header(h))
	}
	return k
}

// fromMessage returns the record that a kafka-go reader returned.
func fromMessage(m *kafkago.Message) Record {
	r := Record{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset,
		Key: m.Key, Value: m.Value, Time: m.Time, HighWatermark: m.HighWaterMark,
	}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, Header(h))
	}
	return r
}
