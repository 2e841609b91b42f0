package now

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// Bounds of a journal.
const (
	day         = 24 * time.Hour
	lineBytes   = 420      // of a decision, about
	mostDoors   = 32       // with counts of their own; the others are Others
	mostMatches = 10_000   // labelled answers, the newest
	Others      = "others" // the name of the further doors
	doorLetters = 64
)

// A journal counts what the journal of decisions says.
type journal struct {
	model string
	tail  nats.JournalTail // only run uses it

	mu                sync.Mutex
	counts            *counts
	decisions, labels sampler
	matcher           *answered.Matcher
	matches           matches
	outlook           *outlook
	away              string
	lost              time.Time // when the journal went away, if it is away
	none              bool
	cut               bool
	damaged           int
	since             time.Time     // of all that was read
	caughtUp          chan struct{} // closed when the past has been read, or cannot be
}

func newJournal(model string) *journal {
	j := &journal{model: model}
	j.tail = nats.JournalTail{Model: model, Since: week, Bytes: Remembered * lineBytes, Begin: j.begin, Take: j.take}
	j.reset(time.Now().Add(-week))
	j.start()
	return j
}

// reset forgets everything that was read.
func (j *journal) reset(since time.Time) {
	j.counts, j.matcher, j.matches = newCounts(), answered.NewMatcher(Remembered), matches{at: map[string]int{}}
	j.outlook = newOutlook()
	j.damaged, j.cut, j.since = 0, false, since
}

// start is called before each run and await.
func (j *journal) start() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.caughtUp = make(chan struct{})
}

// run reads the journal until ctx ends. It tries again for ever.
func (j *journal) run(ctx context.Context, conn *natsgo.Conn, pace pace) {
	for ctx.Err() == nil {
		err := j.tail.Run(ctx, conn)
		if err == nil {
			return
		}
		pause := pace.retry
		j.mu.Lock()
		if j.away == "" {
			j.lost = time.Now()
		}
		j.none = errors.Is(err, nats.ErrNoDecisions)
		switch {
		case j.none:
			j.reset(time.Now().Add(-week))
			j.away, pause = "", pace.missing
		case errors.Is(err, nats.ErrNoServer):
			j.away = natsAway
		default:
			j.away = page.Sentence(err)
		}
		j.past()
		j.mu.Unlock()
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
	}
}

// past tells those who wait that the past is read, or cannot be. j.mu is held.
func (j *journal) past() {
	select {
	case <-j.caughtUp:
	default:
		close(j.caughtUp)
	}
}

// await waits until the past is read, cannot be, or ctx ends.
func (j *journal) await(ctx context.Context) {
	j.mu.Lock()
	caughtUp := j.caughtUp
	j.mu.Unlock()
	select {
	case <-caughtUp:
	case <-ctx.Done():
	}
}

// begin is told of each start of reading. What lies behind a gap is forgotten: no figure is
// of two times.
func (j *journal) begin(cut, behind bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.away, j.none = "", false
	if cut {
		j.reset(time.Time{}) // the first line says since when
		j.cut = true
	}
	if !behind {
		j.past()
	}
}

func (j *journal) take(b nats.JournalBatch) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now, first, stride := time.Now(), 0, 1
	switch {
	case b.Behind: // the past is bounded
	case b.Labels:
		first, stride = j.labels.plan(now, b.Len())
	default:
		first, stride = j.decisions.plan(now, b.Len())
	}
	b.Each(first, stride, func(e *stream.JournalEntry, err error) {
		if err != nil {
			j.damaged++
			return
		}
		j.add(e, now, float64(stride))
	})
	if !b.Behind {
		j.past()
	}
}

func (j *journal) add(e *stream.JournalEntry, now time.Time, weight float64) {
	if j.since.IsZero() {
		j.since = e.Time
	}
	nth := j.matcher.Decisions()
	m, ok := j.matcher.Add(e)
	if j.matcher.Decisions() > nth {
		j.outlook.add(nth, e, j.model, now, weight)
	}
	if ok {
		j.matches.add(e.ID, m, now)
		j.outlook.label(&m)
	}
	if e.Label == stream.Unlabelled {
		j.counts.add(e, now, weight)
	}
}

