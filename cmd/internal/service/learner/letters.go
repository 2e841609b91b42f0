package learner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/wire"
	"hamlet/stream"
)

// deadLetter returns the dead letter of a refused record. Its time is the present. The
// record's own time may be months old, and retention would delete the letter.
func (w *worker) deadLetter(r *stream.Record, reason string) stream.Record {
	d := stream.DeadLetter{Reason: reason, Topic: w.l.cfg.Topic, Offset: r.Offset, Time: r.Time}
	return stream.Record{Key: r.Key, Value: r.Value, Headers: d.AppendHeaders(r.Headers)}
}

// The letters are what the learner writes to topics of their own about records that it has read.
type letters struct {
	dead, receipts []stream.Record
}

// withdrawalReceipt returns the receipt of a withdrawal or a correction, but not where it was
// applied.
func withdrawalReceipt(e *stream.Event, effect *model.Effect) stream.Receipt {
	took := effect.Receipt
	receipt := stream.Receipt{
		ID: e.ID, Of: e.Of, Source: e.Source, Tenant: e.Tenant, Action: e.Action.String(),
		Outcome: wire.Outcome(took.Outcome), Events: took.Events,
	}
	if took.Events > 0 {
		receipt.Withdrawn, receipt.Trust, receipt.Since = wire.Label(took.Spam).String(), took.Trust, took.Since
		receipt.Curvature, receipt.Shift, receipt.KL, receipt.LogDetV = took.Site.H, took.Site.Eta, took.Site.KL,
			took.Site.LogDetV
		receipt.Counted, receipt.Traces = took.Counted, stream.ReceiptTraces
		if took.Uncounted {
			receipt.Traces = append(slices.Clone(receipt.Traces), stream.TraceCounts)
		}
	} else {
		receipt.Last = wire.Label(took.Spam).String()
	}
	switch took.Outcome {
	case model.Outweighed:
		receipt.Traces = stream.AllTraces
		receipt.Learnt = e.Label.String()
	case model.Replaced:
		receipt.Learnt = e.Label.String()
	}
	if e.Action == stream.Relearn {
		receipt.Learnt = e.Label.String()
	}
	return receipt
}

// addReceipt adds a receipt to the letters. The trace is that of the event which asked for it.
func (w *worker) addReceipt(receipt *stream.Receipt, trace stream.Trace) error {
	value, err := receipt.AppendJSON(nil)
	if err != nil {
		return err
	}
	w.letters.receipts = append(w.letters.receipts, stream.Record{
		Key: []byte(receipt.Tenant), Value: value,
		Headers: []stream.Header{{Key: "content-type", Value: []byte(stream.ContentTypeJSON)}},
	})
	level := slog.LevelInfo
	if receipt.Events == 0 {
		level = slog.LevelDebug
	}
	w.log.Log(context.Background(), level, "withdrawn or corrected",
		append(trace.LogAttrs(), "action", receipt.Action, "outcome", receipt.Outcome, "events", receipt.Events,
			"event", receipt.Event, "offset", receipt.Offset, "kl", receipt.KL, "delta_log_det_v", receipt.LogDetV,
			"counted", receipt.Counted)...)
	return nil
}

// modelSHA256 returns the SHA-256 of the model's bytes in hexadecimal.
func (w *worker) modelSHA256() (string, error) {
	sum := sha256.New()
	if _, err := w.model.WriteTo(sum); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// publishLetters returns when dead letters and receipts are acknowledged. It cuts a
// dead letter that is too large with its new headers.
func (w *worker) publishLetters(ctx context.Context) error {
	if len(w.letters.dead) > 0 {
		err := w.l.cfg.Letters.Append(ctx, w.letters.dead...)
		if errors.Is(err, stream.ErrTooLarge) {
			for i := range w.letters.dead {
				if err = w.publishLetter(ctx, w.letters.dead[i]); err != nil {
					break
				}
			}
		}
		if err != nil {
			return fmt.Errorf("publish dead letters: %w", err)
		}
		w.letters.dead = w.letters.dead[:0]
	}
	if len(w.letters.receipts) > 0 {
		if err := w.l.cfg.Receipts.Append(ctx, w.letters.receipts...); err != nil {
			return fmt.Errorf("publish receipts: %w", err)
		}
		w.letters.receipts = w.letters.receipts[:0]
	}
	return nil
}

func (w *worker) publishLetter(ctx context.Context, letter stream.Record) error {
	err := w.l.cfg.Letters.Append(ctx, letter)
	if !errors.Is(err, stream.ErrTooLarge) {
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
	return w.l.cfg.Letters.Append(ctx, letter)
}
