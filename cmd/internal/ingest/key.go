package ingest

import (
	"hamlet/stream"
	"hamlet/stream/mail"
)

// Key returns the Kafka key of an event: its tenant and, for a mail, the identity of the
// message. So all that is said of a message has one order, and a correction reaches the
// partition of what it corrects. No key shows an address.
//
// A text or a vector has its tenant as key. Clients that correct those need not know how an
// identity is made.
func Key(e *stream.Event) []byte {
	key := []byte(e.Tenant)
	if e.Body.Kind != stream.Mail {
		return key
	}
	identity := e.Of
	if e.Action != stream.Correct || identity == "" {
		m := mail.Parse(e.Body.Mail)
		identity = mail.Identity(e.Tenant, &m)
	}
	return append(append(key, '/'), identity...)
}
