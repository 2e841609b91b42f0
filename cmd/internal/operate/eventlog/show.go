package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/progress"
	"hamlet/cmd/internal/show/report"
	"hamlet/stream"
	"hamlet/stream/predictions"
)

type showCommand struct {
	Topic string `arg:"" help:"events, dead-letters, receipts or predictions."`
	Last  int    `short:"n" help:"So many records, the last ones." default:"20" env:"-" placeholder:"N"`
	settings.ModelName
}

// Help is what kong prints below the flags.
func (showCommand) Help() string {
	return `Examples:

  hamlet log show dead-letters           why labels were not learnt
  hamlet log show receipts -n 3          what withdrawals did
  hamlet log show events | jq -c '.event|[.id,.label,.source]'
  sudo -u hamlet hamlet log show predictions --data /var/lib/hamlet

Each line is a record, oldest first: its offset, when it was written, and

  events        the label with its mail, or the standing of a source
  dead-letters  the reason, where the record stood, what can be read of it
  receipts      what a withdrawal or correction did to the model
  predictions   what the model said of events before it learnt them

What cannot be decoded has an error, and its value as text or in base64. Most of this is mail.
Alerts are in NATS: hamlet alarms shows them.`
}

// mostShown bounds -n, and mostLooked the offsets that are read for it: dead letters and receipts of all
// models are in one log.
const (
	mostShown  = 1000
	mostLooked = 1 << 20
)

// A Shown is a record as `hamlet log show` prints it.
type Shown struct {
	Offset      int64             `json:"offset"`
	Time        time.Time         `json:"time"`
	Letter      *shownLetter      `json:"dead_letter,omitempty"`
	Event       json.RawMessage   `json:"event,omitempty"`
	Standing    json.RawMessage   `json:"standing,omitempty"`
	Receipt     json.RawMessage   `json:"receipt,omitempty"`
	Predictions *shownPredictions `json:"predictions,omitempty"`
	Error       string            `json:"error,omitempty"`  // why the record could not be decoded
	Text        string            `json:"text,omitempty"`   // its value then
	Base64      []byte            `json:"base64,omitempty"` // the same, where it is no text
}

type shownLetter struct {
	Reason    string     `json:"reason"`
	Topic     string     `json:"topic"`
	Partition int        `json:"partition"`
	Offset    int64      `json:"offset"`
	Time      *time.Time `json:"time,omitempty"`
	Truncated int        `json:"truncated,omitempty"` // its bytes, if it had to be cut
}

type shownPredictions struct {
	Model  string           `json:"model"`
	Topic  string           `json:"topic"` // which it learns
	Learnt int64            `json:"learnt,omitempty"`
	Of     []shownPredicted `json:"of"`
}

type shownPredicted struct {
	Offset  int64   `json:"offset"`
	Label   string  `json:"label"` // which it had not seen
	LogOdds float32 `json:"log_odds"`
}

// shownTopics says what is shown of a topic: its name, and how a record becomes a line. of is false for a record of
// another model.
var shownTopics = map[string]struct {
	name func(model string) string
	show func(r *stream.Record, model string, s *Shown) (of bool)
}{
	"events":       {stream.EventsTopic, showEvent},
	"dead-letters": {func(string) string { return stream.DeadLetterTopic }, showLetter},
	"receipts":     {func(string) string { return stream.ReceiptTopic }, showReceipt},
	"predictions":  {predictions.Topic, showPredictions},
}

func showEvent(r *stream.Record, _ string, s *Shown) bool {
	var err error
	if stream.IsStanding(r.Headers) {
		var standing stream.Standing
		if standing, err = stream.DecodeStandingRecord(r.Headers, r.Value); err == nil {
			s.Standing, err = standing.AppendJSON(nil)
		}
	} else {
		var e stream.Event
		if e, err = stream.DecodeRecord(r.Headers, r.Value); err == nil {
			s.Event, err = e.AppendJSON(nil)
		}
	}
	s.failed(r, err)
	return true
}

