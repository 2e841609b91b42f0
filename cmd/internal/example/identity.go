package example

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"

	"hamlet/stream"
	"hamlet/stream/mail"
)

// Identity returns the identity of e's body. That of a mail, whose parsed form is m, is
// mail.Identity. That of a text or a vector is a hash of all of it and of the tenant, as long
// as that of a mail.
func Identity(e *stream.Event, m *mail.Message) string {
	if e.Body.Kind == stream.Mail {
		return mail.Identity(e.Tenant, m)
	}
	b := appendPart([]byte{byte(e.Body.Kind)}, e.Tenant)
	b = appendPart(b, e.Body.Text)
	for _, n := range e.Body.Vector {
		b = appendPart(b, n.Name)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n.Value))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:sha256.Size/2])
}

func appendPart(b []byte, part string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...)
}
