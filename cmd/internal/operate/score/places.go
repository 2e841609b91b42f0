package score

import "sync"

// Places bound how many messages are in memory at once, of all users and of one. Without the
// second bound one user could hold all places with forms that are never sent to their end. Who
// finds no place is refused, and asks again.
type places struct {
	most, mostOfOne int

	mu    sync.Mutex
	taken int
	users map[string]int // places by user; guarded by mu, as is taken
}

func newPlaces(most, mostOfOne int) *places {
	return &places{most: most, mostOfOne: mostOfOne, users: map[string]int{}}
}

// take takes a place for a user, and reports whether there was one.
func (p *places) take(user string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.most || p.users[user] >= p.mostOfOne {
		return false
	}
	p.taken++
	p.users[user]++
	return true
}

// free gives a user's place back.
func (p *places) free(user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.users[user]--; p.users[user] == 0 {
		delete(p.users, user)
	}
}
