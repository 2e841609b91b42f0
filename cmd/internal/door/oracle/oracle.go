// Package oracle asks a machine about doubtful mail, and holds it to account. The machine is an HTTP
// endpoint that says spam, ham or unknown: a language model is one.
//
//	service, err := oracle.New(oracle.Config{URL: "http://127.0.0.1:8080/label", Teacher: teacher, Labels: labels, …})
//	g, err := gateway.New(gateway.Config{Answered: service.Answered, …})
//	service.Run(ctx)
//
// A machine that is often wrong harms: it keeps the model in doubt, and so is asked ever more. The
// standing of sources does not show it, as hardly anybody else labels doubtful mail. So the oracle begins
// on trial. It is asked about messages that people labelled after they passed, teaches nothing, and its
// answers are compared with the labels. Once they show that it is wrong in less than a quarter, it is asked about
// doubtful mail as that passes, and teaches. The comparing goes on. Once they show that it is wrong in more
// than a quarter, it is not asked any more. [Account] has the rule, and MEASURED.md what it does.
//
// # What it teaches
//
// An answer goes to the learner's log as an event "assume" of the source "oracle". So it counts .3 of a
// label, what a person says wins, whichever comes first, and `hamlet withdraw --source oracle` takes it
// back from the last 2,500 events. A correction would have counted in full: people could not have corrected it, as each corrects
// his own labels only.
//
// # Bounds
//
//   - No door waits. Up to 1,024 messages of 16 MiB wait for the service; further ones are not asked about.
//   - One question is asked at a time, and so many a day, UTC. A failure is not tried again, and the next
//     question waits up to ten minutes.
//   - Passed messages wait in memory for people's labels: 32 MiB of doubtful ones, and on trial 16 MiB of
//     others. A restart loses them. The account and the day's questions are in a file.
//   - Each service has an account and a budget of its own.
package oracle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/door/selflabel"
	"hamlet/cmd/internal/process/clock"
	"hamlet/cmd/internal/process/writebehind"
	"hamlet/stream"
	"hamlet/stream/lockfile"
)

// Source is the source of an oracle's labels.
const Source = "oracle"

// Labels reads the labels that a model's learner has written into the journal since a time.
type Labels func(ctx context.Context, since time.Time) iter.Seq2[stream.JournalEntry, error]

// A Config describes a service. URL, File, Questions, Teacher and Labels are needed.
type Config struct {
	URL, Token string
	Sends      Sends           // default SendsHeaders
	Questions  int             // a day, the account's included
	Not        []string        // tenants whose mail is never shown
	File       string          // of the account
	Teacher    gateway.Teacher // to the learner's log
	Labels     Labels
	Registerer prometheus.Registerer
	Log        *slog.Logger // nil: silent

	poll  time.Duration // default poll
	pause time.Duration // default writebehind.FirstPause
}

// Bounds of a Service.
const (
	maxQueued      = 1024     // messages
	maxQueuedBytes = 16 << 20 // of them
	doubtfulBytes  = 32 << 20
	otherBytes     = 16 << 20

	poll        = 3 * time.Second
	lateness    = 2 * time.Minute // of labels: learners write them late
	publishTime = 20 * time.Second
	longest     = 10 * time.Minute // of the pause after failures
)

// A Service asks and teaches. Answered may be called concurrently.
type Service struct {
	cfg     Config
	client  *Client
	metrics *metrics
	health  [steps]writebehind.Health

	queue  chan *passed
	bytes  atomic.Int64 // of the messages in queue
	labels chan stream.JournalEntry
	state  atomic.Value // State of policy

	// Only Run uses these.
	policy          Policy
	book            *book
	unlock          func() error // of book
	unkept          bool         // the last writing of book failed
	doubtful, other shelf
	resume          time.Time // no question before
	pause           time.Duration

	seen recently // the labels that were read; only read uses it
}

