package access

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// A throttle bounds how often somebody may try to log in. Its memory is fixed: a key has the
// bucket that its hash says, and shares it with other keys of that hash. Nobody else can tell
// which.
//
// An attempt takes from the bucket of its address and from that of the name it is about. So
// neither many names from one address nor many addresses with one name go on for long. Whoever
// tries somebody's name empties the bucket of that name. The real user is not kept out by that:
// a browser in which the user has logged in before has a cookie (see knownCookie), and takes
// from another bucket.
type throttle struct {
	mu      sync.Mutex
	seed    maphash.Seed
	buckets [1 << 13]bucket // guarded by mu
}

// A bucket holds burst attempts when it is full, and gets one more each refill.
type bucket struct {
	missing float64 // from a full one, at time at
	at      time.Time
}

const (
	burst  = 10
	refill = 10 * time.Second
)

func newThrottle() *throttle { return &throttle{seed: maphash.MakeSeed()} }

// take takes an attempt from the bucket of each key, or from none and says how long to wait.
func (t *throttle) take(now time.Time, keys ...string) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*bucket, len(keys))
	for i, key := range keys {
		b := t.bucket(key)
		b.missing = max(0, b.missing-now.Sub(b.at).Seconds()/refill.Seconds())
		b.at = now
		if over := b.missing + 1 - burst; over > 0 {
			wait = max(wait, time.Duration(over*float64(refill)))
		}
		all[i] = b
	}
	if wait > 0 {
		return wait
	}
	for _, b := range all {
		b.missing++
	}
	return 0
}

// giveBack puts back what take took: the attempt was a good one.
func (t *throttle) giveBack(keys ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range keys {
		t.bucket(key).missing--
	}
}

// bucket returns the bucket of a key. mu is held.
func (t *throttle) bucket(key string) *bucket {
	return &t.buckets[maphash.String(t.seed, key)%uint64(len(t.buckets))]
}

// ofAddress returns the key of an address. Those of one IPv6 network are one.
func ofAddress(a netip.Addr) string {
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return "address"
	}
	return "address " + p.Masked().String()
}
