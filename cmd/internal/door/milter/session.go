package milter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"github.com/emersion/go-milter"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
)

const (
	maxTenants = 64       // of one message; beyond them only the first is asked for
	maxForged  = 10_000   // fields that are removed; Postfix takes 3 s for so many
	maxNames   = 64 << 10 // bytes of their names
	maxSubject = 16 << 10 // a longer one is not tagged
)

// Why a message passes unmarked though the service might answer.
var (
	errCut     = errors.New("a header field or a chunk is too long")
	errNoRoom  = fmt.Errorf("a header field or a chunk: %w", gateway.ErrMemory)
	errActions = errors.New("the mail server lets milters not add or change header fields")
)

// A session answers the commands of one connection. The library calls it from one
// goroutine; the wire does from the same one.
type session struct {
	milter.NoOpMilter
	door *gateway.Door
	cfg  Config
	ctx  context.Context

	actions  milter.OptAction   // as agreed
	protocol milter.OptProtocol // as agreed

	message // the one under way
}

// A message is what the door knows of it so far.
type message struct {
	tenants        []string      // of its recipients, in order, each once
	tooManyTenants bool          // there are more tenants: it is neither refused nor held
	body           *gateway.Body // its bytes, without fields that could be taken for ours
	begun          bool          // bytes behind the header came
	cr             bool          // the last chunk ended in "\r", which is not in body yet
	broken         error         // why it passes unmarked, whatever the service says

	forged  map[string]int // how many fields of a name there are, which is in small letters
	removed int            // their sum
	names   int            // bytes of their names

	subject  *field // the first; nil without one, or if it is too long to tag
	untagged bool   // the first subject is too long to tag
}

type field struct{ name, value string }

// wanted is what the door may do to a message, if the mail server lets it.
func (s *session) wanted() milter.OptAction {
	actions := milter.OptAddHeader | milter.OptChangeHeader
	if s.cfg.QuarantineAt > 0 {
		actions |= milter.OptQuarantine
	}
	return actions
}

// agree begins a new session.
func (s *session) agree(actions milter.OptAction, protocol milter.OptProtocol) {
	s.reset()
	s.actions, s.protocol = actions, protocol
}

// reset forgets the message.
func (s *session) reset() {
	if s.body != nil {
		s.body.Release()
	}
	s.message = message{}
}

// answer is "continue", or nothing where that is agreed for this command.
func (s *session) answer(silent milter.OptProtocol) (milter.Response, error) {
	if s.protocol&silent != 0 {
		return nil, nil
	}
	return milter.RespContinue, nil
}

// cut notes that the wire shows only the start of a frame, and why.
func (s *session) cut(code milter.Code, why error) {
	switch code {
	case milter.CodeHeader, milter.CodeBody:
		s.broken = why
	case milter.CodeRcpt:
		s.tooManyTenants = true
	}
}

// MailFrom begins a message.
func (s *session) MailFrom(string, *milter.Modifier) (milter.Response, error) {
	s.reset()
	return s.answer(milter.OptNoMailReply)
}

// RcptTo takes a recipient, of whom only the tenant is kept.
func (s *session) RcptTo(to string, _ *milter.Modifier) (milter.Response, error) {
	tenant := s.door.Tenants.OfRecipient(to)
	switch {
	case slices.Contains(s.tenants, tenant):
	case len(s.tenants) == maxTenants:
		s.tooManyTenants = true
	default:
		s.tenants = append(s.tenants, tenant)
	}
	return s.answer(milter.OptNoRcptReply)
}

// Header takes a field. Its value begins behind the colon, or behind the blank there if
// the mail server keeps that for itself.
func (s *session) Header(name, value string, m *milter.Modifier) (milter.Response, error) {
	clear(m.Headers) // the library would keep every field of the connection
	if s.door.Marks.Ours(name) {
		s.forge(strings.ToLower(strings.TrimRight(name, " \t")))
		return s.answer(milter.OptNoHeaderReply)
	}
	if s.protocol&milter.OptHeaderLeadingSpace == 0 {
		value = " " + value
	}
	if s.subject == nil && !s.untagged && strings.EqualFold(strings.TrimRight(name, " \t"), "subject") {
		s.untagged = len(value) > maxSubject
		if !s.untagged {
			s.subject = &field{strings.Clone(name), strings.Clone(value)}
		}
	}
	s.write([]byte(name + ":" + strings.ReplaceAll(value, "\r\n", "\n") + "\n"))
	return s.answer(milter.OptNoHeaderReply)
}

