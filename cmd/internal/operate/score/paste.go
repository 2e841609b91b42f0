package score

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/mail"
)

// Bounds of the form.
const (
	mostForm   = mail.MaxSize + 1<<20 // bytes: the message, and what the form needs beside it
	mostFields = 16
	sending    = 2 * time.Minute // in which the browser must have sent it
)

// ask answers POST /why: it shows why the message of the form gets the answer that it gets.
func (h *handler) ask(w http.ResponseWriter, r *http.Request) {
	v := view{}
	status := h.answer(w, r, &v)
	h.render(w, r, status, &v)
}

// answer reads the form, asks about its message, and returns the status of the page. Its place
// is free before the page is sent, which a browser may read slowly.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, v *view) (status int) {
	user := access.FromContext(r.Context()).Name
	if !h.asking.take(user) {
		v.Problem = busy
		return http.StatusServiceUnavailable
	}
	defer h.asking.free(user)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(sending)) // a server of a test may have none
	tenant, body, err := readForm(r)
	switch {
	case errors.As(err, new(*http.MaxBytesError)), err == nil && len(body.Mail) > mail.MaxSize:
		v.Problem = "The message is larger than 25 MiB. No mail server takes that much, and no scorer reads it. " +
			"A message without its attachments has the same answer."
		return http.StatusRequestEntityTooLarge
	case err != nil:
		v.Problem = page.Sentence(err)
		return http.StatusBadRequest
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Bound)
	defer cancel()
	h.explain(ctx, v, tenant, &body)
	if v.Answer == nil && v.Message == nil {
		return http.StatusUnprocessableEntity
	}
	return http.StatusOK
}

// readForm returns the message that a form holds: of a file, or else what was pasted. It reads the
// form as it comes, so that nothing of a message is written to a disk.
func readForm(r *http.Request) (tenant string, body stream.Body, err error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return "", body, errors.New("the form is not one of this page; load the page again")
	}
	var file, pasted []byte
	text := false
	for range mostFields {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", body, broken(err)
		}
		b, err := io.ReadAll(p)
		if err != nil {
			return "", body, broken(err)
		}
		switch p.FormName() {
		case "tenant":
			tenant = strings.TrimSpace(string(b))
		case "kind":
			text = string(b) == "text"
		case "message":
			pasted = b
		case "file":
			file = b
		}
	}
	if err := stream.ValidateTenant(tenant); err != nil {
		return "", body, fmt.Errorf("the tenant: %w", err)
	}
	all := file
	if len(all) == 0 {
		all = pasted
	}
	if text {
		// A browser sends line ends as CR LF, whatever stood there.
		return tenant, stream.Body{Kind: stream.Text, Text: strings.ReplaceAll(string(all), "\r\n", "\n")}, nil
	}
	return tenant, stream.Body{Kind: stream.Mail, Mail: all}, nil
}

// broken keeps what says that the form was too large.
func broken(err error) error {
	if errors.As(err, new(*http.MaxBytesError)) {
		return err
	}
	return errors.New("the form did not arrive as a whole; send it again")
}