func (j *journal) show(s *Snapshot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := s.At
	if j.away != "" && at.After(j.lost) {
		at = j.lost // nobody knows what came since
	}
	s.Journal = Journal{Away: j.away, Read: at, None: j.none, OneOf: j.decisions.oneOf(s.At),
		Estimated: s.At.Sub(j.decisions.last) < time.Hour, Damaged: j.damaged, Cut: j.cut &&
			j.since.After(at.Add(-time.Hour))}
	select {
	case <-j.caughtUp:
	default:
		s.Journal.Reading = true
	}
	s.Journal.Since = latest(j.since, at.Add(-time.Hour))
	j.counts.show(&s.Journal, at)
	since := latest(j.since, at.Add(-day))
	for _, t := range []time.Time{j.matcher.Oldest(), j.matches.lost} {
		if t.Before(at) { // else a clock is wrong
			since = latest(since, t)
		}
	}
	s.Labels = Labels{Away: j.away, Since: since, Figures: j.matches.figures(since)}
	s.Errors = j.outlook.errors(j.model, &s.Alarms, j.matches.inOrder, since, latest(j.since, at.Add(-week)), at)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// matches are the newest labelled answers.
type matches struct {
	all  []answered.Match // a ring
	ids  []string         // of the same places
	next int
	at   map[string]int // in all
	lost time.Time      // the newest decision that was forgotten

	changed bool
	shown   answered.Figures
	least   time.Time // of what is shown
}

// add adds a match. A label that replaces another takes its place.
func (m *matches) add(id string, match answered.Match, now time.Time) {
	m.changed = true
	if i, ok := m.at[id]; ok {
		m.all[i] = match
		return
	}
	if len(m.all) < mostMatches {
		m.at[id] = len(m.all)
		m.all, m.ids = append(m.all, match), append(m.ids, id)
		return
	}
	if t := m.all[m.next].Decided(); t.Before(now) {
		m.lost = latest(m.lost, t)
	}
	delete(m.at, m.ids[m.next])
	m.all[m.next], m.ids[m.next], m.at[id] = match, id, m.next
	m.next = (m.next + 1) % mostMatches
}

// inOrder returns a copy, the newest last.
func (m *matches) inOrder() []answered.Match { return slices.Concat(m.all[m.next:], m.all[:m.next]) }

// figures returns those of the decisions since a time. It computes them when a label came, and
// each minute.
func (m *matches) figures(since time.Time) answered.Figures {
	if !m.changed && since.Sub(m.least) < time.Minute {
		return m.shown
	}
	recent := slices.DeleteFunc(m.inOrder(), func(a answered.Match) bool { return a.Decided().Before(since) })
	m.shown, m.least, m.changed = answered.FiguresOf(recent), since, false
	return m.shown
}

// A sampler chooses which lines are decoded: every stride-th one. The stride is such that
// about [LinesPerSecond] are, by the rate of the last second and of this one so far.
type sampler struct {
	second   int64     // since 1970
	lines    int       // that came in it
	previous int       // stride that the lines of the second before ask for
	phase    int       // lines since the last one that was decoded
	last     time.Time // when a line was left out last
}

// plan returns the first of the next n lines to decode, and the stride. n or more means none.
func (s *sampler) plan(now time.Time, n int) (first, stride int) {
	if at := now.Unix(); at != s.second {
		s.previous = s.oneOf(now)
		s.second, s.lines = at, 0
	}
	s.lines += n
	stride = s.oneOf(now)
	if stride > 1 {
		s.last = now
	}
	first = max(0, stride-1-s.phase)
	if first >= n {
		s.phase += n
		return first, stride
	}
	s.phase = (n - 1 - first) % stride
	return first, stride
}

// oneOf returns the stride at a time.
func (s *sampler) oneOf(now time.Time) int {
	asked := (s.lines + LinesPerSecond - 1) / LinesPerSecond
	switch now.Unix() - s.second {
	case 0:
		return max(1, s.previous, asked)
	case 1:
		return max(1, asked)
	}
	return 1
}
