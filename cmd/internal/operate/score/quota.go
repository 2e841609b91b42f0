package score

import "sync"

// A quota bounds how many messages are in memory at once, of all users and of one. Without the
// second bound one user could hold all of them with forms that are never sent to their end. Who
// finds no place is refused, and asks again.
type quota struct {
	most, mostOfOne int

	mu    sync.Mutex
	taken int
	users map[string]int // places by user; guarded by mu, as is taken
}

func newQuota(most, mostOfOne int) *quota {
	return &quota{most: most, mostOfOne: mostOfOne, users: map[string]int{}}
}

// take takes a place for a user, and reports whether there was one.
func (p *quota) take(user string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.most || p.users[user] >= p.mostOfOne {
		return false
	}
	p.taken++
	p.users[user]++
	return true
}

func (p *quota) free(user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.users[user]--; p.users[user] == 0 {
		delete(p.users, user)
	}
}
