package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream"
)

const (
	// fetchBytes is the most that one fetch returns: four of the largest batches.
	fetchBytes = 4 << 20

	// readBytes is the most that Read returns where the caller does not say.
	readBytes = 4 << 20

	// idleCursors is how many connections wait for the next Read: one that reads on, and one
	// that reads here and there.
	idleCursors = 2
)

// A Log is a topic of one partition: a [stream.Log] and a [stream.Appender]. It
// keeps connections between its calls, until Close.
//
// A topic that cannot be found is ErrAway first, because a broker that restarts knows no topic.
// It is ErrNoLog if it was never seen, and a complete cluster has not known it for two seconds.
type Log struct {
	cfg       Config
	topic     string
	partition int
	any       bool // the topic may have other partitions
	client    *kafkago.Client
	writer    *partitionWriter
	living    context.Context // ends with Close, and with it all connections and calls
	end       context.CancelCauseFunc

	mu     sync.Mutex
	idle   []*cursor // at most idleCursors, the one used last at the end
	absent grace     // the topic was never seen, and is unknown

	closed  bool           // set by Close; no Append begins after it
	appends sync.WaitGroup // in progress, and their requests
}

// NewLog returns the log of a topic. It does not connect. A topic of several partitions is
// refused by Bounds, and so before it is read, and by Append: the error wraps ErrPartitions.
func NewLog(cfg Config, topic string) (*Log, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if topic == "" {
		return nil, errors.New("log: no topic given")
	}
	return newLog(cfg, topic, 0, false), nil
}

// NewPartition returns one partition of a topic as a log. It is there to bring several
// partitions together.
func NewPartition(cfg Config, topic string, partition int) (*Log, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return newLog(cfg, topic, partition, true), nil
}

func newLog(cfg Config, topic string, partition int, several bool) *Log {
	l := &Log{cfg: cfg, topic: topic, partition: partition, any: several, client: cfg.client(topic)}
	l.living, l.end = context.WithCancelCause(context.Background())
	l.writer = newPartitionWriter(l)
	return l
}

// Name returns what errors and logs call it.
func (l *Log) Name() string { return "topic " + l.topic }

// Close ends the calls in progress, those of Append with ErrClosed, and closes all connections.
func (l *Log) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end(ErrClosed)
	l.appends.Wait()
	closeIdle(l.client)
	return nil
}

// Append implements [stream.Appender]: it returns when all in-sync replicas have acknowledged all
// records. It does not linger: what is appended while a request is in flight travels together in
// the next one. It retries through broker restarts until ctx ends, or for Config.MaxOutage.
// When ctx ends it returns at once. A request that is in flight then goes on, and later records
// wait for its outcome: do not change the bytes of records.
func (l *Log) Append(ctx context.Context, records ...stream.Record) error {
	for i := range records {
		if n := sizeOf(&records[i]); n > l.cfg.MaxRecordBytes {
			return fmt.Errorf("append to topic %s: %w: record %d of %d has %d bytes, more than %d; "+
				"reduce it, or raise the limit here and at the broker",
				l.topic, ErrTooLarge, i+1, len(records), n, l.cfg.MaxRecordBytes)
		}
	}
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.appends.Add(1)
	}
	l.mu.Unlock()
	if closed {
		return fmt.Errorf("append to topic %s: %w", l.topic, ErrClosed)
	}
	defer l.appends.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.living, func() { cancel(ErrClosed) })()
	return l.writer.publish(ctx, records)
}

// Bounds implements [stream.Log]. Kafka's topic IDs are not in the versions of the protocol that
// kafka-go speaks, so ID is "".
func (l *Log) Bounds(ctx context.Context) (stream.Bounds, error) {
	ids, err := partitionsOf(ctx, &l.cfg, l.client, l.topic)
	if err != nil {
		return stream.Bounds{}, l.failed(ctx, err)
	}
	if len(ids) > 1 && !l.any {
		return stream.Bounds{}, fmt.Errorf("topic %s: %w", l.topic, severalPartitions(len(ids)))
	}
	first, end, err := listOffsets(ctx, l.client, l.topic, l.partition)
	if err != nil {
		return stream.Bounds{}, l.failed(ctx, err)
	}
	return stream.Bounds{First: first, End: end}, nil
}

