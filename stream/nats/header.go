package nats

import (
	"strconv"
	"strings"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
	"hamlet/stream/questions"
)

// The headers of a request that say where it comes from.
const (
	HeaderTenant = "Hamlet-Tenant" // whose mail it is, for requests that do not say it themselves
	HeaderDoor   = "Hamlet-Door"   // the protocol by which the question came in
	HeaderWords  = "Hamlet-Words"  // how many words an explanation may have
)

// A requestHeader is what the headers of a request say beside its Content-Type. Its fields are valid
// or empty.
type requestHeader struct {
	tenant, door string
	words        int // 0: stream.MaxWords
	trace        stream.Trace
}

// parseHeader reads the headers of a request. With an error it returns what is valid.
func parseHeader(h natsgo.Header) (from requestHeader, refusal *questions.Refusal) {
	from.trace = stream.ParseTrace(header(h, stream.HeaderTrace)) // a malformed one is no error
	if door := header(h, HeaderDoor); questions.IsDoor(door) {
		from.door = door
	} else if door != "" {
		refusal = wrongDoor(door)
	}
	if words := header(h, HeaderWords); words != "" {
		n, err := strconv.Atoi(words)
		if err != nil || n < 1 {
			return from, questions.Wrong("%s: %q is no number above zero", HeaderWords, stream.Clip(words, 64))
		}
		from.words = min(n, questions.MostWords)
	}
	tenant := header(h, HeaderTenant)
	if err := stream.ValidateTenant(tenant); err != nil {
		return from, wrongTenant(err)
	}
	from.tenant = tenant
	return from, refusal
}

func wrongDoor(door string) *questions.Refusal {
	return questions.Wrong("%s: %q is no name of a door: 1 to 16 of a-z, 0-9 and - are wanted",
		HeaderDoor, stream.Clip(door, 64))
}

func wrongTenant(err error) *questions.Refusal { return questions.Wrong("%s: %v", HeaderTenant, err) }

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

// headerOf checks where a question says it comes from. A tenant that no event may have, or that
// has a blank at an end, and a door that is not 1 to 16 of a-z, 0-9 and -, are refused.
func headerOf(q *questions.Question) (requestHeader, *questions.Refusal) {
	from := requestHeader{tenant: q.Tenant, door: q.Door, words: q.Words}
	var refusal *questions.Refusal
	if q.Door != "" && !questions.IsDoor(q.Door) {
		refusal = wrongDoor(q.Door)
	}
	if err := stream.ValidateTenant(q.Tenant); err != nil {
		refusal = wrongTenant(err)
	}
	if refusal == nil && strings.Trim(q.Tenant, " ") != q.Tenant {
		refusal = questions.Wrong("%s: a header cannot carry a blank at the start or the end", HeaderTenant)
	}
	return from, refusal
}

// set writes the headers of a request.
func (r requestHeader) set(h natsgo.Header) {
	if r.tenant != "" {
		h.Set(HeaderTenant, r.tenant)
	}
	if r.door != "" {
		h.Set(HeaderDoor, r.door)
	}
	if r.words > 0 {
		h.Set(HeaderWords, strconv.Itoa(r.words))
	}
}
