package ingest

import (
	"strings"

	"hamlet/stream"
	"hamlet/stream/mail"
)

// Key returns the Kafka key of an event: its tenant and, for a mail, the identity of the
// message. So all that is said of a message has one order, and a correction reaches the
// partition of what it corrects. No key shows an address.
//
// That identity is the event's Of, if this is one, as the body can be an altered copy. The Of
// of an unlearn may be the id of an event: it is taken for an identity if it has the form of one.
//
// A text or a vector has its tenant as key. Clients that correct those need not know how an
// identity is made.
func Key(e *stream.Event) []byte {
	key := []byte(e.Tenant)
	if e.Body.Kind != stream.Mail {
		return key
	}
	identity := e.Of
	if !ofIsIdentity(e) {
		m := mail.Parse(e.Body.Mail)
		identity = mail.Identity(e.Tenant, &m)
	}
	return append(append(key, '/'), identity...)
}

// ofIsIdentity reports whether e names a message, and not an event or nothing, with its Of.
func ofIsIdentity(e *stream.Event) bool {
	switch e.Action {
	case stream.Correct, stream.Assume:
		return e.Of != ""
	case stream.Unlearn:
		return len(e.Of) == 32 && strings.Trim(e.Of, "0123456789abcdef") == "" // mail.Identity
	}
	return false
}
