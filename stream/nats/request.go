package nats

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"mime"
	"strings"

	"hamlet/stream"
	"hamlet/stream/mail"
)

// The content types of a request.
const (
	TypeMail = "message/rfc822"
	TypeText = "text/plain"
	TypeJSON = stream.ContentTypeJSON
)

// The codes of a service error, in the header Nats-Service-Error-Code.
const (
	CodeBadRequest  = 400 // the request is wrong: repeating it won't help
	CodeTooLarge    = 413 // the request, or its answer, is too large for the wire
	CodeInternal    = 500 // an internal error of the service
	CodeUnavailable = 503 // no model yet, or overloaded: repeat the request later
)

// An Error is what the service answers instead of a verdict. A [Scorer] returns
// one to choose the code; any other error of a scorer's becomes CodeInternal.
type Error struct {
	Code int
	Text string // lower case, says what is wrong and what to do
}

// Error returns the text and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Text, e.Code) }

// overloaded begins the text of each error that says that the service has too much to do.
const overloaded = "overloaded: "

// Overloaded reports whether the service lives, but has too much to do.
func (e *Error) Overloaded() bool {
	return e.Code == CodeUnavailable && strings.HasPrefix(e.Text, overloaded)
}

func badRequest(format string, args ...any) *Error {
	return &Error{Code: CodeBadRequest, Text: fmt.Sprintf(format, args...)}
}

const possibleTypes = TypeMail + ", " + TypeText + " and " + TypeJSON

// A request is a decoded request: one event, or the events of a batch.
type request struct {
	events []*stream.Event
	batch  bool // an array, which is answered by an array
}

// decodeRequest reads a request, reduces its mails and validates its events. Those that
// name no tenant get the given one, or without it the default. An array may have maxBatch
// events.
func decodeRequest(contentType, tenant string, data []byte, maxBatch int) (request, *Error) {
	tenant = cmp.Or(tenant, stream.DefaultName)
	if contentType == "" {
		return request{}, badRequest("the Content-Type header is missing; possible are %s", possibleTypes)
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return request{}, badRequest("content type %q cannot be read; possible are %s", clip(contentType), possibleTypes)
	}
	switch kind {
	case TypeMail:
		return single(&stream.Event{Tenant: tenant, Body: stream.Body{Kind: stream.Mail, Mail: data}})
	case TypeText:
		switch strings.ToLower(params["charset"]) {
		case "", "utf-8", "us-ascii":
		default:
			return request{}, badRequest("charset %q is not known here: send text in UTF-8, or as a mail", clip(params["charset"]))
		}
		return single(&stream.Event{Tenant: tenant, Body: stream.Body{Kind: stream.Text, Text: string(data)}})
	case TypeJSON:
		return decodeJSON(tenant, data, maxBatch)
	}
	return request{}, badRequest("content type %q is not known; possible are %s", clip(kind), possibleTypes)
}

// single prepares e.
func single(e *stream.Event) (request, *Error) {
	if err := prepare(e); err != nil {
		return request{}, err
	}
	return request{events: []*stream.Event{e}}, nil
}

func decodeJSON(tenant string, data []byte, maxBatch int) (request, *Error) {
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte{'['}) {
		e, err := stream.DecodeJSONOf(tenant, data)
		if err != nil {
			return request{}, badRequest("%s", oneLine(err.Error()))
		}
		return single(&e)
	}
	list, err := stream.DecodeJSONList(tenant, data, maxBatch)
	if err != nil {
		return request{}, badRequest("%s", oneLine(err.Error()))
	}
	r := request{batch: true, events: make([]*stream.Event, len(list))}
	for i := range list {
		if err := prepare(&list[i]); err != nil {
			err.Text = fmt.Sprintf("[%d]: %s", i, err.Text)
			return request{}, err
		}
		r.events[i] = &list[i]
	}
	return r, nil
}

// prepare reduces e's mail and validates e.
func prepare(e *stream.Event) *Error {
	if e.Body.Kind == stream.Mail {
		reduced, err := mail.Reduce(e.Body.Mail)
		switch {
		case errors.Is(err, mail.ErrTooLarge):
			return &Error{Code: CodeTooLarge, Text: oneLine(err.Error())}
		case err != nil:
			return badRequest("%s", oneLine(err.Error()))
		}
		e.Body.Mail = reduced
	}
	if err := e.ValidateRequest(); err != nil {
		return badRequest("%s", oneLine(err.Error()))
	}
	return nil
}

// maxErrorText bounds an error's text in a header, in bytes.
const maxErrorText = 1 << 10

// oneLine returns an error's text, which may have several lines, as a header's value.
func oneLine(text string) string {
	return clipAt(strings.ReplaceAll(text, "\n", "; "), maxErrorText)
}

func clip(s string) string { return clipAt(s, 64) }

func clipAt(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
