package nats

import (
	"cmp"
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
)

// The headers of a request that say where it comes from.
const (
	HeaderTenant = "Hamlet-Tenant" // whose mail it is, for requests that do not say it themselves
	HeaderDoor   = "Hamlet-Door"   // the protocol by which the question came in
	HeaderWords  = "Hamlet-Words"  // how many words an explanation may have
)

// MostWords is how many words the explanation of one message may have, if its request asks for
// more than stream.MaxWords: some 60 KB. In a batch each has stream.MaxWords at most.
const MostWords = 400

var doorName = regexp.MustCompile(`^[a-z0-9-]{1,16}$`)

// An origin is what the headers of a request say beside its Content-Type. Its fields are valid
// or empty.
type origin struct {
	tenant, door string
	words        int // 0: stream.MaxWords
	trace        stream.Trace
}

// originOf reads the headers of a request. With an error it returns what is valid.
func originOf(h natsgo.Header) (from origin, refusal *Error) {
	from.trace = stream.ParseTrace(header(h, stream.HeaderTrace)) // a malformed one is no error
	if door := header(h, HeaderDoor); doorName.MatchString(door) {
		from.door = door
	} else if door != "" {
		refusal = badRequest("%s: %q is no name of a door: 1 to 16 of a-z, 0-9 and - are wanted", HeaderDoor, clip(door))
	}
	if words := header(h, HeaderWords); words != "" {
		n, err := strconv.Atoi(words)
		if err != nil || n < 1 {
			return from, badRequest("%s: %q is no number above zero", HeaderWords, clip(words))
		}
		from.words = min(n, MostWords)
	}
	tenant := header(h, HeaderTenant)
	if err := stream.ValidateTenant(tenant); err != nil {
		return from, badRequest("%s: %v", HeaderTenant, err)
	}
	from.tenant = tenant
	return from, refusal
}

// header finds a header in upper or lower case: NATS keeps case. The exact name goes
// first, and then the first in the order of bytes.
func header(h natsgo.Header, name string) string {
	if v := h.Get(name); v != "" {
		return v
	}
	found, value := "", ""
	for other, values := range h {
		if strings.EqualFold(other, name) && len(values) > 0 && (found == "" || other < found) {
			found, value = other, values[0]
		}
	}
	return value
}

// For returns a client on the same connection whose requests carry a tenant and a door.
// An empty one is left out. A tenant that no event may have, or that has a blank at an end,
// and a door that is not 1 to 16 of a-z, 0-9 and -, make every request fail with an
// [*Error] of CodeBadRequest.
func (c *Client) For(tenant, door string) *Client {
	other := *c
	other.from, other.refusal = origin{tenant: tenant, door: door}, nil
	h := natsgo.Header{HeaderTenant: []string{tenant}, HeaderDoor: []string{door}}
	if _, other.refusal = originOf(h); other.refusal == nil && strings.Trim(tenant, " ") != tenant {
		other.refusal = badRequest("%s: a header cannot carry a blank at the start or the end", HeaderTenant)
	}
	return &other
}

// Words returns a client that is like c, but whose explanations have up to n words. A scorer
// gives at most MostWords, and an older one stream.MaxWords.
func (c *Client) Words(n int) *Client {
	other := *c
	other.from.words = n
	return &other
}

// set writes the headers of a request.
func (o origin) set(h natsgo.Header) {
	if o.tenant != "" {
		h.Set(HeaderTenant, o.tenant)
	}
	if o.door != "" {
		h.Set(HeaderDoor, o.door)
	}
	if o.words > 0 {
		h.Set(HeaderWords, strconv.Itoa(o.words))
	}
}

type arrivalKey struct{}

// An arrival is how a request came in, for a [Scorer].
type arrival struct {
	door  string
	at    time.Time
	words int
}

// Door returns the door that a request came in by, from the context of [Scorer]'s
// methods. It is empty if the request named none.
func Door(ctx context.Context) string {
	a, _ := ctx.Value(arrivalKey{}).(arrival)
	return a.door
}

// Arrived returns when a request arrived, from the context of [Scorer]'s methods. It is
// zero in any other context.
func Arrived(ctx context.Context) time.Time {
	a, _ := ctx.Value(arrivalKey{}).(arrival)
	return a.at
}

// Words returns how many words an explanation may have, from the context of [Scorer]'s methods.
func Words(ctx context.Context) int {
	a, _ := ctx.Value(arrivalKey{}).(arrival)
	return cmp.Or(a.words, stream.MaxWords)
}

func withArrival(ctx context.Context, a arrival) context.Context {
	return context.WithValue(ctx, arrivalKey{}, a)
}
