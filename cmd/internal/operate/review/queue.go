package review

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"sync"
	"time"

	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/worth"
	"hamlet/stream"
)

// Bounds of a Queue.
const (
	mostItems    = 20_000 // messages that wait for a label; of more, those of the least worth go
	mostLabelled = 50_000 // identities that have a label
	mostGiven    = 200    // messages whose label was seen last, which others may be like
)

// An Item is a message that has no label yet.
type Item struct {
	stream.JournalEntry         // the newest answer of the journal; Door is that which it came in by first
	Worth               float64 // see worth.Of; of the newest answer, also of one that Revalue took
	Asked               bool    // chance has chosen it: see Queue.Ask
}

// A Queue has the messages of a journal that have no label, by what their label would teach.
// Of more than mostItems, it forgets those of the least worth: see trim. It is safe for concurrent use.
type Queue struct {
	// Ask is the share of mail that is in the queue by chance. It is set before anything is added.
	Ask ingest.Asking

	mu       sync.Mutex
	items    map[string]*Item // by identity
	labelled map[string]bool
	order    ring[string] // the keys of labelled
	given    ring[Item]   // items whose label came, as they were
}

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	return &Queue{items: map[string]*Item{}, labelled: map[string]bool{}, order: ring[string]{most: mostLabelled},
		given: ring[Item]{most: mostGiven}}
}

// A ring keeps the last values.
type ring[T any] struct {
	all  []T
	next int // place of the oldest, once it is full
	most int
}

// add returns the value that has gone, if one has.
func (r *ring[T]) add(v T) (gone T, full bool) {
	if len(r.all) < r.most {
		r.all = append(r.all, v)
		return gone, false
	}
	gone, r.all[r.next] = r.all[r.next], v
	r.next = (r.next + 1) % r.most
	return gone, true
}

// A mail's identity. Texts and vectors have other names.
var identityForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{32}$`)
})

// Add takes a line of the journal, an answer or a label. Lines may come in any order.
func (q *Queue) Add(e *stream.JournalEntry) {
	if !identityForm().MatchString(e.ID) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.Label != stream.Unlabelled {
		q.label(e.ID)
		return
	}
	known := q.items[e.ID]
	switch {
	case q.labelled[e.ID]:
	case known == nil:
		q.items[e.ID] = &Item{JournalEntry: *e, Worth: worth.Of(e.P, e.Low, e.High), Asked: q.Ask.Asks(e.ID)}
		if len(q.items) > mostItems+mostItems/4 {
			q.trim()
		}
	case e.Time.After(known.Time):
		door, tenant, messageID := known.Door, known.Tenant, known.MessageID
		known.JournalEntry, known.Worth = *e, worth.Of(e.P, e.Low, e.High)
		known.Door, known.Tenant, known.MessageID = door, tenant, cmp.Or(messageID, e.MessageID)
	}
}

// Revalue takes a newer answer about a message that the journal does not have: its probability and
// interval. It changes the worth alone.
func (q *Queue) Revalue(identity string, p, lo, hi float64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if item := q.items[identity]; item != nil {
		item.Worth = worth.Of(p, lo, hi)
	}
}

// Labelled notes that a message has got a label, before the journal says so.
func (q *Queue) Labelled(identity string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.label(identity)
}

func (q *Queue) label(identity string) {
	if q.labelled[identity] {
		return
	}
	if item := q.items[identity]; item != nil {
		q.given.add(*item)
		delete(q.items, identity)
	}
	q.labelled[identity] = true
	if gone, full := q.order.add(identity); full {
		delete(q.labelled, gone)
	}
}

// trim leaves mostItems items: those that chance has chosen, and of the others those of the highest worth. Of more
// chosen ones than that, those of a smaller share stay: by their worth, lost ham would go first.
func (q *Queue) trim() {
	all := q.sorted()
	slices.SortStableFunc(all, func(a, b *Item) int {
		switch {
		case a.Asked && b.Asked:
			return cmp.Compare(ingest.Chance(a.ID), ingest.Chance(b.ID))
		case a.Asked == b.Asked:
			return 0
		case a.Asked:
			return -1
		}
		return 1
	})
	for _, item := range all[mostItems:] {
		delete(q.items, item.ID)
	}
}

// sorted returns the items, the highest worth first.
func (q *Queue) sorted() []*Item {
	all := make([]*Item, 0, len(q.items))
	for _, item := range q.items {
		all = append(all, item)
	}
	slices.SortFunc(all, func(a, b *Item) int {
		return cmp.Or(cmp.Compare(b.Worth, a.Worth), b.Time.Compare(a.Time), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Item returns a message that waits for a label.
func (q *Queue) Item(identity string) (Item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if item := q.items[identity]; item != nil {
		return *item, true
	}
	return Item{}, false
}

// Waiting returns how many messages answered since a time have no label.
func (q *Queue) Waiting(since time.Time) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, item := range q.items {
		if !item.Time.Before(since) {
			n++
		}
	}
	return n
}

// Best returns at most n messages answered since a time, the highest worth first, and how many
// there are. It leaves out those that skipped or missing has. Of messages that are much alike it
// has the first, or none if one of them was skipped or has just got its label. One that chance has chosen comes
// before each of the others, whatever its worth. So the page, which shows the first, shows the chosen ones first.
func (q *Queue) Best(n int, since time.Time, skipped, missing map[string]bool) (best []Item, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, item := range q.items {
		if item.Time.Before(since) {
			delete(q.items, id)
		}
	}
	var done []Item
	for id := range skipped {
		if item := q.items[id]; item != nil {
			done = append(done, *item)
		}
	}
	done = append(done, q.given.all...)
	for _, item := range mixed(q.sorted()) {
		if skipped[item.ID] || missing[item.ID] {
			continue
		}
		waiting++
		unlike := func() bool {
			return !slices.ContainsFunc(done, item.alike) && !slices.ContainsFunc(best, item.alike)
		}
		if len(best) < n && (item.Asked || unlike()) { // chance has no regard to what is alike
			best = append(best, *item)
		}
	}
	return best, waiting
}

// mixed returns the items with one that chance has chosen, the oldest, before each of the others, as long as there
// are any. So those that wait for their label are shown in a queue of any length.
func mixed(all []*Item) []*Item {
	var asked, others []*Item
	for _, item := range all {
		if item.Asked {
			asked = append(asked, item)
		} else {
			others = append(others, item)
		}
	}
	slices.SortFunc(asked, func(a, b *Item) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID)) })
	both := min(len(asked), len(others))
	for i := range both {
		all[2*i], all[2*i+1] = asked[i], others[i]
	}
	copy(all[2*both:], asked[both:])
	copy(all[2*both:], others[both:])
	return all
}

// near is how many nats apart the ends of the intervals of messages that are much alike may be.
const near = 0.05

// alike reports whether two messages are much alike, by their answers: they have the same
// Message-ID, or in the same tenant the same reasons and nearly the same interval.
func (item *Item) alike(other Item) bool {
	if item.MessageID != "" && item.MessageID == other.MessageID {
		return true
	}
	apart := func(a, b float64) float64 { return math.Abs(worth.Logit(a) - worth.Logit(b)) }
	return item.Tenant == other.Tenant && slices.Equal(item.Reasons, other.Reasons) &&
		apart(item.Low, other.Low) < near && apart(item.High, other.High) < near
}