// Since implements [stream.Log].
func (l *Log) Since(ctx context.Context, t time.Time) (int64, error) {
	_, since, err := listOffsets(ctx, l.client, l.topic, l.partition)
	if err != nil {
		return 0, l.failed(ctx, err)
	}
	res, err := l.client.ListOffsets(ctx, &kafkago.ListOffsetsRequest{Topics: map[string][]kafkago.OffsetRequest{
		l.topic: {kafkago.TimeOffsetOf(l.partition, t)},
	}})
	if err != nil {
		return 0, l.failed(ctx, err)
	}
	for _, p := range res.Topics[l.topic] {
		if p.Error != nil {
			return 0, l.failed(ctx, p.Error)
		}
		for offset := range p.Offsets {
			if offset >= 0 {
				since = offset
			}
		}
	}
	return since, nil
}

// Read implements [stream.Log]. The records of one fetch that are too many for one Read are left
// on the connection for the next one.
func (l *Log) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) (
	records []stream.Record, end int64, err error) {
	most.Bytes = cmp.Or(most.Bytes, readBytes)
	until := time.Now().Add(wait)
	c, err := l.cursor(ctx, from)
	if err != nil {
		return nil, 0, l.failed(ctx, err)
	}
	stop := context.AfterFunc(ctx, c.drop)
	records, err = c.read(most, until)
	if err == nil && stop() {
		end := c.end
		l.keep(c) // from here on another Read may use it
		return records, end, nil
	}
	c.drop()
	switch {
	case ctx.Err() != nil:
		return nil, 0, l.failed(ctx, context.Cause(ctx))
	case errors.Is(err, kafkago.OffsetOutOfRange):
		return nil, 0, l.outside(ctx, from)
	}
	return nil, 0, l.failed(ctx, err)
}

// outside says on which side of the log an offset is that a broker has not found.
func (l *Log) outside(ctx context.Context, from int64) error {
	b, err := l.Bounds(ctx)
	switch {
	case err != nil:
		return err
	case from < b.First:
		return fmt.Errorf("topic %s: %w: offset %d, the log begins at %d", l.topic, stream.ErrGone, from, b.First)
	case from > b.End:
		return fmt.Errorf("topic %s: %w: offset %d, the log ends at %d", l.topic, stream.ErrBeyond, from, b.End)
	}
	return l.failed(ctx, kafkago.OffsetOutOfRange) // it was so for a moment
}

