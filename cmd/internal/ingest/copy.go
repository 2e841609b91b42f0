package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"hamlet/cmd/internal/tokens"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/mail"
)

// A CopyConfig describes a topic whose events are copied into a model's.
type CopyConfig struct {
	Kafka     kafka.Config
	From      string // the topic that one principal writes
	Group     string // of consumers, whose committed offsets say where to go on
	Publisher Publisher
	Topic     string                    // of the model's events
	Source    string                    // of the copies, whatever the records say
	Tenants   []string                  // that records may name; one alone is that of records without one. tokens.All: every one
	Copied    func(letters, events int) // called after each acknowledged batch, by several goroutines; may be nil
	Log       *slog.Logger
}

// Copy copies events until ctx ends: from the topic of a principal, whose right to write is
// a rule of Kafka, to that of a model, where the copies have the principal's source. They
// keep their ids and, but for mail, their keys: that of a mail is its identity, as at every
// door ([Key]). Headers of the records do not come along, and a withdrawal is
// about events of the same source. A record that cannot be learnt, or names a tenant that
// it may not, becomes a dead letter that says where it is.
//
// A batch is acknowledged before its offset is committed. So a kill loses nothing, and
// leaves at most a batch of 128 events of each partition twice. A model knows them by their
// ids, unless more events than its duplicate window come between. Kafka forgets the offset of
// a group that is away for longer than offsets.retention.minutes, seven days by default. A
// partition without one is copied from its beginning, and the log says so.
func Copy(ctx context.Context, cfg CopyConfig) error {
	if err := cfg.check(); err != nil {
		return err
	}
	consumer, err := kafka.NewConsumer(kafka.ConsumerConfig{
		Config: cfg.Kafka, Topic: cfg.From, Group: cfg.Group,
		// What the principal's retention has taken cannot be copied. The log says so.
		AcceptGap: true, AcceptLostBeginning: true,
		CommitEach: true,
	})
	if err != nil {
		return err
	}
	return consumer.Run(ctx, func(ctx context.Context, partition int) (kafka.Handler, error) {
		next, known, err := kafka.CommittedOffset(ctx, cfg.Kafka, cfg.Group, cfg.From, partition)
		return &copier{cfg: &cfg, next: next, known: known}, err
	})
}

func (cfg *CopyConfig) check() error {
	for _, own := range []string{stream.EventsTopic(""), stream.ReceiptTopic, stream.DeadLetterTopic} {
		if strings.HasPrefix(cfg.From, own) {
			return fmt.Errorf("copy the topic %s: that is a topic of hamlet's own, and not a principal's", cfg.From)
		}
	}
	return tokens.CheckRights(&tokens.Rights{Name: "copy", Sources: []string{cfg.Source}, Tenants: cfg.Tenants})
}

// A copier copies one partition. Kafka knows where it is.
type copier struct {
	cfg   *CopyConfig
	next  int64 // the offset that the group committed
	known bool  // it committed one

	warned bool // that it had not
}

func (c *copier) Position(func(context.Context) error) (int64, bool) { return c.next, c.known }
func (c *copier) Follows(kafka.Record) bool                          { return true } // nothing is known of it
func (c *copier) Idle(context.Context) error                         { return nil }
func (c *copier) Close(context.Context) error                        { return nil }

// Handle publishes a batch.
func (c *copier) Handle(ctx context.Context, batch []kafka.Record) error {
	out := make([]kafka.Record, 0, len(batch))
	letters := 0
	if first := &batch[0]; !c.known && !c.warned {
		c.warned = true
		c.cfg.Log.Warn("the consumer group has no offset here: all records are copied", "topic", c.cfg.From, "partition", first.Partition,
			"group", c.cfg.Group, "from_offset", first.Offset, "records", max(first.HighWatermark-first.Offset, int64(len(batch))))
	}
	for i := range batch {
		record, err := c.copy(&batch[i])
		if err != nil {
			letters++
			record = letter(&batch[i], err)
		}
		out = append(out, record)
	}
	if letters > 0 {
		c.cfg.Log.Warn("records became dead letters", "topic", c.cfg.From, "partition", batch[0].Partition, "from_offset", batch[0].Offset, "letters", letters)
	}
	if err := c.cfg.Publisher.Publish(ctx, out...); err != nil {
		return fmt.Errorf("copy to %s: %w", c.cfg.Topic, err)
	}
	if c.cfg.Copied != nil {
		c.cfg.Copied(letters, len(batch)-letters)
	}
	return nil
}

// maxKey bounds the keys that are kept, in bytes: with it an event fits into a record.
const maxKey = 1 << 10

// copy returns a record's event as it goes to the model.
func (c *copier) copy(r *kafka.Record) (kafka.Record, error) {
	if len(r.Key) > maxKey {
		return kafka.Record{}, fmt.Errorf("the record's key has %d bytes, more than %d", len(r.Key), maxKey)
	}
	e, err := stream.DecodeRecord(r.Headers, r.Value)
	if err != nil {
		return kafka.Record{}, err
	}
	if e.Action == stream.Assume {
		return kafka.Record{}, errors.New("action: only hamlet itself assumes an answer")
	}
	rights := tokens.Rights{Tenants: c.cfg.Tenants}
	if e.Tenant == stream.DefaultName {
		e.Tenant = rights.Tenant(stream.DefaultName)
	}
	if !rights.OfTenant(e.Tenant) {
		return kafka.Record{}, errors.New("tenant: this topic may not name it")
	}
	e.Source, e.OwnOnly = c.cfg.Source, e.Action != stream.Learn
	if e.Time.IsZero() {
		e.Time = r.Time.UTC() // and not now: a copy of the copy is equal
	}
	if e.Body.Kind == stream.Mail {
		if e.Body.Mail, err = mail.Reduce(e.Body.Mail); err != nil {
			return kafka.Record{}, fmt.Errorf("mail: %w", err)
		}
	}
	if err := e.Validate(); err != nil {
		return kafka.Record{}, err
	}
	out, err := Record(&e, c.cfg.Topic)
	if err == nil && len(r.Key) > 0 && e.Body.Kind != stream.Mail {
		out.Key = r.Key
	}
	out.Headers = stream.RecordTrace(r.Headers).AppendHeader(out.Headers)
	return out, err
}

// What a dead letter keeps of a record that is too large with the letter's headers.
const (
	maxLetter      = stream.MaxEventSize // bytes of key, value and headers
	letterValueMax = 64 << 10
)

// letter returns the dead letter of a record.
func letter(r *kafka.Record, reason error) kafka.Record {
	d := stream.DeadLetter{
		Reason: strings.ReplaceAll(reason.Error(), "\n", "; "),
		Topic:  r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time,
	}
	size := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		size += len(h.Key) + len(h.Value)
	}
	key, value, headers := r.Key, r.Value, r.Headers
	if size > maxLetter {
		d.Truncated = len(key) + len(value)
		key, value, headers = key[:min(len(key), maxKey)], value[:min(len(value), letterValueMax)], nil
	}
	return kafka.Record{Topic: stream.DeadLetterTopic, Key: key, Value: value, Headers: d.AppendHeaders(headers)}
}
