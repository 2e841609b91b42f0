package review

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"hamlet/cmd/internal/web/access"
	"hamlet/stream"
)

// Bounds of what the page remembers.
const (
	mostSessions = 200
	mostSkipped  = 1000   // messages of a session
	mostToday    = 10_000 // labels of a day
	mostRecent   = 5      // labels that are shown
)

// Skips are the messages that sessions have passed over. A session that skips more than
// mostSkipped begins again; of more than mostSessions, one is forgotten. The zero value is ready.
type Skips struct {
	mu       sync.Mutex
	sessions map[string]map[string]bool
}

func key(u access.User) string { return cmp.Or(u.Session, u.Name) }

// Add notes that a user's session has passed over a message.
func (s *Skips) Add(u access.User, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[string]map[string]bool{}
	}
	all := s.sessions[key(u)]
	if all == nil || len(all) == mostSkipped {
		if all == nil && len(s.sessions) == mostSessions {
			for one := range s.sessions {
				delete(s.sessions, one)
				break
			}
		}
		all = map[string]bool{}
		s.sessions[key(u)] = all
	}
	all[id] = true
}

// Of returns the messages that a user's session has passed over.
func (s *Skips) Of(u access.User) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.sessions[key(u)])
}

// An absent has messages that were not kept. Of more than mostAbsent it forgets all.
type absent struct {
	mu  sync.Mutex
	ids map[string]bool
}

const mostAbsent = 20_000

func (a *absent) add(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ids == nil || len(a.ids) == mostAbsent {
		a.ids = map[string]bool{}
	}
	a.ids[id] = true
}

func (a *absent) all() map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.ids)
}

// A given is a label that somebody gave in the console.
type given struct {
	ID     string
	Label  string
	Time   time.Time
	Learnt bool // the learner has written it into the journal
}

// A tally has the labels of this day that were given in the console: those given here, and those
// that the journal has.
type tally struct {
	mu     sync.Mutex
	seen   map[string]*given // by identity; at most mostToday
	recent []string          // the last that were given here, the newest first
}

func day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// add notes a label that was given here.
func (y *tally) add(id string, label stream.Label, now time.Time) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.put(&given{ID: id, Label: label.String(), Time: now})
	y.recent = append([]string{id}, y.recent[:min(len(y.recent), mostRecent-1)]...)
}

// learnt takes a label from the journal.
func (y *tally) learnt(e *stream.JournalEntry) {
	y.mu.Lock()
	defer y.mu.Unlock()
	known := y.seen[e.ID]
	if known != nil {
		known.Learnt = known.Learnt || known.Label == e.Label.String() && !e.Time.Before(known.Time.Add(-time.Minute))
		return
	}
	if strings.HasPrefix(e.Source, sourcePrefix) && day(e.Time).Equal(day(time.Now())) {
		y.put(&given{ID: e.ID, Label: e.Label.String(), Time: e.Time, Learnt: true})
	}
}

func (y *tally) put(g *given) {
	if y.seen[g.ID] == nil && len(y.seen) == mostToday {
		return // the count stays where it is
	}
	y.seen[g.ID] = g
}

// counts are the figures of the page.
type counts struct {
	Waiting  int // messages without a label
	Labelled int // today, in the console
	Learnt   int // of them
	Recent   []given
}

// count forgets what was before today, and counts the rest.
func (y *tally) count(now time.Time) (c counts) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for id, g := range y.seen {
		if day(g.Time).Before(day(now)) {
			delete(y.seen, id)
			continue
		}
		c.Labelled++
		if g.Learnt {
			c.Learnt++
		}
	}
	for _, id := range y.recent {
		if g := y.seen[id]; g != nil {
			c.Recent = append(c.Recent, *g)
		}
	}
	return c
}

func (h *handler) figures() counts {
	c := h.today.count(h.site.Now())
	c.Waiting = h.reader.Waiting(h.reader.Since())
	return c
}

// counts are the fragment that changes while somebody looks.
func (h *handler) counts(ctx context.Context) (any, error) {
	if err := h.reader.Refresh(ctx); err != nil {
		return nil, err
	}
	return h.figures(), nil
}
