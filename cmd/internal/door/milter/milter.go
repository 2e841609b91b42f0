// Package milter is the door for mail servers that speak Sendmail's milter protocol:
// Postfix, Sendmail and others. The mail server shows each message while its SMTP client
// still waits, and does with it what the door answers.
//
//	door := g.Door("milter")
//	server := milter.New(door, milter.Config{RejectAt: .999})
//	err := door.Serve(ctx, listener, server.Handle)
//
// # What it answers
//
// At the end of a message the door asks for a verdict for the tenants of its recipients,
// and then:
//
//   - Fields that could be taken for ours are removed, whatever else happens.
//   - X-Hamlet, and what else [gateway.Marks] ask for, goes to the top of the header. The
//     fields show the verdict for the first recipient. The body is never changed.
//   - Spam of a probability of at least RejectAt is refused with "550 5.7.1"; of at least
//     QuarantineAt it is marked and held (Postfix: the hold queue, see postqueue -p).
//     Among several tenants the most lenient action is taken.
//
// The bytes that are scored are those that the mail server stores: header fields as they
// came, without fields that could be taken for ours, and lines that end in "\n". The mail
// server's own Received field is not among them, because a milter never sees it.
//
// # When it cannot
//
// Without a verdict in time, without memory, or beyond mail.MaxSize bytes of a message or
// 256 KiB of a header field, the message is accepted unmarked, after forged fields are
// removed. No sender can escape by the other bounds: a message for more than 64 tenants is
// marked for the first, and neither refused nor held; of more than 10,000 forged fields
// some stay, below ours.
//
// When the door itself is absent or closes the connection, the mail server decides. Give
// Postfix milter_default_action = accept.
//
// # The protocol
//
// A connection carries frames, uint32 length, command, data. It begins with a negotiation
// and serves message after message:
//
//	O            version, actions, protocol     the answer is the part that the door uses
//	M R R …      sender, recipients             no answer, where that is agreed
//	L L … N      header fields, end of header   no answer, where that is agreed
//	B B … E      body, end of the message       changes, then accept or a reply
//	A            the message is void            no answer
//	Q            the end
//
// Versions 2 to 6 are spoken. Connections stay open for hours between messages. The
// library github.com/emersion/go-milter reads the commands and writes the answers; the
// wire below it negotiates, bounds and times them.
package milter

import (
	"context"
	"net"

	"github.com/emersion/go-milter"

	"hamlet/cmd/internal/door/gateway"
)

// A Config says what is done with spam beyond marking it. Zero fields mean never. Each is in
// 0…1, and QuarantineAt below RejectAt.
type Config struct {
	RejectAt     float64 // the probability at which spam is refused
	QuarantineAt float64 // the probability at which spam is held
}

// A Server serves the connections of mail servers.
type Server struct {
	door *gateway.Door
	cfg  Config
}

// New returns a server behind d.
func New(d *gateway.Door, cfg Config) *Server { return &Server{d, cfg} }

// Handle serves one connection until the mail server ends it, or ctx ends and no
// message's content is under way.
func (s *Server) Handle(ctx context.Context, conn net.Conn) {
	// A message whose content is here is answered also while the door closes.
	session := &session{door: s.door, cfg: s.cfg, ctx: context.WithoutCancel(ctx)}
	w := newWire(conn, session)
	defer w.stopWith(ctx)()
	defer w.release()
	defer session.reset()
	server := milter.Server{NewMilter: func() milter.Milter { return session }}
	_ = server.Serve(gateway.Single(w, w.closed)) // returns when the library's session has closed w
}
