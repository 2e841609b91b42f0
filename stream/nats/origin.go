package nats

import (
	"context"
	"regexp"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
)

// The headers of a request that say where it comes from.
const (
	HeaderTenant = "Hamlet-Tenant" // whose mail it is, for requests that do not say it themselves
	HeaderDoor   = "Hamlet-Door"   // the protocol by which the question came in
)

var doorName = regexp.MustCompile(`^[a-z0-9-]{1,16}$`)

// An origin is where a request comes from. Its fields are valid or empty.
type origin struct{ tenant, door string }

// originOf reads the headers of a request. With an error it returns what is valid.
func originOf(h natsgo.Header) (from origin, refusal *Error) {
	if door := header(h, HeaderDoor); doorName.MatchString(door) {
		from.door = door
	} else if door != "" {
		refusal = badRequest("%s: %q is no name of a door: 1 to 16 of a-z, 0-9 and - are wanted", HeaderDoor, clip(door))
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

// set writes the headers of a request.
func (o origin) set(h natsgo.Header) {
	if o.tenant != "" {
		h.Set(HeaderTenant, o.tenant)
	}
	if o.door != "" {
		h.Set(HeaderDoor, o.door)
	}
}

type arrivalKey struct{}

// An arrival is how a request came in, for a [Scorer].
type arrival struct {
	door string
	at   time.Time
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

func withArrival(ctx context.Context, a arrival) context.Context {
	return context.WithValue(ctx, arrivalKey{}, a)
}