// New returns a service with the account of cfg.File, which it locks until Run ends. Run does the work.
func New(cfg Config) (*Service, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Sends, cfg.poll = cmp.Or(cfg.Sends, SendsHeaders), cmp.Or(cfg.poll, poll)
	cfg.pause = cmp.Or(cfg.pause, writebehind.FirstPause)
	unlock, err := lockfile.Lock(cfg.File + ".lock") // two would overwrite each other's account
	if err != nil {
		return nil, fmt.Errorf("account of the oracle: %s: %w", cfg.File, err)
	}
	b, account, err := openBook(cfg.File, cfg.URL)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	s := &Service{
		cfg: cfg, client: NewClient(cfg.URL, cfg.Token), metrics: newMetrics(), book: b, unlock: unlock,
		policy: Policy{Account: account},
		queue:  make(chan *passed, maxQueued), labels: make(chan stream.JournalEntry),
		doubtful: shelf{most: doubtfulBytes}, other: shelf{most: otherBytes},
	}
	for step := range s.health {
		s.health[step] = writebehind.Health{
			Gauge: s.metrics.failing.WithLabelValues(stepNames[step]), Log: cfg.Log.With("step", stepNames[step]),
			Fails: "the oracle fails for now; no mail waits for it", Works: "the oracle works again",
		}
	}
	s.show()
	if cfg.Registerer != nil {
		s.metrics.register(cfg.Registerer)
	}
	return s, nil
}

// Answered takes a verdict about a tenant's reduced message, which it copies if it may be asked about.
// It never waits.
func (s *Service) Answered(tenant string, message []byte, v *stream.Verdict) {
	state := s.state.Load().(State)
	doubtful := Doubtful(v.P, v.Interval[0], v.Interval[1])
	if v.Identity == "" || state == Stopped || state == Trusted && !doubtful ||
		slices.Contains(s.cfg.Not, tenant) {
		return
	}
	size := int64(len(message))
	if s.bytes.Add(size) > maxQueuedBytes {
		s.bytes.Add(-size)
		s.metrics.unasked.WithLabelValues(unaskedQueue).Inc()
		return
	}
	select {
	case s.queue <- &passed{v.Identity, tenant, bytes.Clone(message), doubtful}:
	default:
		s.bytes.Add(-size)
		s.metrics.unasked.WithLabelValues(unaskedQueue).Inc()
	}
}

// Run asks and teaches until ctx ends. What waits then is dropped.
func (s *Service) Run(ctx context.Context) {
	defer func() { _ = s.unlock() }()
	defer s.client.Close()
	again := time.NewTicker(s.cfg.poll)
	defer again.Stop()
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() { s.read(ctx) })
	for {
		select {
		case m := <-s.queue:
			s.bytes.Add(-int64(len(m.message)))
			s.pass(ctx, m)
		case e := <-s.labels:
			s.labelled(ctx, &e)
		case <-again.C:
			if s.unkept {
				s.keep()
			}
		case <-ctx.Done():
			return
		}
	}
}

// read brings people's labels to Run, until ctx ends.
func (s *Service) read(ctx context.Context) {
	since := time.Now()
	for clock.Sleep(ctx, s.cfg.poll) {
		began := time.Now()
		err := s.readSince(ctx, since.Add(-lateness))
		if ctx.Err() != nil {
			return
		}
		s.health[stepLabels].Note(err)
		if err == nil {
			since = began
		}
	}
}

