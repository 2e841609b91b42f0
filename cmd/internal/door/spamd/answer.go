package spamd

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
)

// answer writes the answer to a request with a message. A verdict of nil means that the
// message passes unmarked; it may be lost then, and body is empty.
func (s *Server) answer(w *wire, req *request, v *stream.Verdict, body *gateway.Body, lost error) {
	spam := spamField(v)
	switch req.command {
	case process, headers:
		if lost == nil {
			lost = s.answerMail(w, req, v, body, spam)
		}
		body.Release()
		switch {
		case lost == nil:
		case errors.Is(lost, gateway.ErrTooLarge):
			s.answerRefusal(w, &refusal{exDataErr, "Not marked: " + lost.Error()})
		default:
			s.answerRefusal(w, &refusal{exTempFail, "Not marked: " + lost.Error()})
		}
		return
	case check:
		body.Release()
		_ = w.write([]byte("SPAMD/1.1 0 EX_OK\r\n" + spam + "\r\n\r\n"))
		return
	}
	body.Release()
	var text string
	switch {
	case req.command == symbols:
		text = symbol(v)
		if req.version < 1.3 {
			text += "\r\n"
		}
	case req.command == report, v != nil && v.Decision == stream.DecideSpam: // reportIfSpam
		text = reportText(v)
	}
	head := "SPAMD/1.1 0 EX_OK\r\n"
	if req.version >= 1.3 {
		head += "Content-length: " + strconv.Itoa(len(text)) + "\r\n"
	}
	_ = w.write([]byte(head + spam + "\r\n\r\n" + text))
}

// spamField returns the field that says whether the message is spam, without a line end.
func spamField(v *stream.Verdict) string {
	yes, score := "False", "0.0"
	if v != nil {
		score = gateway.FormatScore(gateway.ScoreOf(v, gateway.Required), gateway.Required, 1)
		if v.Decision == stream.DecideSpam {
			yes = "True"
		}
	}
	return fmt.Sprintf("Spam: %s ; %s / %.1f", yes, score, float64(gateway.Required))
}

// symbol returns the name of the verdict, as a rule of SpamAssassin would be called.
func symbol(v *stream.Verdict) string {
	if v == nil {
		return "HAMLET_UNAVAILABLE"
	}
	switch v.Decision {
	case stream.DecideSpam:
		return "HAMLET_SPAM"
	case stream.DecideHam:
		return "HAMLET_HAM"
	}
	return "HAMLET_UNSURE"
}

// answerMail writes the message, or its header, with the marks of v. Without memory for
// the new header it writes nothing and returns ErrMemory.
func (s *Server) answerMail(w *wire, req *request, v *stream.Verdict, body *gateway.Body, spam string) error {
	message := body.Bytes()
	// The new header is made by appending, and leaves at most as much garbage.
	room := 2 * int64(headerLength(message))
	if room <= gateway.FreeBytes {
		room = 0
	}
	if !s.door.Acquire(room) {
		s.door.PassedBroken(gateway.ErrMemory)
		return gateway.ErrMemory
	}
	defer s.door.Return(room)
	marked := s.door.Marks.Rewrite(message, v)
	rest := marked.Body
	if req.command == headers {
		rest = rest[:len(rest)-(len(message)-headerEnd(message))]
	}
	n := len(marked.Header) + len(rest)
	var head string
	switch {
	case req.version >= 1.3:
		head = fmt.Sprintf("SPAMD/1.1 0 EX_OK\r\nContent-length: %d\r\n%s\r\n\r\n", n, spam)
	case req.version >= 1.2:
		head = fmt.Sprintf("SPAMD/1.1 0 EX_OK\r\nContent-length: %d\r\n\r\n", n)
	default:
		head = "SPAMD/1.0 0 EX_OK\r\n"
	}
	if req.command == headers && len(rest) <= maxLine {
		rest = bytes.Clone(rest)
		body.Release() // before a client that reads slowly
	}
	_ = w.write([]byte(head), marked.Header, rest)
	return nil
}

// headerEnd returns where a client finds the body of a message: behind the first empty
// line, or at the end.
func headerEnd(message []byte) int {
	end := len(message)
	for _, empty := range []string{"\n\n", "\r\n\r\n"} {
		if i := bytes.Index(message[:end], []byte(empty)); i >= 0 {
			end = i + len(empty)
		}
	}
	return end
}

// headerLength bounds the length of what Rewrite takes for the header. It ends at an
// empty line of either kind.
func headerLength(message []byte) int {
	end := headerEnd(message)
	if i := bytes.Index(message[:end], []byte("\n\r\n")); i >= 0 {
		end = i + len("\n\r\n")
	}
	return end
}
