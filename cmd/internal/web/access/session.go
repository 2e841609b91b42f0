package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of sessions.
const (
	sessionIdle = 12 * time.Hour // without a request
	sessionLife = 24 * time.Hour // after the login
	maxSessions = 1000           // the one idle longest ends for one more
	maxOfUser   = 20             // of one user, alike
)

// A session is one login. All but used is fixed.
type session struct {
	user       User
	credential [sha256.Size]byte // of the line of the file of users; zero: by a link
	name       string            // in logs and audits: no secret
	created    time.Time
	used       time.Time // the last request; guarded by sessions.mu
	ended      context.Context
	end        context.CancelFunc
}

// expired reports whether a session has ended by itself.
func (s *session) expired(now time.Time) bool {
	return now.Sub(s.used) >= sessionIdle || now.Sub(s.created) >= sessionLife
}

// sessions are all that are open, by the SHA-256 of their ids: the memory has nothing that
// lets anybody in. They end with the process. The zero value holds none.
type sessions struct {
	mu   sync.Mutex
	open map[[sha256.Size]byte]*session // at most maxSessions; guarded by mu
}

// add opens a session and returns its id.
func (all *sessions) add(u User, credential [sha256.Size]byte, now time.Time) string {
	id := rand.Text()
	sum := sha256.Sum256([]byte(id))
	name := sha256.Sum256(sum[:])
	s := &session{user: u, credential: credential, name: hex.EncodeToString(name[:4]), created: now, used: now}
	s.ended, s.end = context.WithTimeout(context.Background(), sessionLife)
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.open == nil {
		all.open = map[[sha256.Size]byte]*session{}
	}
	all.evict(u.Name)
	all.open[sum] = s
	return id
}

// evict ends the session that was idle longest, where there are too many. mu is held.
func (all *sessions) evict(user string) {
	var every, ofUser [][sha256.Size]byte
	for sum, s := range all.open {
		every = append(every, sum)
		if s.user.Name == user {
			ofUser = append(ofUser, sum)
		}
	}
	earlier := func(a, b [sha256.Size]byte) int { return all.open[a].used.Compare(all.open[b].used) }
	switch {
	case len(ofUser) >= maxOfUser:
		all.remove(slices.MinFunc(ofUser, earlier))
	case len(every) >= maxSessions:
		all.remove(slices.MinFunc(every, earlier))
	}
}

// remove ends a session. mu is held.
func (all *sessions) remove(sum [sha256.Size]byte) {
	if s := all.open[sum]; s != nil {
		s.end()
		delete(all.open, sum)
	}
}

// find returns the session of a request's cookie, and its id, and marks it as used. Another
// program of this host may set cookies of our name: up to four that could be ours are tried.
func (all *sessions) find(r *http.Request, cookie string, now time.Time) (*session, string) {
	tried := 0
	for _, c := range r.CookiesNamed(cookie) {
		if len(c.Value) != secretLength {
			continue
		}
		if tried++; tried > 4 {
			break
		}
		if s := all.use(c.Value, now); s != nil {
			return s, c.Value
		}
	}
	return nil, ""
}

func (all *sessions) use(id string, now time.Time) *session {
	sum := sha256.Sum256([]byte(id))
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.open[sum]
	if s == nil {
		return nil
	}
	if s.expired(now) {
		all.remove(sum)
		return nil
	}
	s.used = now
	return s
}

// drop ends the session of an id.
func (all *sessions) drop(id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.remove(sha256.Sum256([]byte(id)))
}

// expire ends the sessions whose time is over.
func (all *sessions) expire(now time.Time) {
	all.endIf(func(s *session) bool { return s.expired(now) })
}

// endIf ends the sessions for which over holds.
func (all *sessions) endIf(over func(*session) bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for sum, s := range all.open {
		if over(s) {
			all.remove(sum)
		}
	}
}

// secretLength is that of [rand.Text], which makes all secrets here.
const secretLength = 26

// cookieName returns the name of the session's cookie. With TLS no other host or path can set
// it (__Host-). Without, programs at other ports of this host share cookies: the port keeps
// two consoles apart.
func (g *Guard) cookieName(r *http.Request) string { return g.cookie(r, "session") }

func (g *Guard) cookie(r *http.Request, what string) string {
	if g.secure {
		return "__Host-hamlet-" + what
	}
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil || strings.Trim(port, "0123456789") != "" {
		port = "80"
	}
	return "hamlet-" + what + "-" + port
}

// setCookie sets a cookie, or with an empty value deletes it.
//
// SameSite is Lax: a link to an incident, in an alert or a chat, opens the page for who has
// logged in. Strict would show the login instead. Lax sends cookies with a link from
// elsewhere, which is a GET and changes nothing, and never with a form from elsewhere.
func (g *Guard) setCookie(w http.ResponseWriter, name, value string, life time.Duration) {
	c := &http.Cookie{
		Name: name, Value: value, Path: "/", HttpOnly: true, Secure: g.secure,
		SameSite: http.SameSiteLaxMode, MaxAge: int(life.Seconds()),
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
