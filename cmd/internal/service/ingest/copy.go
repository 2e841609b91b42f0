package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/process/tokens"
	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/mail"
)

// A CopyConfig describes a topic whose events are copied into a model's.
type CopyConfig struct {
	Kafka   kafka.Config
	From    string                    // the topic that one principal writes
	Group   string                    // of consumers, whose committed offsets say where to go on
	Events  stream.Appender           // the model's topic
	Letters stream.Appender           // the topic of dead letters
	Source  string                    // of the copies, whatever the records say
	Tenants []string                  // that records may name, or tokens.All; one alone is that of records without one
	Sampled *float64                  // as source.Config's, whatever the records say
	Ask     Asking                    // which labels were asked for, where Sampled says nothing
	Copied  func(letters, events int) // called after each acknowledged batch, by several goroutines; may be nil
	Log     *slog.Logger
}

// Copy copies events until ctx ends: from the topic of a principal, whose right to write is
// a rule of Kafka, to that of a model, where the copies have the principal's source. They
// keep their ids and, but for mail, their keys: that of a mail is its identity, as at every
// door ([Key]). Headers of the records and Sampled do not come along, and a withdrawal is
// about events of the same source. A record that cannot be learnt, or names a tenant that
// it may not, becomes a dead letter that says where it is.
//
// A batch is acknowledged before its offset is committed. So a kill loses nothing, and
// leaves at most a batch of 128 events of each partition twice. A model knows them by their
// ids, unless more events than its duplicate window come between. Kafka forgets the offset of
// a group that is away for longer than offsets.retention.minutes, seven days by default. A
// partition without one is copied from its beginning, and the log says so.
//
// Copy ends with follow.ErrReplaced when the topic is deleted and made again under it. Kafka
// deletes the group's offsets with the topic, so the next Copy begins at the new beginning.
func Copy(ctx context.Context, cfg CopyConfig) error {
	if err := cfg.check(); err != nil {
		return err
	}
	return kafka.Consume(ctx, cfg.Kafka, cfg.Group, cfg.From, func(ctx context.Context, a *kafka.Assignment) error {
		follower := follow.New(follow.Config{
			Log: a.Log, Name: fmt.Sprintf("topic %s, partition %d", cfg.From, a.Partition),
			// What the principal's retention has taken cannot be copied. The log says so.
			AcceptGap: true, AcceptLostBeginning: true,
			MaxOutage: cfg.Kafka.MaxOutage, Logger: cfg.Log,
		})
		var c *copier
		return follower.Run(ctx, func(ctx context.Context) (follow.Handler, error) {
			if c != nil {
				return nil, replaced(ctx, &cfg, a.Partition)
			}
			c = &copier{cfg: &cfg, partition: a.Partition, next: a.Next, known: a.Known, commit: a.Commit}
			return c, nil
		})
	})
}

// replaced returns the error of a partition that turned out to be another log while it was read.
// Only then does the follower open a second copier. The first one's offset means nothing there.
func replaced(ctx context.Context, cfg *CopyConfig, partition int) error {
	next, known, err := cfg.Kafka.CommittedOffset(ctx, cfg.Group, cfg.From, partition)
	switch {
	case err != nil:
		return fmt.Errorf("%w; where the consumer group %s goes on is not known: %w", follow.ErrReplaced, cfg.Group, err)
	case known:
		return fmt.Errorf("%w; the consumer group %s would go on at offset %d: delete its offsets, "+
			"and a restart copies the topic from its beginning", follow.ErrReplaced, cfg.Group, next)
	}
	return fmt.Errorf("%w; the consumer group %s has no offset in it: a restart copies the topic from its beginning",
		follow.ErrReplaced, cfg.Group)
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
	cfg       *CopyConfig
	partition int
	next      int64 // the records below are copied
	known     bool  // there is such an offset: the group had committed one, or this copier has copied
	commit    func(next int64)
}

func (c *copier) Position(func(context.Context) error) (int64, bool) { return c.next, c.known }
func (c *copier) Follows(stream.Record) bool                         { return true } // nothing is known of it
func (c *copier) Idle(context.Context) error                         { return nil }
func (c *copier) Close(context.Context) error                        { return nil }

