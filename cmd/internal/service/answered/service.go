package answered

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hamlet/cmd/internal/service/journal"
	"hamlet/stream"
)

// Bounds of a Service.
const (
	Remembered = 200_000 // messages by default: some 26 MB

	mostGroups = 32   // doors and tenants with figures of their own; the others' tenant is "others"
	recent     = 2000 // of each group: the labelled answers whose figures are shown
	lookBack   = 14 * 24 * time.Hour
)

// others is the tenant of groups beyond mostGroups.
const others = "(others)"

// A Follower calls take for each line of the journal from a time on, until ctx ends.
type Follower func(ctx context.Context, since time.Time, take func(*stream.JournalEntry)) error

// A Service shows how right the answers were whose messages a learner learns labels for. Its
// memory is bounded: Remembered messages, a quarter more answers of a Record, and recent answers of mostGroups
// doors and tenants.
type Service struct {
	follow Follower
	keeper *journal.Keeper // writes labels into the journal
	model  string
	log    *slog.Logger

	total *prometheus.CounterVec
	delay *prometheus.HistogramVec

	mu      sync.Mutex
	matcher *Matcher
	record  *Record
	doubts  doubts
	groups  map[group]*window
	numbers Groups // in record
}

// A window is the recent matches of a group, a ring.
type window struct {
	matches []Match
	next    int
}

// contradictedFor is how long answers that labels contradict are said to be.
const contradictedFor = 7 * 24 * time.Hour

// NewService returns a Service of a model and registers its metrics, with nobody if registerer is nil.
// remembered is how many messages it knows.
func NewService(model string, follow Follower, write journal.Write, remembered int, registerer prometheus.Registerer,
	log *slog.Logger) *Service {
	factory := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return factory.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	s := &Service{follow: follow, model: model, log: log, matcher: NewMatcher(remembered), record: NewRecord(remembered),
		doubts: doubts{}, groups: map[group]*window{}, numbers: Groups{}}
	counters := journal.Counters{
		Written: counter("hamlet_learner_journal_lines_total",
			"Labels that were written into the journal of decisions: of answered messages, and doubtful ones."),
		Lost: counter("hamlet_learner_journal_lost_total",
			"Labels that were not written, because too many waited or the learner stopped."),
		Failing: factory.NewGauge(prometheus.GaugeOpts{Name: "hamlet_learner_journal_failing",
			Help: "1 while labels cannot be written into the journal, else 0."}),
	}
	s.keeper = journal.NewKeeper(write, counters, log)
	s.total = factory.NewCounterVec(prometheus.CounterOpts{Name: "hamlet_answered_total",
		Help: "Answered messages that got a label, by the verdict that was answered and the first label."},
		[]string{"door", "tenant", "verdict", "label"})
	s.delay = factory.NewHistogramVec(prometheus.HistogramOpts{Name: "hamlet_answered_delay_seconds",
		Help: "From an answer to the first label of its message.", Buckets: prometheus.ExponentialBuckets(1, 4, 11)},
		[]string{"door"})
	if registerer != nil {
		registerer.MustRegister(collector{s})
	}
	return s
}

// Run follows the journal and writes labels until ctx ends. Without the right to read the journal
// it says so once, and there are no figures.
func (s *Service) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { s.keeper.Run(ctx) })
	if err := s.follow(ctx, time.Now().Add(-lookBack), s.take); err != nil {
		s.log.Warn("there are no figures of what was answered", "error", err)
	}
}

// Beside returns work with Run beside it, which ends after work. s may be nil.
func (s *Service) Beside(work func(context.Context) error) func(context.Context) error {
	if s == nil {
		return work
	}
	return func(ctx context.Context) error {
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		var beside sync.WaitGroup
		beside.Go(func() { s.Run(running) })
		defer beside.Wait()
		defer stop()
		return work(ctx)
	}
}

// take takes a line of the journal. Labels there are this learner's of an earlier run, or
// another learner's, who counts them: here they are shown, so that a restart keeps the figures.
func (s *Service) take(e *stream.JournalEntry) {
	s.mu.Lock()
	nth := s.matcher.Decisions()
	later, known := s.matcher.labelledAfter(e)
	settled := s.doubts.read(e, known)
	m, ok := s.matcher.Add(e)
	if s.matcher.Decisions() > nth {
		s.record.Add(nth, e, s.numbers.Number(e), false)
	}
	if ok {
		s.show(&m)
	}
	s.mu.Unlock()
	if settled {
		s.write(later)
	}
	if ok && e.Label == stream.Unlabelled { // the label came first, from this learner
		s.count(&m)
		s.write(stream.JournalEntry{Time: m.Labelled, ID: e.ID, Label: m.label(), Source: m.Source})
	}
}

