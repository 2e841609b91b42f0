package learner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"hamlet/algos/model"
	"hamlet/cmd/internal/convert"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// deadLetter returns the dead letter of a refused record. Its time is the present. The
// record's own time may be months old, and retention would delete the letter.
func deadLetter(r *kafka.Record, reason string) kafka.Record {
	d := stream.DeadLetter{Reason: reason, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time}
	return kafka.Record{Topic: stream.DeadLetterTopic, Key: r.Key, Value: r.Value, Headers: d.AppendHeaders(r.Headers)}
}

// receipt adds the receipt of a withdrawal to the letters. before is the model's
// SHA-256 before it.
func (p *partitionModel) receipt(r *kafka.Record, e *stream.Event, effect *model.Effect, before [sha256.Size]byte) error {
	after, err := p.modelSHA256()
	if err != nil {
		return err
	}
	took := effect.Receipt
	receipt := stream.Receipt{
		ID: e.ID, Of: e.Of, Source: e.Source, Tenant: e.Tenant, Action: e.Action.String(),
		Model: p.l.cfg.Name, Partition: r.Partition, Offset: r.Offset, Event: p.model.Events(),
		Withdrawn: convert.Label(took.Spam).String(), Trust: took.Trust, Since: took.Since,
		Curvature: took.Site.H, Shift: took.Site.Eta, KL: took.Site.KL, LogDetV: took.Site.LogDetV,
		Counted: took.Counted, Traces: stream.ReceiptTraces,
		Before: hex.EncodeToString(before[:]), After: hex.EncodeToString(after[:]),
	}
	if e.Action == stream.Relearn {
		receipt.Learnt = e.Label.String()
	}
	value, err := receipt.AppendJSON(nil)
	if err != nil {
		return err
	}
	p.letters = append(p.letters, kafka.Record{
		Topic: stream.ReceiptTopic, Key: []byte(e.Tenant), Value: value,
		Headers: []kafka.Header{{Key: "content-type", Value: []byte(stream.ContentTypeJSON)}},
	})
	p.log.Info("withdrawn", "action", receipt.Action, "event", receipt.Event, "offset", r.Offset,
		"kl", receipt.KL, "delta_log_det_v", receipt.LogDetV, "counted", receipt.Counted)
	return nil
}

func (p *partitionModel) modelSHA256() ([sha256.Size]byte, error) {
	var err error
	if p.bytes, err = p.model.AppendBinary(p.bytes[:0]); err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(p.bytes), nil
}

// publishLetters returns when dead letters and receipts are acknowledged. It cuts a
// dead letter that is too large with its new headers.
func (p *partitionModel) publishLetters(ctx context.Context) error {
	if len(p.letters) == 0 {
		return nil
	}
	err := p.l.cfg.DeadLetters.Publish(ctx, p.letters...)
	if errors.Is(err, kafka.ErrTooLarge) {
		for i := range p.letters {
			if err = p.publishLetter(ctx, p.letters[i]); err != nil {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("publish dead letters and receipts: %w", err)
	}
	p.letters = p.letters[:0]
	return nil
}

func (p *partitionModel) publishLetter(ctx context.Context, letter kafka.Record) error {
	err := p.l.cfg.DeadLetters.Publish(ctx, letter)
	if !errors.Is(err, kafka.ErrTooLarge) {
		return err
	}
	d, err := stream.ParseDeadLetter(letter.Headers)
	if err != nil {
		return err
	}
	d.Truncated = len(letter.Key) + len(letter.Value)
	letter.Key = letter.Key[:min(len(letter.Key), 1<<10)]
	letter.Value = letter.Value[:min(len(letter.Value), 64<<10)]
	letter.Headers = d.AppendHeaders(nil)
	return p.l.cfg.DeadLetters.Publish(ctx, letter)
}