// StepBack implements [follow.Handler].
func (c *copier) StepBack(context.Context, stream.Bounds, error, follow.RecordAt) error {
	return fmt.Errorf("delete the offsets of the consumer group %s, so that the topic is copied from its beginning",
		c.cfg.Group)
}

// Handle appends a batch.
func (c *copier) Handle(ctx context.Context, batch []stream.Record, end int64) error {
	var events, letters []stream.Record
	first := batch[0].Offset
	if !c.known {
		c.cfg.Log.Warn("the consumer group has no offset here: all records are copied",
			"topic", c.cfg.From, "partition", c.partition,
			"group", c.cfg.Group, "from_offset", first, "records", max(end-first, int64(len(batch))))
	}
	for i := range batch {
		if event, err := c.copy(&batch[i]); err != nil {
			letters = append(letters, c.letter(&batch[i], err))
		} else {
			events = append(events, event)
		}
	}
	if len(events) > 0 {
		if err := c.cfg.Events.Append(ctx, events...); err != nil {
			return fmt.Errorf("copy events: %w", err)
		}
	}
	if len(letters) > 0 {
		c.cfg.Log.Warn("records became dead letters",
			"topic", c.cfg.From, "partition", c.partition, "from_offset", first, "letters", len(letters))
		if err := c.cfg.Letters.Append(ctx, letters...); err != nil {
			return fmt.Errorf("write dead letters: %w", err)
		}
	}
	c.next, c.known = batch[len(batch)-1].Offset+1, true
	c.commit(c.next)
	if c.cfg.Copied != nil {
		c.cfg.Copied(len(letters), len(events))
	}
	return nil
}

// maxKey bounds the keys that are kept, in bytes: with it an event fits into a record.
const maxKey = 1 << 10

// copy returns a record's event as it goes to the model.
func (c *copier) copy(r *stream.Record) (stream.Record, error) {
	if len(r.Key) > maxKey {
		return stream.Record{}, fmt.Errorf("the record's key has %d bytes, more than %d", len(r.Key), maxKey)
	}
	e, err := stream.DecodeRecord(r.Headers, r.Value)
	if err != nil {
		return stream.Record{}, err
	}
	if e.Action == stream.Assume {
		return stream.Record{}, errors.New("action: only hamlet itself assumes an answer")
	}
	rights := tokens.Rights{Tenants: c.cfg.Tenants}
	if e.Tenant == stream.DefaultName {
		e.Tenant = rights.Tenant(stream.DefaultName)
	}
	if !rights.OfTenant(e.Tenant) {
		return stream.Record{}, errors.New("tenant: this topic may not name it")
	}
	e.Source, e.OwnOnly = c.cfg.Source, e.Action != stream.Learn
	e.Sampled = stream.Sampled{} // the operator says how labels come about
	source.Sample(&e, c.cfg.Sampled)
	if e.Time.IsZero() {
		e.Time = r.Time.UTC() // and not now: a copy of the copy is equal
	}
	if e.Body.Kind == stream.Mail {
		if e.Body.Mail, err = mail.Reduce(e.Body.Mail); err != nil {
			return stream.Record{}, fmt.Errorf("mail: %w", err)
		}
	}
	if err := e.Validate(); err != nil {
		return stream.Record{}, err
	}
	out, err := c.cfg.Ask.Record(&e)
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
func (c *copier) letter(r *stream.Record, reason error) stream.Record {
	d := stream.DeadLetter{
		Reason: strings.ReplaceAll(reason.Error(), "\n", "; "),
		Topic:  c.cfg.From, Partition: c.partition, Offset: r.Offset, Time: r.Time,
	}
	key, value, headers := r.Key, r.Value, r.Headers
	if r.Size() > maxLetter {
		d.Truncated = len(key) + len(value)
		key, value, headers = key[:min(len(key), maxKey)], value[:min(len(value), letterValueMax)], nil
	}
	return stream.Record{Key: key, Value: value, Headers: d.AppendHeaders(headers)}
}
