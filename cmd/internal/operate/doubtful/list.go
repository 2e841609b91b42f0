package doubtful

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"hamlet/stream"
)

// mostItems bounds a List: some 10 MB. Of more, the oldest are forgotten.
const mostItems = 20_000

// An Item is a label that is more likely false than true. It is a line of the journal: Label, Source
// and Tenant, P before the label was learnt, and Doubt.
type Item struct{ stream.JournalEntry }

// Other is the label that the message has once it is turned around.
func (i *Item) Other() stream.Label { return stream.Spam + stream.Ham - i.Label }

// A Filter says which items are wanted. Zero fields say nothing.
type Filter struct {
	Tenant, Source string // as the journal has them
	Since          time.Time
}

func (f *Filter) wants(i *Item) bool {
	return (f.Tenant == "" || f.Tenant == i.Tenant) && (f.Source == "" || f.Source == i.Source) && !i.Time.Before(f.Since)
}

// A List has the doubtful labels of a journal. A message is in it until it gets a later label that is
// not doubtful, or its label is withdrawn. It is safe for concurrent use.
type List struct {
	mu sync.Mutex
	at map[string]*doubted // by identity
}

// A doubted is a message that has got a doubtful label.
type doubted struct {
	item    Item      // the newest
	settled time.Time // when it got its last label without doubt; zero: it has none
}

func (d *doubted) open() bool { return !d.settled.After(d.item.Time) }

// NewList returns an empty list.
func NewList() *List { return &List{at: map[string]*doubted{}} }

// identityForm is that of a mail, and of the hash that stands for a text or a vector.
var identityForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{32}$`) })

// Add takes a label of the journal. The same may come again.
func (l *List) Add(e *stream.JournalEntry) {
	if e.Label == stream.Unlabelled || !identityForm().MatchString(e.ID) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.at[e.ID]
	switch {
	case e.Doubt == nil && known != nil && e.Time.After(known.settled):
		known.settled = e.Time
	case e.Doubt == nil:
	case known == nil:
		l.at[e.ID] = &doubted{item: Item{*e}}
		if len(l.at) > mostItems+mostItems/4 {
			l.trim()
		}
	case e.Time.After(known.item.Time):
		known.item = Item{*e}
	}
}

// trim leaves the newest mostItems messages.
func (l *List) trim() {
	all := slices.SortedFunc(maps.Values(l.at), func(a, b *doubted) int { return b.item.Time.Compare(a.item.Time) })
	for _, d := range all[mostItems:] {
		delete(l.at, d.item.ID)
	}
}

// Settle takes a message from the list before the journal says that it has another label.
func (l *List) Settle(identity string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.at[identity]; known != nil {
		known.settled = now
	}
}

// Item returns the doubtful label of a message.
func (l *List) Item(identity string) (Item, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.at[identity]; known != nil && known.open() {
		return known.item, true
	}
	return Item{}, false
}

// Items returns the labels that f wants, the most doubtful first.
func (l *List) Items(f Filter) (all []Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.at {
		if d.open() && f.wants(&d.item) {
			all = append(all, d.item)
		}
	}
	slices.SortFunc(all, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Doubt.Phi, b.Doubt.Phi), b.Time.Compare(a.Time), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// A Group says how many doubtful labels a source of a tenant has.
type Group struct {
	Tenant, Source string
	Labels         int
}

// Groups returns the groups of some items, the largest first.
func Groups(items []Item) (all []Group) {
	n := map[[2]string]int{}
	for i := range items {
		n[[2]string{items[i].Tenant, items[i].Source}]++
	}
	for g, labels := range n {
		all = append(all, Group{g[0], g[1], labels})
	}
	slices.SortFunc(all, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Labels, a.Labels), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Source, b.Source))
	})
	return all
}