// failed returns the error of a request as a [stream.Log] has to.
func (l *Log) failed(ctx context.Context, err error) error {
	if p := permanent(err); p != nil {
		return fmt.Errorf("topic %s: %w", l.topic, p)
	}
	invalidateMetadata(l.client, err)
	never := false // seen
	if unknownTopic(err) {
		never, err = new(outage).inquire(ctx, &l.cfg, l.client, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !never {
		l.absent.reset()
	} else if l.absent.over() {
		return l.cfg.absentError(l.topic, err)
	}
	return fmt.Errorf("%w: topic %s at %s: %w", stream.ErrAway, l.topic, l.cfg.addresses(), err)
}

// cursor returns one that reads on from an offset: one that has come there, one that is free, or
// a new one.
func (l *Log) cursor(ctx context.Context, from int64) (*cursor, error) {
	l.mu.Lock()
	i := slices.IndexFunc(l.idle, func(c *cursor) bool { return c.next == from })
	if i < 0 {
		i = slices.IndexFunc(l.idle, func(c *cursor) bool { return c.batch == nil && c.err == nil })
	}
	var c *cursor
	if i >= 0 {
		c = l.idle[i]
		l.idle = slices.Delete(l.idle, i, i+1)
	}
	l.mu.Unlock()
	if c == nil {
		living, drop := context.WithCancel(l.living)
		stop := context.AfterFunc(ctx, drop)
		conn, err := dialLeader(living, &l.cfg, l.topic, l.partition)
		stop()
		if err != nil {
			drop()
			return nil, err
		}
		c = &cursor{conn: conn, drop: drop, next: -1}
	}
	if c.next != from {
		c.next = from
		if _, err := c.conn.Seek(from, kafkago.SeekAbsolute|kafkago.SeekDontCheck); err != nil {
			c.drop()
			return nil, err
		}
	}
	return c, nil
}

// keep keeps a cursor for the next Read.
func (l *Log) keep(c *cursor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle = append(l.idle, c); len(l.idle) > idleCursors {
		l.idle[0].drop()
		l.idle = slices.Delete(l.idle, 0, 1)
	}
}

// A cursor is a connection to the leader that reads on from an offset.
//
// Invariant: all records below next, from where its reading began, were returned. What follows
// is held, then the rest of batch, then what the next fetch returns.
type cursor struct {
	conn  *kafkago.Conn
	drop  func() // closes the connection
	next  int64
	end   int64          // of the log, as of the last fetch
	batch *kafkago.Batch // of the last fetch; nil: it is read
	last  stream.Record  // read from batch
	held  *stream.Record // last, if it was too large for the last Read; nil: it was returned
	err   error          // of the last fetch, after some of its records
}

// dialLeader connects to the leader of a partition. It asks the brokers of cfg in turn
// who that is, each for at most requestTimeout.
func dialLeader(ctx context.Context, cfg *Config, topic string, partition int) (conn *kafkago.Conn, err error) {
	for _, broker := range cfg.Brokers {
		attempt, cancel := context.WithTimeout(ctx, requestTimeout)
		conn, err = cfg.dialer(ctx).DialLeader(attempt, "tcp", broker, topic, partition)
		cancel()
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// read returns records within the limit. It fetches if none are left, and waits until then.
func (c *cursor) read(most stream.Limit, until time.Time) (records []stream.Record, err error) {
	if c.err != nil {
		return nil, c.err
	}
	for {
		left := max(time.Until(until), time.Millisecond) // 0 would be kafka-go's default
		if err := c.conn.SetDeadline(time.Now().Add(left + requestTimeout)); err != nil {
			return nil, err
		}
		if c.batch == nil {
			c.batch = c.conn.ReadBatchWith(kafkago.ReadBatchConfig{
				MinBytes: 1, MaxBytes: min(most.Bytes, fetchBytes), MaxWait: left,
			})
			if err := c.batch.Err(); err != nil {
				_ = c.batch.Close()
				return nil, err
			}
			c.end = c.batch.HighWaterMark()
		}
		records, err = c.take(most)
		if err != nil && len(records) == 0 {
			return nil, err
		}
		c.err = err
		if len(records) > 0 || !time.Now().Before(until) {
			c.leave(most)
			return records, nil
		}
	}
}

// take takes records of the batch, and closes the batch at its end.
func (c *cursor) take(most stream.Limit) (records []stream.Record, err error) {
	for size := 0; most.Records == 0 || len(records) < most.Records; {
		r := c.held
		if c.held = nil; r == nil {
			m, err := c.batch.ReadMessage()
			if err != nil {
				_ = c.batch.Close()
				c.batch = nil
				if errors.Is(err, io.EOF) || errors.Is(err, kafkago.RequestTimedOut) { // all are read, or there was none
					return records, nil
				}
				return records, err
			}
			if m.Offset < c.next {
				continue // of a batch that begins earlier
			}
			c.last = recordOf(&m)
			r = &c.last
		}
		if size += r.Size(); size > most.Bytes && len(records) > 0 {
			c.held = r
			break
		}
		if records == nil {
			records = make([]stream.Record, 0, min(most.Records, 128))
		}
		records = append(records, *r)
		c.next = r.Offset + 1
	}
	return records, nil
}

// leave frees a cursor that has read a little, so that it can read elsewhere. A batch that was
// fetched to be read on stays.
func (c *cursor) leave(most stream.Limit) {
	if c.batch == nil || most.Bytes >= fetchBytes {
		return
	}
	if err := c.batch.Close(); err != nil {
		c.err = err
	}
	c.batch, c.held, c.next = nil, nil, -1
}

// recordOf returns the record that kafka-go returned.
func recordOf(m *kafkago.Message) stream.Record {
	r := stream.Record{Offset: m.Offset, Key: m.Key, Value: m.Value, Time: m.Time}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, stream.Header(h))
	}
	return r
}
