package kafka

import (
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream"
)

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

// recordOf returns the record that kafka-go returned.
func recordOf(m *kafkago.Message) stream.Record {
	r := stream.Record{Offset: m.Offset, Key: m.Key, Value: m.Value, Time: m.Time}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, stream.Header(h))
	}
	return r
}
