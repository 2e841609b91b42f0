package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream"
)

// maxRequestRecords bounds a request in addition to MaxRecordBytes.
const maxRequestRecords = 10_000

// compression of produce requests; MEASURED.md has the alternatives.
const compression = kafkago.Zstd

// A partitionWriter writes to one partition, in order, with at most one request in
// flight. One of the waiting publish calls is the sender. The sender sends the front of
// the queue, its own or others' records, until its own are acknowledged.
//
// A sender whose context ends returns at once. Its request goes on, and the next sender
// waits for the outcome: a broker may still write what nobody waits for, and then it must
// not come after later records. The client's timeout bounds that wait.
//
// One case remains, as kafka-go has no idempotent producer. If a connection is lost, or
// times out, with a request in the broker's buffers, the broker may write it after the
// next request: after what was sent again, or after a later publish.
type partitionWriter struct {
	topic     string
	partition int
	cfg       *Config
	client    *kafkago.Client
	living    context.Context // of the log, and of the requests
	calls     *sync.WaitGroup // the log waits for it after living has ended
	sender    chan struct{}   // has room for one token; the sender puts it in

	mu    sync.Mutex
	queue []*batch // not acknowledged yet, in order; guarded by mu

	// Only the sender reads and writes these.
	isLog      bool // the topic may be written: it was found to be a log, or this is one partition of several
	maxRecords int  // in a request, 1 to maxRequestRecords; halved after a too large request
	failing    outage
}

// A batch is the records of one publish call. The sender changes it under mu.
type batch struct {
	records []stream.Record
	acked   int           // records[:acked] are acknowledged
	err     error         // why the others failed; set before done is closed
	done    chan struct{} // closed when all are acknowledged or err is set
}

func newPartitionWriter(l *Log) *partitionWriter {
	return &partitionWriter{
		topic: l.topic, partition: l.partition, cfg: &l.cfg, client: l.client, living: l.living, calls: &l.appends,
		sender: make(chan struct{}, 1), isLog: l.any, maxRecords: maxRequestRecords,
	}
}

// publish sends records in order and waits until they are acknowledged. When ctx ends
// they are not sent again. It is one of the log's calls.
func (w *partitionWriter) publish(ctx context.Context, records []stream.Record) error {
	own := &batch{records: records, done: make(chan struct{})}
	w.mu.Lock()
	w.queue = append(w.queue, own)
	w.mu.Unlock()

	var lastFailure error
	select {
	case <-own.done:
	case w.sender <- struct{}{}:
		lastFailure = w.send(ctx, own)
	case <-ctx.Done():
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-own.done:
		if own.err == nil {
			return nil
		}
	default:
		w.remove(own)
		own.err = context.Cause(ctx)
		if lastFailure != nil {
			own.err = fmt.Errorf("%w (last failure: %v)", own.err, lastFailure)
		}
	}
	return fmt.Errorf("append to topic %s: %d of %d records acknowledged: %w", w.topic, own.acked, len(records), own.err)
}

// send makes requests until own is done or ctx ends, and returns the last failure. It
// gives the token back, or leaves that to the request in flight.
func (w *partitionWriter) send(ctx context.Context, own *batch) (last error) {
	pause := newPause()
	for {
		select {
		case <-own.done:
			w.release()
			return nil
		case <-ctx.Done():
			w.release()
			return last
		default:
		}
		outcome := make(chan error, 1)
		w.calls.Go(func() { outcome <- w.request() })
		select {
		case err := <-outcome:
			if err == nil {
				pause.Reset()
				continue
			}
			if w.living.Err() == nil {
				last = err
			}
			wait(ctx, pause)
		case <-ctx.Done():
			w.calls.Go(func() { <-outcome; w.release() })
			return last
		}
	}
}

// release gives the token back. The next sender may come much later.
func (w *partitionWriter) release() {
	w.failing.reset()
	<-w.sender
}

// request sends the front of the queue once. After an error the caller pauses and calls
// it again.
func (w *partitionWriter) request() error {
	records, sent := w.next()
	if len(records) == 0 {
		return nil
	}
	err, final := w.checkPartitions()
	if err == nil {
		var res *kafkago.ProduceResponse
		res, err = w.client.Produce(w.living, &kafkago.ProduceRequest{
			Topic: w.topic, Partition: w.partition, RequiredAcks: kafkago.RequireAll,
			Records: kafkago.NewRecordReader(records...), Compression: compression,
		})
		if err == nil {
			err = res.Error
		}
	}
	if err != nil && final == nil && w.living.Err() == nil {
		err, final = w.failing.failed(w.living, w.cfg, w.client, err,
			"kafka: appending again", "topic", w.topic, "partition", w.partition)
	}
	return w.settle(sent, len(records), err, final)
}

// checkPartitions asks before the first request whether the topic is a log. If it has several
// partitions the error is final: whoever reads them all would take ours in another order.
func (w *partitionWriter) checkPartitions() (err, final error) {
	if w.isLog {
		return nil, nil
	}
	ids, err := partitionsOf(w.living, w.cfg, w.client, w.topic)
	if err != nil {
		return err, nil
	}
	if len(ids) > 1 {
		err := severalPartitions(len(ids))
		return err, err
	}
	w.isLog = true
	return nil, nil
}

// An inFlight is the first n records of a batch that are not acknowledged, in one request.
type inFlight struct {
	*batch
	n int
}

// next returns the records of the next request: as many from the front of the
// queue as fit.
func (w *partitionWriter) next() (records []kafkago.Record, sent []inFlight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	bytes := 0
	for _, b := range w.queue {
		n := 0
		for i := b.acked; i < len(b.records); i++ {
			r := &b.records[i]
			bytes += sizeOf(r)
			if len(records) > 0 && (bytes > w.cfg.MaxRecordBytes || len(records) >= w.maxRecords) {
				break
			}
			records = append(records, encode(r))
			n++
		}
		if n > 0 {
			sent = append(sent, inFlight{b, n})
		}
		if b.acked+n < len(b.records) {
			break
		}
	}
	return records, sent
}

// settle applies a request's outcome to its batches: its error, and the final one if
// [outage] says that there is to be no other attempt. It returns err if they are to be
// sent again:
//
//	outcome                     batches          returns
//	acknowledged                advance or done  nil
//	too large, several records  stay, halved     nil
//	final                       failed           nil
//	transient                   stay             err
func (w *partitionWriter) settle(sent []inFlight, records int, err, final error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.failing.over(w.cfg, "topic", w.topic, "partition", w.partition)
		w.maxRecords = min(2*w.maxRecords, maxRequestRecords)
		for _, p := range sent {
			if p.acked += p.n; p.acked == len(p.records) {
				w.finish(p.batch, nil)
			}
		}
		return nil
	case errors.Is(final, ErrTooLarge) && records > 1:
		w.maxRecords = records / 2 // find the record that is too large
		return nil
	case final == nil:
		return err
	}
	w.failing.reset()
	for _, p := range sent {
		w.finish(p.batch, final)
	}
	return nil
}

// finish ends a batch. The caller holds w.mu.
func (w *partitionWriter) finish(b *batch, err error) {
	b.err = err
	close(b.done)
	w.remove(b)
}

// remove takes a batch out of the queue, if it is still there. The caller holds w.mu.
func (w *partitionWriter) remove(b *batch) {
	w.queue = slices.DeleteFunc(w.queue, func(q *batch) bool { return q == b })
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