// Labelled takes a label that a learner has learnt for a message, or has withdrawn. Its time is when
// the record was written. The label goes into the journal if it is the first or another one of an
// answered message, if it is doubtful, and if the label before it was. Labelled never waits.
func (s *Service) Labelled(e stream.JournalEntry) {
	e.Source, e.Tenant = stream.Unaddressed(e.Source), stream.Unaddressed(e.Tenant)
	s.mu.Lock()
	wanted := s.doubts.learnt(&e)
	var m Match
	var ok bool
	if !e.Withdrawn {
		if m, ok = s.matcher.Add(&e); ok {
			s.show(&m)
		}
	}
	s.mu.Unlock()
	if ok {
		s.count(&m)
	}
	if ok || wanted {
		s.write(e)
	}
}

// count counts a match of this learner's label.
func (s *Service) count(m *Match) {
	if m.Before != stream.Unlabelled {
		return // it was counted with its first label
	}
	g := s.shown(m)
	s.total.WithLabelValues(g.door, g.tenant, string(m.Verdict), m.label().String()).Inc()
	s.delay.WithLabelValues(g.door).Observe(m.Delay.Seconds())
}

// write writes a label into the journal.
func (s *Service) write(e stream.JournalEntry) {
	e.Model = s.model
	s.keeper.Offer(e)
}

// shown returns the group by whose name a match is shown.
func (s *Service) shown(m *Match) group {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := (group{m.Door, m.Tenant}); s.groups[g] != nil {
		return g
	}
	return group{others, others}
}

// show adds a match to its group's window. A label that replaces another is not added again.
func (s *Service) show(m *Match) {
	s.record.Label(m)
	if m.Before != stream.Unlabelled {
		return
	}
	g := group{m.Door, m.Tenant}
	if s.groups[g] == nil && len(s.groups) >= mostGroups {
		g = group{others, others}
	}
	w := s.groups[g]
	if w == nil {
		w = &window{}
		s.groups[g] = w
	}
	if len(w.matches) < recent {
		w.matches = append(w.matches, *m)
		return
	}
	w.matches[w.next] = *m
	w.next = (w.next + 1) % recent
}

// figures returns those of the recent matches of each group.
func (s *Service) figures() (all []Figures) {
	s.mu.Lock()
	copies := map[group][]Match{}
	for g, w := range s.groups {
		copies[g] = slices.Clone(w.matches)
	}
	s.mu.Unlock()
	for g, matches := range copies {
		f := FiguresOf(matches)
		f.Door, f.Tenant = g.door, g.tenant
		all = append(all, f)
	}
	return all
}

// A collector shows a Service's figures, which it computes when Prometheus asks.
type collector struct{ s *Service }

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help+" Of the last 2,000 labelled answers of a door and tenant, "+
		"with the ends of the 90 % interval.",
		[]string{"door", "tenant", "bound"}, nil)
}

var (
	errorDesc = describe("hamlet_answered_error_ratio", "Fraction answered with p on the wrong side of one half.")
	lossDesc  = describe("hamlet_answered_log_loss_nats", "Mean log loss of the answers.")
	biasDesc  = describe("hamlet_answered_bias_ratio",
		"Mean p of the answers less the fraction labelled spam: 0 if p is calibrated.")
	rocaDesc  = describe("hamlet_answered_roca_percent", "1-ROCA% of the answers.")
	slopeDesc = describe("hamlet_answered_slope_ratio", "Slope of the calibration line: below 1 the answers are too sure.")

	contradictedDesc = prometheus.NewDesc("hamlet_answered_contradicted", "1 if labels show far more errors of the last "+
		"seven days' answers than p said, in an incident or not, else 0.", []string{"door", "tenant"}, nil)
)

func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{errorDesc, lossDesc, biasDesc, rocaDesc, slopeDesc, contradictedDesc} {
		to <- d
	}
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, f := range c.s.figures() {
		for _, e := range []struct {
			desc *prometheus.Desc
			Interval
		}{{errorDesc, f.Error}, {lossDesc, f.LogLoss}, {biasDesc, f.Bias}, {rocaDesc, f.ROCA}, {slopeDesc, f.Slope}} {
			for bound, v := range map[string]float64{"value": float64(e.Value), "lo": float64(e.Low), "hi": float64(e.High)} {
				to <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, v, f.Door, f.Tenant, bound)
			}
		}
	}
	c.s.mu.Lock()
	record, numbers := c.s.record.Clone(), maps.Clone(c.s.numbers)
	c.s.mu.Unlock()
	found, _, _ := record.Contradictions(time.Now().Add(-contradictedFor), nil)
	for g, n := range numbers {
		v := 0.0
		if _, against := found[n]; against {
			v = 1
		}
		to <- prometheus.MustNewConstMetric(contradictedDesc, prometheus.GaugeValue, v, g.door, g.tenant)
	}
}
