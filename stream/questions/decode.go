package questions

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

// Messages are what a question asks about.
type Messages struct {
	Events []*stream.Event
	Batch  bool // an array, which is answered by an array
}

// Decode reads the body of a question, reduces its mails and validates its events. Those that
// name no tenant get the given one, or without it the default. An array may have maxBatch
// events.
func Decode(contentType, tenant string, data []byte, maxBatch int) (Messages, *Refusal) {
	tenant = cmp.Or(tenant, stream.DefaultName)
	kind, params, err := parseContentType(contentType)
	if err != nil {
		return Messages{}, Wrong("content type %q cannot be read; possible are %s", stream.Clip(contentType, 64), all)
	}
	switch kind {
	case "":
		return Messages{}, Wrong("the Content-Type header is missing; possible are %s", all)
	case Mail:
		return single(&stream.Event{Tenant: tenant, Body: stream.Body{Kind: stream.Mail, Mail: data}})
	case Text:
		switch strings.ToLower(params["charset"]) {
		case "", "utf-8", "us-ascii":
		default:
			return Messages{}, Wrong("charset %q is not known here: send text in UTF-8, or as a mail",
				stream.Clip(params["charset"], 64))
		}
		return single(&stream.Event{Tenant: tenant, Body: stream.Body{Kind: stream.Text, Text: string(data)}})
	case JSON:
		return decodeJSON(tenant, data, maxBatch)
	}
	return Messages{}, Wrong("content type %q is not known; possible are %s", stream.Clip(kind, 64), all)
}

// parseContentType is mime.ParseMediaType, without its work for what nearly all questions say. The kind is
// empty only without a contentType.
func parseContentType(contentType string) (kind string, params map[string]string, err error) {
	switch contentType {
	case "", Mail, Text, JSON:
		return contentType, nil, nil
	}
	return mime.ParseMediaType(contentType)
}

// single prepares e.
func single(e *stream.Event) (Messages, *Refusal) {
	if err := prepare(e); err != nil {
		return Messages{}, err
	}
	return Messages{Events: []*stream.Event{e}}, nil
}

func decodeJSON(tenant string, data []byte, maxBatch int) (Messages, *Refusal) {
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte{'['}) {
		e, err := stream.DecodeJSONOf(tenant, data)
		if err != nil {
			return Messages{}, Wrong("%s", OneLine(err.Error()))
		}
		return single(&e)
	}
	list, err := stream.DecodeJSONList(tenant, data, maxBatch)
	if err != nil {
		return Messages{}, Wrong("%s", OneLine(err.Error()))
	}
	r := Messages{Batch: true, Events: make([]*stream.Event, len(list))}
	for i := range list {
		if err := prepare(&list[i]); err != nil {
			err.Text = fmt.Sprintf("[%d]: %s", i, err.Text)
			return Messages{}, err
		}
		r.Events[i] = &list[i]
	}
	return r, nil
}

// prepare reduces e's mail and validates e.
func prepare(e *stream.Event) *Refusal {
	if e.Body.Kind == stream.Mail {
		reduced, err := mail.Reduce(e.Body.Mail)
		switch {
		case errors.Is(err, mail.ErrTooLarge):
			return &Refusal{Code: TooLarge, Text: OneLine(err.Error())}
		case err != nil:
			return Wrong("%s", OneLine(err.Error()))
		}
		e.Body.Mail = reduced
	}
	if err := e.ValidateRequest(); err != nil {
		return Wrong("%s", OneLine(err.Error()))
	}
	return nil
}

// maxErrorText bounds an error's text in a header, in bytes.
const maxErrorText = 1 << 10

// OneLine returns the text of an error, which may have several lines, as one line of some
// kilobyte at most, such as a header may have.
func OneLine(text string) string {
	return stream.Clip(strings.ReplaceAll(text, "\n", "; "), maxErrorText)
}
