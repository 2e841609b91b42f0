// Package source turns labelled data into events: mail, text, CSV, svmlight and
// JSON Lines, from files, directories, archives and standard input.
//
//	paths ─> format's reader ─> event without id ─> id, source, checks ─> shuffle ─> limit ─> flips ─> Item
//	              └── cannot be learnt from ───────────┴─> *Rejection; the stream continues
//
// To read a table and print its rows:
//
//	s, err := source.Open(source.Config{Paths: []string{"rows.csv"}, Positive: "yes"})
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	for item, err := range s.Events() {
//		fmt.Println(item.Ordinal, item.Truth, item.Event.ID, err)
//	}
//
// The same configuration over the same data gives the same items on every run,
// ids included: an id hashes the item's ordinal in the data, its label and its body.
// Nothing here reads a clock.
//
// A source is streamed. Only --shuffle, and the merging of mail by time of delivery,
// spool it: the first 256 MiB in memory and the rest in a temporary file.
package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"

	"hamlet/stream"
)

// Formats of labelled data.
const (
	FormatMail     = "mail"
	FormatText     = "text"
	FormatCSV      = "csv"
	FormatSVMLight = "svmlight"
	FormatJSONL    = "jsonl"
)

var formats = []string{FormatMail, FormatText, FormatCSV, FormatSVMLight, FormatJSONL}

// A Config says what to read and how. Comments give the meaning of zero fields.
type Config struct {
	Paths  []string // files, directories, or "-" for Stdin
	Format string   // one of the formats; empty: recognised by names and contents

	Spam, Ham []string // mail: paths of spam and of ham, merged by time of delivery
	Index     string   // mail: a file of lines "label,path", in the order of the stream

	Label    string   // csv: the label's column, a name or a number from 1; empty: the last
	Positive string   // csv, text, svmlight: labels of spam, separated by commas; empty: spam, 1 and +1
	Drop     string   // csv: columns to leave out, names or numbers, separated by commas
	Text     string   // csv: columns of text, likewise; each word becomes a hashed name, column=word
	Missing  string   // csv: columns with gaps, likewise, or *; a gap is 0, and the input column? is 1
	Dense    []string // names of dense inputs; empty: all columns of a CSV that are numbers, else none

	Shuffle *int64       // seed of a permutation of the events; nil: in order
	Limit   int          // number of events; 0: all
	Assign  []Assignment // sources for events without one
	Sampled *float64     // share of all mail that is labelled here, chosen by chance; nil: labels are volunteered
	Flip    FlipConfig   // deliberately wrong labels

	Standing bool // jsonl: items may be standings; false: one is the last error

	Stdin io.Reader // what "-" is; nil: os.Stdin
}

// None reports whether c names no data at all.
func (c *Config) None() bool {
	return len(c.Paths) == 0 && len(c.Spam) == 0 && len(c.Ham) == 0 && c.Index == ""
}

// An Item is one event of a source, or a standing between the events.
type Item struct {
	Ordinal  int              // place in the stream from 0, including rejected items
	Event    stream.Event     // what the learner learns
	Truth    stream.Label     // the true label; Event.Label may be flipped
	Standing *stream.Standing // nil: an event; else Event is empty
}

// ID returns the id of the event or of the standing.
func (i *Item) ID() string {
	if i.Standing != nil {
		return i.Standing.ID
	}
	return i.Event.ID
}

// A Rejection is an item that cannot be learnt from. The stream continues after it.
type Rejection struct {
	Ordinal int    // place in the stream from 0
	Place   string // "file:line", a file, a member of an archive
	Err     error  // the reason
}

func (r *Rejection) Error() string { return r.Place + ": " + r.Err.Error() }
func (r *Rejection) Unwrap() error { return r.Err }

// An EmptyError means that a source holds nothing.
type EmptyError struct {
	Place string
	What  string // what is empty
}

func (e *EmptyError) Error() string {
	return e.Place + ": " + e.What + ", there is nothing to learn from"
}

// drafts yields a format's items: each a draft or a *Rejection. Any other error is the
// last.
type drafts = iter.Seq2[draft, error]

// A draft is an event without an id, or a standing.
type draft struct {
	event    stream.Event
	standing *stream.Standing // nil: an event
	place    string
}

func rejected(place string, err error) (draft, error) {
	return draft{place: place}, &Rejection{Place: place, Err: err}
}

func isRejection(err error) bool {
	var r *Rejection
	return errors.As(err, &r)
}

// A Source is labelled data that can be read. Open sets its fields. Reading changes only
// the counts and consumed.
type Source struct {
	cfg    Config
	dense  []string
	drafts drafts
	labels *labelling // of text, csv and svmlight; nil: others have clear labels
	judged bool       // Events has judged the labels
	once   []*input   // standard input and pipes; they can be read only once

	total    atomic.Int64 // items of the stream; −1: unknown
	rejected atomic.Int64 // items of the last reading
	consumed bool         // Events has read an input of once
}

