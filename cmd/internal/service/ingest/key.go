package ingest

import (
	"hamlet/stream"
	"hamlet/stream/mail"
)

// Key returns the Kafka key of an event: its tenant and, for a mail, the identity of the
// message. No model reads it: it is for others who read the topic and want all that is said
// of a message together. No key shows an address.
//
// That identity is the event's Of, where this is one, as the body can be an altered copy. The Of
// of an unlearn may be the id of an event, so its body tells.
//
// A text or a vector has its tenant as key. Clients that correct those need not know how an
// identity is made.
func Key(e *stream.Event) []byte {
	key := []byte(e.Tenant)
	if e.Body.Kind != stream.Mail {
		return key
	}
	identity := e.Of
	if identity == "" || e.Action != stream.Correct && e.Action != stream.Assume {
		m := mail.Parse(e.Body.Mail)
		identity = mail.Identity(e.Tenant, &m)
	}
	return append(append(key, '/'), identity...)
}