func (s *Service) readSince(ctx context.Context, since time.Time) error {
	for e, err := range s.cfg.Labels(ctx, since) {
		switch {
		case err != nil:
			return err
		case e.Source == Source || e.Withdrawn || !s.seen.add(e.ID+"\x00"+e.Source+e.Time.String()):
			continue
		}
		select {
		case s.labels <- e:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// pass takes a message that passed a door. One that was asked about is not asked about again.
func (s *Service) pass(ctx context.Context, m *passed) {
	if s.policy.Knows(m.id) {
		return
	}
	if s.policy.Asks(m.id, m.doubtful) {
		if label, answered := s.ask(ctx, m); answered {
			if label == stream.Unlabelled {
				s.policy.Done(m.id)
				return
			}
			s.policy.Answered(m.id, label == stream.Spam)
			s.teach(ctx, m, label)
			return
		}
	}
	switch state := s.policy.State(); {
	case state == Stopped:
	case m.doubtful:
		s.doubtful.put(m)
	case state == Trial:
		s.other.put(m)
	}
}

// labelled takes a label that the model has learnt.
func (s *Service) labelled(ctx context.Context, e *stream.JournalEntry) {
	s.policy.Learnt()
	if e.Source == selflabel.Source {
		return // a machine's
	}
	m := s.doubtful.take(e.ID)
	if m == nil {
		m = s.other.take(e.ID)
	}
	before := s.policy.total
	ask, changed := s.policy.Labelled(e.ID, e.Label == stream.Spam, m != nil && m.doubtful)
	if ask && m != nil {
		switch label, answered := s.ask(ctx, m); {
		case !answered:
		case label == stream.Unlabelled:
			s.policy.Done(m.id)
		default:
			changed = s.policy.Compare(m.id, label != e.Label, m.doubtful)
		}
	}
	if s.policy.total != before {
		s.keep()
	}
	if changed {
		s.tell()
	}
}

// ask asks about a message, if it may now. answered: it has, maybe that it does not know.
func (s *Service) ask(ctx context.Context, m *passed) (label stream.Label, answered bool) {
	now := time.Now()
	if now.Before(s.resume) {
		s.metrics.unasked.WithLabelValues(unaskedFailing).Inc()
		return 0, false
	}
	if !s.book.take(s.cfg.Questions, now) {
		s.metrics.unasked.WithLabelValues(unaskedBudget).Inc()
		return 0, false
	}
	if s.keep(); s.unkept {
		s.book.asked--
		s.metrics.unasked.WithLabelValues(unaskedAccount).Inc()
		return 0, false
	}
	q := QuestionOf(m.id, m.message, s.cfg.Sends)
	label, err := s.client.Ask(ctx, &q)
	if ctx.Err() != nil {
		return 0, false
	}
	s.health[stepAsk].Note(err)
	if err != nil {
		s.pause = min(max(2*s.pause, s.cfg.pause), longest)
		s.resume = time.Now().Add(s.pause)
		s.metrics.questions.WithLabelValues(failed).Inc()
		return 0, false
	}
	s.pause = 0
	name := "unknown"
	if label != stream.Unlabelled {
		name = label.String()
	}
	s.metrics.questions.WithLabelValues(name).Inc()
	return label, true
}

// teach brings an answer to the learner's log.
func (s *Service) teach(ctx context.Context, m *passed, label stream.Label) {
	e := stream.Event{
		ID: m.id + "/oracle", Time: time.Now().UTC(), Source: Source, Tenant: m.tenant,
		Action: stream.Assume, Of: m.id, Label: label, Body: stream.Body{Kind: stream.Mail, Mail: m.message},
	}
	work, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	retry := writebehind.Retry{First: s.cfg.pause, Final: []error{stream.ErrTooLarge}}
	err := retry.Do(work, func() error { return s.cfg.Teacher.Publish(work, e) })
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, stream.ErrTooLarge) {
		s.metrics.lost.Inc()
		return
	}
	s.health[stepTeach].Note(err)
	if err != nil {
		s.metrics.lost.Inc()
		return
	}
	s.metrics.taught.Inc()
}

// keep writes the account and the day's questions down. While that fails nothing is asked, and so nothing is
// taught: a restart would forget it.
func (s *Service) keep() {
	err := s.book.write(&s.policy.Account)
	s.unkept = err != nil
	s.health[stepKeep].Note(err)
	s.show()
}

func (s *Service) show() {
	s.state.Store(s.policy.State())
	s.metrics.show(&s.policy.Account, max(0, s.cfg.Questions-s.book.asked))
}

// tell says that the state has changed.
func (s *Service) tell() {
	wrong, right := s.policy.recent()
	of, host := wrong+right, s.client.host()
	switch log := s.cfg.Log.With("account", s.cfg.File, "most", MostWrong); s.policy.State() {
	case Trial:
		log.Warn("the oracle is on trial again: its answers are not learnt", "oracle", host, "wrong", wrong, "of", of)
	case Trusted:
		log.Info("the oracle is trusted: it is asked about doubtful mail, and its answers are learnt",
			"oracle", host, "wrong", wrong, "of", of)
	case Stopped:
		log.Error("the oracle is wrong too often and is not asked any more", "oracle", host, "wrong", wrong, "of", of,
			"rate", math.Round(1000*s.policy.Rate())/1000, "undo", "hamlet withdraw --source "+Source+" --since WHEN")
		s.doubtful, s.other = shelf{most: doubtfulBytes}, shelf{most: otherBytes}
	}
}