// forge notes a field that is to be removed.
func (s *session) forge(name string) {
	_, known := s.forged[name]
	switch {
	case s.removed == maxForged, !known && s.names+len(name) > maxNames:
		return // it stays, below the one that we add
	case s.forged == nil:
		s.forged = map[string]int{}
	}
	if !known {
		name = strings.Clone(name) // not the whole field's memory
		s.names += len(name)
	}
	s.forged[name]++
	s.removed++
}

// Headers is the end of the header.
func (s *session) Headers(textproto.MIMEHeader, *milter.Modifier) (milter.Response, error) {
	return s.answer(milter.OptNoEOHReply)
}

// BodyChunk takes the next bytes of the body.
func (s *session) BodyChunk(chunk []byte, _ *milter.Modifier) (milter.Response, error) {
	s.chunk(chunk)
	return s.answer(milter.OptNoBodyReply)
}

// chunk adds bytes of the body, whose lines end in "\r\n" here and in "\n" where the mail
// server stores it. A line end may lie in two chunks.
func (s *session) chunk(chunk []byte) {
	if !s.begun {
		s.begun = true
		s.write([]byte("\n"))
	}
	if len(chunk) == 0 {
		return
	}
	if s.cr && chunk[0] != '\n' {
		s.write([]byte("\r"))
	}
	s.cr = chunk[len(chunk)-1] == '\r'
	if s.cr {
		chunk = chunk[:len(chunk)-1]
	}
	for {
		i := bytes.Index(chunk, []byte("\r\n"))
		if i < 0 {
			break
		}
		s.write(chunk[:i])
		chunk = chunk[i+1:]
	}
	s.write(chunk)
}

// write adds to the message. A body that is beyond a limit notes so itself; of a message
// that passes unmarked nothing is kept.
func (s *session) write(b []byte) {
	if s.body == nil {
		s.body = s.door.NewBody()
	}
	if s.broken != nil {
		s.body.Release()
		return
	}
	_, _ = s.body.Write(b)
}

// Abort forgets the message.
func (s *session) Abort(*milter.Modifier) error {
	s.reset()
	return nil
}

// Body is the end of the message: it answers with what to do.
func (s *session) Body(m *milter.Modifier) (milter.Response, error) {
	defer s.reset()
	verdicts := s.verdicts()
	act := s.action(verdicts)
	if act == reject {
		return milter.NewResponseStr(byte(milter.ActReplyCode), rejectText), nil
	}
	s.removeForged(m)
	if len(verdicts) > 0 {
		s.mark(m, &verdicts[0])
	}
	if act == quarantine {
		_ = m.Quarantine(quarantineText)
	}
	return milter.RespAccept, nil
}

// verdicts asks for the verdict of each tenant. Without all of them there are none, and
// the gateway has counted the message.
func (s *session) verdicts() []stream.Verdict {
	const needed = milter.OptAddHeader | milter.OptChangeHeader
	if s.broken == nil && s.actions&needed != needed {
		s.broken = errActions
	}
	if s.cr { // the body ends so
		s.cr = false
		s.write([]byte("\r"))
	}
	if s.body == nil {
		s.body = s.door.NewBody()
	}
	switch {
	case s.body.Err() != nil:
		return nil
	case s.broken != nil:
		s.door.PassedBroken(s.broken)
		return nil
	case len(s.tenants) == 0:
		s.tenants = []string{s.door.Tenants.Default()}
	case s.tooManyTenants:
		s.tenants = s.tenants[:1]
	}
	verdicts, err := s.door.Score(s.ctx, s.tenants, s.body.Bytes(), false)
	s.body.Release()
	if err != nil || len(verdicts) != len(s.tenants) {
		return nil
	}
	return verdicts
}
