package httpdoor

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/questions"
)

// Bounds of a body.
const (
	maxMail = mail.MaxSize
	maxText = stream.MaxEventSize
	maxJSON = 8 << 20
)

// A medium is a content type that is scored.
type medium struct {
	name string
	most int // bytes
}

var media = []medium{{questions.Mail, maxMail}, {questions.Text, maxText}, {questions.JSON, maxJSON}}

// mediumOf returns what the request's body is. The error is a *refusal.
func mediumOf(r *http.Request) (medium, error) {
	wrong := func(format string, args ...any) (medium, error) {
		return medium{}, &refusal{http.StatusUnsupportedMediaType, fmt.Sprintf(format, args...)}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return wrong("the header Content-Encoding: bodies are taken uncompressed")
	}
	const possible = questions.Mail + ", " + questions.Text + " and " + questions.JSON
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return wrong("the header Content-Type is missing or cannot be read; possible are %s", possible)
	}
	for _, m := range media {
		if m.name != kind {
			continue
		}
		switch charset := strings.ToLower(params["charset"]); {
		case kind == questions.Mail, charset == "", charset == "utf-8", charset == "us-ascii":
			return m, nil
		}
		return wrong("the charset is not known here: send UTF-8, or a mail")
	}
	return wrong("the content type is not known here; possible are %s", possible)
}

// receive reads the request's body. The caller releases it, also with an error, which is
// a *refusal or gateway.ErrMemory.
func (s *server) receive(w http.ResponseWriter, r *http.Request, body *gateway.Body, most int) error {
	tooLarge := &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", most)}
	if r.ContentLength > int64(most) {
		return tooLarge
	}
	var (
		start   = time.Now()
		control = http.NewResponseController(w)
		buffer  [16 << 10]byte
	)
	for {
		allowed := s.cfg.pace.For(body.Len())
		if err := control.SetReadDeadline(start.Add(allowed)); err != nil {
			return fmt.Errorf("set the request's deadline: %w", err)
		}
		n, err := r.Body.Read(buffer[:])
		if body.Len()+int64(n) > int64(most) {
			return tooLarge
		}
		if _, err := body.Write(buffer[:n]); err != nil {
			return err
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			w.Header().Del("Connection") // the body is read
			// A deadline that passes while the scorer works would cancel the request.
			return control.SetReadDeadline(time.Time{})
		case errors.Is(err, os.ErrDeadlineExceeded):
			return &refusal{http.StatusRequestTimeout, fmt.Sprintf("the body did not arrive in time: %d bytes in %v; "+
				"it may take %v, and %d bytes must come each second after the first %v",
				body.Len(), allowed, s.cfg.pace.Total, gateway.MinRate, s.cfg.pace.Stall)}
		default:
			return &refusal{http.StatusBadRequest, "the body cannot be read: " +
				"it ends before the length that the header states, or its chunks are wrong"}
		}
	}
}
