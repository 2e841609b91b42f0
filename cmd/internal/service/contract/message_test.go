package contract

import (
	"maps"
	"slices"
	"strconv"

	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// protobufFormat is AsyncAPI's name of a schema in protobuf's language.
const protobufFormat = "application/vnd.google.protobuf;version=3"

// JSON Lines, without a header that says so.
const lines = "application/x-ndjson"

// A header is one that a message may have. Its value is a text.
type header struct {
	always bool
	says   string
	words  []string // that it may have; nil: any
}

// described returns the schema of headers.
func described(headers map[string]header) Schema {
	properties, required := Schema{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		h := headers[name]
		s := Schema{"type": "string", "description": h.says}
		if h.words != nil {
			s["enum"] = h.words
		}
		properties[name] = s
		if h.always {
			required = append(required, name)
		}
	}
	return Schema{"type": "object", "properties": properties, "required": required}
}

func with(all ...map[string]header) map[string]header {
	sum := map[string]header{}
	for _, headers := range all {
		maps.Copy(sum, headers)
	}
	return sum
}

const traceText = "W3C Trace Context. It is handed on, and logs name the trace. A malformed one is passed over."

// The headers of messages.
var (
	// cloudEvents are those that events and standings have. Others may leave them out: what
	// the payload says counts, and the two must agree.
	cloudEvents = map[string]header{
		"content-type":   {says: "Without it a payload that begins with a brace is JSON, and any other protobuf."},
		"ce_specversion": {says: "CloudEvents' version.", words: []string{"1.0"}},
		"ce_id":          {says: "The id."},
		"ce_source":      {says: "The source, as a URI reference."},
		"ce_type":        {says: "hamlet.ACTION.v1, or " + stream.TypeStanding + "."},
	}
	ofEvents = map[string]header{
		"ce_time":    {says: "When it happened, RFC 3339."},
		"ce_tenant":  {says: "The tenant."},
		"ce_ownonly": {says: "of must be an event of the same source.", words: []string{"true"}},
		stream.HeaderOrdinal: {says: "Its place in the source that ingest reads, from 0: " +
			"ingest goes on there after a restart."},
		stream.HeaderTrace:     {says: traceText},
		stream.HeaderSynthetic: {says: "hamlet up made the event itself.", words: []string{"1"}},
	}
	ofLetters = map[string]header{
		"hamlet-reason":           {always: true, says: "Why it was not learnt, at most 512 bytes."},
		"hamlet-origin-topic":     {always: true, says: "Where the record came in."},
		"hamlet-origin-partition": {always: true, says: "In decimal."},
		"hamlet-origin-offset":    {always: true, says: "In decimal."},
		"hamlet-origin-time":      {says: "The record's own, RFC 3339."},
		"hamlet-truncated":        {says: "The record's length in bytes, if it was cut."},
	}
	ofQuestions = map[string]header{
		nats.HeaderTenant:  {says: "Whose mail it is, where the body does not say: at most 256 bytes."},
		nats.HeaderDoor:    {says: "The protocol by which the question came in, for metrics: 1 to 16 of a-z, 0-9 and -."},
		stream.HeaderTrace: {says: traceText},
		nats.HeaderWords: {says: "How many words an explanation may have: " +
			"at most " + strconv.Itoa(questions.MostWords) + "."},
	}
	ofErrors = map[string]header{
		"Nats-Service-Error": {always: true, says: "What was wrong, in a sentence."},
		"Nats-Service-Error-Code": {always: true, says: "400: the request is wrong. 413: it is too large. " +
			"500: an internal error. 503: no model yet, or overloaded.", words: codes()},
	}
	messageID = map[string]header{"Nats-Msg-Id": {always: true, says: "Tells copies: the server drops them for a while."}}
)

func codes() (all []string) {
	for _, code := range []int{questions.BadRequest, questions.TooLarge, questions.Internal, questions.Unavailable} {
		all = append(all, strconv.Itoa(code))
	}
	return all
}

func contentType(kind string) map[string]header {
	return map[string]header{"Content-Type": {always: true, says: kind + ". Parameters may follow, such as a charset."}}
}

// messages returns all messages by name.
func messages(eventProto string) Schema {
	all := Schema{}
	add := func(name, kind, says string, headers map[string]header, payload Schema) {
		m := Schema{"contentType": kind, "summary": says}
		if headers != nil {
			m["headers"] = described(headers)
		}
		if payload != nil {
			m["payload"] = payload
		}
		all[name] = m
	}
	protobuf := func(text string) Schema { return Schema{"schemaFormat": protobufFormat, "schema": text} }

	add("EventProtobuf", stream.ContentTypeProtobuf, "A hamlet.v1.Event, as hamlet writes it.",
		with(cloudEvents, ofEvents), protobuf(eventProto))
	add("EventJSON", stream.ContentTypeJSON, "An event in JSON, as any producer may write it.",
		with(cloudEvents, ofEvents), Ref("Event"))
	add("Standing", stream.ContentTypeJSON, "An operator's word about a source of labels.", cloudEvents, Ref("Standing"))
	add("DeadLetter", "application/octet-stream",
		"A record as it came: its key, value and headers, and why it was refused.",
		with(cloudEvents, ofEvents, ofLetters), Schema{"type": "string", "description": "Any bytes."})
	add("Receipt", stream.ContentTypeJSON, "What a withdrawal took out of a model, or a correction did.",
		map[string]header{"content-type": {always: true, says: "What the value is.",
			words: []string{stream.ContentTypeJSON}}}, Ref("Receipt"))
	add("Predictions", "application/octet-stream",
		"Up to 512 predictions: go doc hamlet/stream/predictions draws the layout.",
		nil, Schema{"type": "string", "description": "Bytes."})

	add("Mail", questions.Mail, "A mail, RFC 5322.",
		with(contentType(questions.Mail), ofQuestions), Schema{"type": "string"})
	add("Text", questions.Text, "A text in UTF-8.",
		with(contentType(questions.Text), ofQuestions), Schema{"type": "string", "minLength": 1})
	add("Request", questions.JSON, "An event without label and action.",
		with(contentType(questions.JSON), ofQuestions), Ref("Request"))
	add("Requests", questions.JSON, "A batch.", with(contentType(questions.JSON), ofQuestions), Ref("Requests"))
	add("Empty", stream.ContentTypeJSON, "Nothing.", ofQuestions, nil)
	add("Verdict", stream.ContentTypeJSON, "The answer about one message.", nil, Ref("Verdict"))
	add("Verdicts", stream.ContentTypeJSON, "The answers of a batch, in order.", nil, Ref("Verdicts"))
	add("Info", stream.ContentTypeJSON, "The model that is served.", nil, Ref("Info"))
	add("Error", stream.ContentTypeJSON, "Instead of an answer: an empty body, and two headers.", ofErrors, nil)

	add("Alert", stream.ContentTypeJSON, "A transition of an incident.",
		with(contentType(stream.ContentTypeJSON), messageID), Ref("Alert"))
	add("Decision", lines, "One line of the journal of decisions. It holds nothing of the message's text and no address.",
		messageID, Ref("Decision"))
	add("DecisionLabel", lines, "The label that was learnt for a message.", messageID, Ref("DecisionLabel"))
	add("Action", stream.ContentTypeJSON, "One line of the audit.", messageID, Ref("Action"))
	add("Waiting", stream.ContentTypeProtobuf, "A hamlet.v1.Event that assumes an answer.",
		messageID, protobuf(eventProto))
	add("MailDescription", stream.ContentTypeJSON, "An object's description, ADR-20 of NATS.",
		nil, Schema{"type": "object"})
	add("MailContents", "application/zstd", "A reduced mail.", nil, Schema{"type": "string", "description": "Bytes."})
	return all
}