// Open checks the data that cfg names, without reading all of it. It reports all problems
// at once: missing, unreadable or empty files, unknown formats, and columns that don't
// exist or aren't numbers.
func Open(cfg Config) (*Source, error) {
	if cfg.Stdin == nil {
		cfg.Stdin = os.Stdin
	}
	s := &Source{cfg: cfg, dense: slices.Clone(cfg.Dense)}
	s.total.Store(-1)
	var errs []error
	if cfg.Format != "" && !slices.Contains(formats, cfg.Format) {
		errs = append(errs, usagef("--format %s: unknown; one of %v is wanted", cfg.Format, formats))
	}
	if cfg.Limit < 0 {
		errs = append(errs, usagef("--limit %d: a number of events is wanted, or 0 for all", cfg.Limit))
	}
	errs = append(errs, cfg.Flip.check()...)
	errs = append(errs, checkAssignments(cfg.Assign)...)
	if err := CheckSampled(cfg.Sampled); err != nil {
		errs = append(errs, err)
	}
	if cfg.None() {
		errs = append(errs, usagef("no source: name a file, a directory or - for standard input, or mail by --spam, "+
			"--ham or --index"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if err := s.openFormat(); err != nil {
		return nil, err
	}
	return s, nil
}

// Once reports whether the source can be read only once: standard input or a pipe.
func (s *Source) Once() bool { return len(s.once) > 0 }

func (s *Source) openFormat() error {
	if len(s.cfg.Spam)+len(s.cfg.Ham) > 0 || s.cfg.Index != "" {
		if s.cfg.Format != "" && s.cfg.Format != FormatMail {
			return usagef("--spam, --ham and --index label mail; with --format %s the labels are in the data", s.cfg.Format)
		}
		return s.openMail()
	}
	inputs, err := s.inputs(s.cfg.Paths)
	if err != nil {
		return err
	}
	format, err := formatOf(inputs, s.cfg.Format)
	if err != nil {
		return err
	}
	if s.cfg.Positive != "" && (format == FormatJSONL || format == FormatMail) {
		return usagef("--positive is about the labels of csv, text and svmlight, but %s is %s", inputs[0].name, format)
	}
	csvOnly := firstGiven([]flag{{"--label", s.cfg.Label != ""}, {"--drop", s.cfg.Drop != ""},
		{"--text", s.cfg.Text != ""}, {"--missing", s.cfg.Missing != ""}})
	if csvOnly != "" && format != FormatCSV {
		return usagef("%s is about CSV, but %s is %s; --format csv says otherwise", csvOnly, inputs[0].name, format)
	}
	if format == FormatText || format == FormatSVMLight || format == FormatCSV {
		s.labels = newLabelling(format, s.cfg.Positive)
	}
	switch format {
	case FormatMail:
		return usagef("%s is mail, which carries no label: use --spam PATH and --ham PATH, "+
			"or --index FILE with lines label,path", inputs[0].name)
	case FormatText:
		s.drafts = eachLine(inputs, eventLine(s.labels.parseText))
	case FormatSVMLight:
		p := newSVMLight(s.cfg.Dense, s.labels)
		s.drafts = eachLine(inputs, eventLine(p.parse))
	case FormatJSONL:
		s.drafts = eachLine(inputs, parseJSONL)
	case FormatCSV:
		t, err := openTable(inputs[0], &s.cfg, s.labels)
		if err != nil {
			return err
		}
		s.dense = t.dense
		s.drafts = eachLine(inputs, eventLine(t.parse))
	}
	return nil
}

// Dense returns the names of the dense inputs in the configuration. By default they are
// all columns of a CSV that are neither label nor dropped, in order; other formats have
// none.
func (s *Source) Dense() []string { return slices.Clone(s.dense) }

// Rejected returns how many items the last run of Events has rejected so far. It is safe
// while another goroutine reads.
func (s *Source) Rejected() int { return int(s.rejected.Load()) }

// Total returns how many items Events yields, including rejected ones, if known. It is
// safe while another goroutine reads.
func (s *Source) Total() (n int, known bool) {
	n = int(s.total.Load())
	if n < 0 {
		return 0, false
	}
	if s.cfg.Limit > 0 {
		n = min(n, s.cfg.Limit)
	}
	return n, true
}

// Close closes the pipes that Open has opened.
func (s *Source) Close() error {
	errs := make([]error, len(s.once))
	for i, in := range s.once {
		errs[i] = in.close()
	}
	return errors.Join(errs...)
}

// Events reads the source from its beginning. It yields items in order, which own their
// memory, or a *[Rejection]. Any other error is the last. It may be called again after
// the end, unless the source can be read only [Source.Once].
func (s *Source) Events() iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if len(s.once) > 0 {
			if s.consumed {
				yield(Item{}, fmt.Errorf("%s has been read and cannot be read again: name a file instead", s.once[0].name))
				return
			}
			s.consumed = true
		} else if s.labels != nil && !s.judged {
			if err := s.judge(); err != nil {
				yield(Item{}, err)
				return
			}
			s.judged = true
		}
		s.rejected.Store(0)
		events := s.identified
		if s.cfg.Shuffle != nil {
			events = s.shuffled
		}
		ordinal, n := 0, 0
		for d, err := range events {
			item := Item{Ordinal: ordinal, Standing: d.standing}
			var r *Rejection
			switch {
			case errors.As(err, &r):
				r.Ordinal = ordinal
				s.rejected.Add(1)
			case err != nil:
				yield(Item{}, err)
				return
			case d.standing != nil:
			default:
				n++
				item.Event, item.Truth = d.event, d.event.Label
				s.cfg.Flip.Apply(&item.Event, n)
			}
			ordinal++
			if !yield(item, err) || s.cfg.Limit > 0 && n == s.cfg.Limit {
				return
			}
		}
		s.total.Store(int64(ordinal))
	}
}

// identified gives every draft its id and its source, and checks it. It judges the labels
// of what can be read only once. It leaves a standing as it is.
func (s *Source) identified(yield func(draft, error) bool) {
	ordinal := 0
	judging := s.labels != nil && len(s.once) > 0
	for d, err := range s.drafts {
		if judging && err != nil {
			if mistake := s.placed(s.labels.mistaken(judgedEarly)); mistake != nil {
				yield(draft{}, mistake)
				return
			}
		}
		switch {
		case err != nil:
		case d.standing != nil:
			if err := s.checkStanding(d.place); err != nil {
				yield(draft{}, err)
				return
			}
		default:
			if err = s.complete(&d.event, ordinal); err != nil {
				err = &Rejection{Place: d.place, Err: err}
			}
		}
		if !yield(d, err) {
			return
		}
		ordinal++
	}
	if judging {
		if mistake := s.placed(cmp.Or(s.labels.mistaken(fewestUnknown), s.labels.oneSided())); mistake != nil {
			yield(draft{}, mistake)
		}
	}
}

// checkStanding returns an error if a standing cannot be an item.
func (s *Source) checkStanding(place string) error {
	switch {
	case !s.cfg.Standing:
		return fmt.Errorf("%s: this is no event but %s, which eval, up and ingest alone can use", place, stream.TypeStanding)
	case s.cfg.Shuffle != nil:
		return usagef("%s: %s holds from its place in the stream on, and --shuffle would move it", place, stream.TypeStanding)
	}
	return nil
}

func (s *Source) complete(e *stream.Event, ordinal int) error {
	if e.ID == "" {
		e.ID = ID(ordinal, e)
	}
	if e.Tenant == "" {
		e.Tenant = stream.DefaultName
	}
	if e.Source == "" || e.Source == stream.DefaultName {
		e.Source = assign(s.cfg.Assign, e.ID)
	}
	Sample(e, s.cfg.Sampled)
	if err := e.Validate(); err != nil {
		return err
	}
	return checkSize(e)
}

// CheckSampled returns an error if no labelled mail can be that share of all.
func CheckSampled(share *float64) error {
	if share == nil || *share > 0 && *share <= 1 {
		return nil
	}
	return usagef("--sampled %v: a share above 0 and up to 1 is wanted", *share)
}

// Sample says that the label of e was asked for, as those of a share of all mail. nil: it does nothing. What an
// event says itself stays.
func Sample(e *stream.Event, share *float64) {
	asked := e.Action == stream.Learn || e.Action == stream.Relearn || e.Action == stream.Correct
	if share != nil && asked && e.Sampled == (stream.Sampled{}) {
		e.Sampled = stream.SampledShare(*share, stream.SampledAll)
	}
}

// checkSize refuses events that are too large for a broker, so that eval learns from the
// same events as the services.
func checkSize(e *stream.Event) error {
	size := len(e.Body.Mail) + len(e.Body.Text)
	for _, n := range e.Body.Vector {
		size += len(n.Name) + 16
	}
	if size < stream.MaxEventSize/2 {
		return nil
	}
	value, _, err := e.EncodeRecord()
	if err != nil {
		return fmt.Errorf("too large for an event (%d bytes): %w", len(value), err)
	}
	return nil
}

// shuffled yields the rejections in order, then the events permuted by the seed.
func (s *Source) shuffled(yield func(draft, error) bool) {
	all := newSpool()
	defer all.close()
	for d, err := range s.identified {
		if err == nil {
			err = all.add(&d.event)
		}
		if err != nil && (!yield(draft{}, err) || !isRejection(err)) {
			return
		}
	}
	s.total.Store(int64(all.len()) + s.rejected.Load())
	order := rand.New(rand.NewPCG(uint64(*s.cfg.Shuffle), 0x73687566666c65)).Perm(all.len())
	for _, i := range order {
		e, err := all.at(i)
		if !yield(draft{event: e}, err) || err != nil {
			return
		}
	}
}