func showLetter(r *stream.Record, model string, s *Shown) bool {
	d, err := stream.ParseDeadLetter(r.Headers)
	if err != nil {
		s.failed(r, err)
		return true
	}
	s.Letter = &shownLetter{Reason: d.Reason, Topic: d.Topic, Partition: d.Partition, Offset: d.Offset,
		Truncated: d.Truncated}
	if !d.Time.IsZero() {
		s.Letter.Time = &d.Time
	}
	showEvent(r, model, s)
	of, isModels := strings.CutPrefix(d.Topic, stream.EventsTopic(""))
	return !isModels || of == model // a letter of ingest --from-topic may be anybody's
}

func showReceipt(r *stream.Record, model string, s *Shown) bool {
	var receipt stream.Receipt
	if err := json.Unmarshal(r.Value, &receipt); err != nil {
		s.failed(r, err)
		return true
	}
	s.Receipt = r.Value
	return receipt.Model == model
}

func showPredictions(r *stream.Record, _ string, s *Shown) bool {
	b, err := predictions.Decode(r.Value)
	if err != nil {
		s.failed(r, err)
		return true
	}
	s.Predictions = &shownPredictions{Model: b.Model, Topic: b.Events, Learnt: b.Learnt, Of: []shownPredicted{}}
	for _, p := range b.Predictions {
		label := stream.Ham
		if p.Spam {
			label = stream.Spam
		}
		s.Predictions.Of = append(s.Predictions.Of, shownPredicted{p.Offset, label.String(), p.LogOdds})
	}
	return true
}

// failed notes why a record could not be decoded, and its value.
func (s *Shown) failed(r *stream.Record, err error) {
	switch {
	case err == nil:
		return
	case utf8.Valid(r.Value):
		s.Text = string(r.Value)
	default:
		s.Base64 = r.Value
	}
	s.Error = err.Error()
}

func (c *showCommand) check() error {
	err := cli.Range("-n", c.Last, 1, mostShown)
	switch _, ok := shownTopics[c.Topic]; {
	case c.Topic == "alerts":
		err = errors.Join(err, cli.Usagef("alerts are in NATS, not in a log: hamlet alarms shows them"))
	case !ok:
		err = errors.Join(err, cli.Usagef("%q is not a topic: say events, dead-letters, receipts or predictions", c.Topic))
	}
	return err
}

func (c *showCommand) run(ctx context.Context, logs stream.Logs, _ *progress.Counter) (any, string, error) {
	if err := c.check(); err != nil {
		return nil, "", err
	}
	topic := shownTopics[c.Topic].name(c.Model)
	switch n, err := logs.Partitions(ctx, topic); {
	case err != nil:
		return nil, "", err
	case n == 0:
		return nil, "", fmt.Errorf("there is no topic %s: --model names the model", topic)
	}
	log, err := logs.Open(topic)
	if err != nil {
		return nil, "", err
	}
	defer log.Close()
	shown, err := c.last(ctx, reads(logs, log, topic))
	if err != nil {
		return nil, "", err
	}
	var text strings.Builder
	if err := report.PrintLines(&text, shown); err != nil {
		return nil, "", err
	}
	return struct {
		Topic   string  `json:"topic"`
		Records []Shown `json:"records"`
	}{topic, shown}, text.String(), nil
}

// last returns the last records, oldest first. It reads backwards, in windows that grow.
func (c *showCommand) last(ctx context.Context, log follow.Config) ([]Shown, error) {
	b, err := follow.Bounds(ctx, log)
	if err != nil {
		return nil, err
	}
	all := []Shown{}
	first := max(b.First, b.End-mostLooked)
	for end, size := b.End, int64(c.Last); end > first && len(all) < c.Last; size *= 2 {
		from := max(first, end-size)
		var window []Shown
		err := follow.Range(ctx, log, from, end, func(r *stream.Record) error {
			s := Shown{Offset: r.Offset, Time: r.Time.UTC()}
			if !shownTopics[c.Topic].show(r, c.Model, &s) {
				return nil
			}
			if window = append(window, s); len(window) > c.Last {
				window = slices.Delete(window, 0, 1)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		all, end = append(window, all...), from
	}
	return all[max(0, len(all)-c.Last):], nil
}
