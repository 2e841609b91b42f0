package access

import (
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"
)

// Bounds of links.
const (
	linkLife = 15 * time.Minute
	maxLinks = 16 // the oldest goes for one more
)

// links are those that nobody has used, by the SHA-256 of their secrets. The zero value holds
// none.
type links struct {
	mu   sync.Mutex
	open map[[sha256.Size]byte]link // guarded by mu
}

type link struct {
	user User
	made time.Time
}

// NewLink returns the path of a link that logs u in, once, within 15 minutes. It is a secret.
// A program that looks at the link beforehand, as chats do, does not use it up: the page that
// it opens has a button.
func (g *Guard) NewLink(u User) string {
	secret := rand.Text()
	g.links.add(secret, u, time.Now())
	return linkPath + secret
}

func (all *links) add(secret string, u User, now time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.open == nil {
		all.open = map[[sha256.Size]byte]link{}
	}
	if len(all.open) >= maxLinks {
		earlier := func(a, b [sha256.Size]byte) int { return all.open[a].made.Compare(all.open[b].made) }
		delete(all.open, slices.MinFunc(slices.Collect(maps.Keys(all.open)), earlier))
	}
	all.open[sha256.Sum256([]byte(secret))] = link{u, now}
}

// valid reports whether a link may be used.
func (all *links) valid(secret string, now time.Time) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	l, ok := all.open[sha256.Sum256([]byte(secret))]
	return ok && now.Sub(l.made) < linkLife
}

// take returns the user of a link, and uses it up.
func (all *links) take(secret string, now time.Time) (User, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	sum := sha256.Sum256([]byte(secret))
	l, ok := all.open[sum]
	delete(all.open, sum)
	return l.user, ok && now.Sub(l.made) < linkLife
}
