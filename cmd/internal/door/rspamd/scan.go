package rspamd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
	"hamlet/stream/mail"
)

// An envelope is what a client says of a message beside its bytes.
type envelope struct {
	deliverTo  string
	recipients []string
	user       string
	trace      stream.Trace
}

// envelopeOf reads the header of a request. A field Rcpt may be repeated, and may list
// several addresses.
func envelopeOf(h http.Header) (envelope, error) {
	e := envelope{
		deliverTo: strings.TrimSpace(h.Get("Deliver-To")), user: strings.TrimSpace(h.Get("User")),
		trace: stream.ParseTrace(h.Values(stream.HeaderTrace)...),
	}
	for _, list := range h.Values("Rcpt") {
		for address := range addresses(list) {
			if len(e.recipients) == maxRecipients {
				return envelope{}, fmt.Errorf("more than %d recipients", maxRecipients)
			}
			e.recipients = append(e.recipients, address)
		}
	}
	return e, nil
}

// addresses splits a list at the commas that stand outside of quotes.
func addresses(list string) iter.Seq[string] {
	return func(yield func(string) bool) {
		quoted, start := false, 0
		for i := 0; i <= len(list); i++ {
			switch {
			case i < len(list) && list[i] == '\\' && quoted:
				i++
				continue
			case i < len(list) && list[i] == '"':
				quoted = !quoted
				continue
			case i < len(list) && (list[i] != ',' || quoted):
				continue
			}
			end := min(i, len(list))
			if address := strings.TrimSpace(list[start:end]); address != "" && !yield(address) {
				return
			}
			start = i + 1
		}
	}
}

// tenants returns whose mail it is, the first recipient's tenant first, and whether there
// are more tenants than maxTenants, which are then left out.
func (s *Server) tenants(e envelope) (all []string, more bool) {
	t := s.door.Tenants
	switch {
	case e.deliverTo != "":
		return []string{t.OfUser(e.deliverTo)}, false
	case len(e.recipients) == 0 && e.user != "":
		return []string{t.OfUser(e.user)}, false
	case len(e.recipients) == 0:
		return []string{t.Default()}, false
	}
	for _, address := range e.recipients {
		tenant := t.OfRecipient(address)
		if slices.Contains(all, tenant) {
			continue
		}
		if len(all) == maxTenants {
			return all, true
		}
		all = append(all, tenant)
	}
	return all, false
}

// A result is what becomes of a message. The zero value passes it unmarked.
type result struct {
	shown   *stream.Verdict // the first recipient's, which the fields show
	decides *stream.Verdict // the most lenient
	reason  string          // why there is no verdict
	facts   facts
	took    time.Duration
}

// score asks for the verdicts of a message that has arrived, and releases it. The end of
// ctx changes nothing: a client that has said all may have closed its side, and a message
// in hand is finished.
func (s *Server) score(ctx context.Context, body *gateway.Body, e envelope, start time.Time) result {
	defer body.Release()
	ctx = stream.WithTrace(context.WithoutCancel(ctx), e.trace)
	tenants, more := s.tenants(e)
	if more { // the sender chose so many: he must not escape by it
		tenants = tenants[:1]
	}
	found := factsOf(body.Bytes(), s.door.Marks)
	verdicts, err := s.door.Score(ctx, tenants, body.Bytes(), false)
	if err != nil {
		r := s.unavailable(err, start)
		r.facts = found
		return r
	}
	lenient := slices.MinFunc(verdicts, func(a, b stream.Verdict) int { return cmp.Compare(a.Margin, b.Margin) })
	return result{shown: &verdicts[0], decides: &lenient, facts: found, took: time.Since(start)}
}

// unavailable returns the result of a message that passes unmarked.
func (s *Server) unavailable(err error, start time.Time) result {
	reason := "no verdict"
	for _, known := range []error{gateway.ErrNoAnswer, gateway.ErrTooLarge, gateway.ErrMemory} {
		if errors.Is(err, known) {
			reason = known.Error()
		}
	}
	return result{reason: reason, took: time.Since(start)}
}

// scanHTTP answers a message that came by HTTP.
func (s *Server) scanHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	e, err := envelopeOf(r.Header)
	if err != nil {
		s.garbage(w, http.StatusRequestHeaderFieldsTooLarge, err)
		return
	}
	body := s.door.NewBody()
	defer body.Release()
	var scanned result
	switch err := s.receive(w, r, body); {
	case body.Err() != nil:
		if err != nil {
			w.Header().Set("Connection", "close") // there is more of it
		}
		scanned = s.unavailable(body.Err(), start)
	case errors.Is(err, gateway.ErrMemory):
		w.Header().Set("Connection", "close")
		s.door.PassedBroken(err)
		scanned = s.unavailable(err, start)
	case err != nil:
		s.garbage(w, statusOf(err), err)
		return
	default:
		scanned = s.score(r.Context(), body, e, start)
	}
	body.Release()
	a := s.answer(scanned)
	s.reply(w, http.StatusOK, "application/json", a.json())
}

// facts are what an answer says of a message. They do not share its memory.
type facts struct {
	messageID string
	subject   string   // the value of the first subject, unfolded
	removed   []string // names of fields from outside that could be taken for ours
}

const (
	factsHeader  = 1 << 20 // bytes of a header that are looked at
	maxMessageID = 256
	maxSubject   = 900 // bytes, so that a tagged subject fits a line of mail
	maxRemoved   = 64
)

// factsOf reads the header of a message, of which it copies little: copies are not in the
// gateway's budget.
func factsOf(message []byte, marks gateway.Marks) facts {
	var f facts
	for name, value := range fields(message) {
		switch {
		case f.messageID == "" && bytes.EqualFold(name, []byte("Message-ID")):
			id := strings.Trim(unfold(value, maxMessageID), "<> \t")
			f.messageID = strings.ToValidUTF8(id, "?")
		case f.subject == "" && bytes.EqualFold(name, []byte("Subject")):
			f.subject = unfold(value, maxSubject+1)
		case len(f.removed) < maxRemoved:
			if name := string(name); marks.Ours(name) && !slices.Contains(f.removed, name) {
				f.removed = append(f.removed, name)
			}
		}
	}
	return f
}

// unfold returns a field's value as one line of at most most bytes.
func unfold(value []byte, most int) string {
	value = bytes.TrimSpace(value)
	return lineEnds.Replace(string(value[:min(len(value), most)]))
}

var lineEnds = strings.NewReplacer("\r", "", "\n", "")

// fields yields the fields of a message's header with their values, which may be folded.
// It leaves out fields whose name is too long for mail.Field, and those that do not lie
// whole in the first factsHeader bytes.
func fields(message []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		rest := message[:min(len(message), factsHeader)]
		cut := len(rest) < len(message)
		at := 0
		for f := range mail.Fields(rest) {
			if at += len(f.Bytes); cut && at == len(rest) {
				return // it may go on
			}
			if name := f.Name(); len(name) > 0 && !yield(name, f.Value()) {
				return
			}
		}
	}
}

// taggedSubject returns the subject that spam gets, and whether it can be given in JSON
// and in one line.
func (s *Server) taggedSubject(r result) (string, bool) {
	old := r.facts.subject
	if len(old) > maxSubject || !utf8.ValidString(old) {
		return "", false
	}
	value, changed := s.door.Marks.Subject(r.decides, " "+old)
	return strings.TrimLeft(value, " "), changed
}
