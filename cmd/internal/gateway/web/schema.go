package web

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"hamlet/stream"
)

// A schema is a part of the document, such as a JSON Schema (2020-12).
type schema map[string]any

func ref(name string) schema { return schema{"$ref": "#/components/schemas/" + name} }

func listOf(item schema, most int) schema {
	return schema{"type": "array", "items": item, "maxItems": most}
}

// components returns the named schemas. Those of answers are made of their Go types.
func components() schema {
	all := schema{"Event": eventSchema(true), "Request": eventSchema(false)}
	for name, t := range map[string]reflect.Type{
		"Verdict":  reflect.TypeFor[stream.Verdict](),
		"Info":     reflect.TypeFor[stream.Info](),
		"Error":    reflect.TypeFor[errorAnswer](),
		"Accepted": reflect.TypeFor[acceptedAnswer](),
	} {
		all[name] = structSchema(name, t, all)
	}
	return all
}

// structSchema returns the schema of a struct as encoding/json writes it. The schemas of
// its parts go into all, under their types' names.
func structSchema(name string, t reflect.Type, all schema) schema {
	properties, required := schema{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		field, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		property := typeSchema(f.Type, all)
		if text := fieldTexts[name+"."+field]; text != "" {
			property["description"] = text
		}
		properties[field] = property
		if options != "omitempty" {
			required = append(required, field)
		}
	}
	return schema{"type": "object", "properties": properties, "required": required}
}

func typeSchema(t reflect.Type, all schema) schema {
	switch t {
	case reflect.TypeFor[time.Time]():
		return schema{"type": "string", "format": "date-time"}
	case reflect.TypeFor[stream.Decision]():
		return schema{"type": "string", "enum": []stream.Decision{stream.DecideSpam, stream.DecideHam, stream.DecideUnsure}}
	}
	switch t.Kind() {
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer", "format": "int64"}
	case reflect.Uint64:
		return schema{"type": "integer", "minimum": 0}
	case reflect.Slice:
		return schema{"type": "array", "items": typeSchema(t.Elem(), all)}
	case reflect.Array:
		return schema{"type": "array", "items": typeSchema(t.Elem(), all), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Struct:
		if all[t.Name()] == nil {
			all[t.Name()] = structSchema(t.Name(), t, all)
		}
		return ref(t.Name())
	}
	panic(fmt.Sprintf("web: no schema of %v", t))
}

// fieldTexts describe the fields of answers.
var fieldTexts = map[string]string{
	"Verdict.id":          "The request's, where it had one.",
	"Verdict.p":           "Probability of spam.",
	"Verdict.log_odds":    "logit of p, in nats.",
	"Verdict.interval":    "Central 90 % interval of the probability.",
	"Verdict.margin":      "How far the mail is beyond the border of spam, in nats: at least 0 exactly if the verdict is spam.",
	"Verdict.identity":    "Names a mail in header fields and corrections.",
	"Verdict.reasons":     "Explain only: the model's inputs by what they contribute, largest first.",
	"Verdict.model":       "The model that answered.",
	"Verdict.words":       "Explain only: the pieces of the message that moved the answer most, largest first. They do not add up.",
	"Reason.name":         "The input.",
	"Word.text":           "A word, a run of marks, or the host of a link.",
	"Word.where":          "text, subject, link, header, name, or a header field's name.",
	"Word.contribution":   "To the mean of the log-odds, in nats.",
	"Word.shared":         "Something else in the message has the same slot of a hash table.",
	"Reason.contribution": "To the mean of the log-odds, in nats.",
	"Reason.sd":           "Its standard deviation.",
	"ModelRef.sha256":     "Of the model's bytes; with several partitions, of their SHA-256s in order.",
	"ModelRef.positions":  "The next offset of each partition, in order.",
	"ModelRef.age_ms":     "Milliseconds since the newest of its checkpoints was saved.",
	"Info.events":         "Learnt, all partitions together.",
	"Info.stale":          "The state cannot be reached: this is the last good model.",
	"Info.pinned":         "An operator pinned versions, and these are served.",
	"Sources.left_out":    "That the model was made to leave out: it has none of their labels.",
	"Info.spam_at":        "From this probability on the verdict is spam, if the interval allows it.",
	"Info.ham_at":         "Up to this probability the verdict is ham.",
	"Info.pin_lost":       "The state has lost a pinned version: the newest is served in its place.",
	"Error.error":         "What was wrong, in a sentence.",
	"Accepted.accepted":   "How many events Kafka has.",
}

// eventSchema returns the schema of an event as stream.DecodeJSON reads it; a score
// request has no label.
func eventSchema(labelled bool) schema {
	properties := schema{
		"id":     schema{"type": "string", "maxLength": stream.MaxIDLength, "description": "Names the event within its tenant and source. A verdict repeats it."},
		"time":   schema{"type": "string", "format": "date-time"},
		"source": schema{"type": "string", "maxLength": stream.MaxNameLength, "default": stream.DefaultName, "description": "Who gave the label: no address."},
		"tenant": schema{"type": "string", "maxLength": stream.MaxNameLength, "description": "Whose mail it is. Default: the token's tenant."},
		"mail":   schema{"type": "string", "contentEncoding": "base64", "contentMediaType": "message/rfc822"},
		"text":   schema{"type": "string", "minLength": 1},
		"vector": schema{"type": "object", "additionalProperties": schema{"type": "number"}, "maxProperties": stream.MaxVectorNames},
	}
	s := schema{
		"type": "object", "properties": properties, "additionalProperties": false,
		"oneOf": []schema{{"required": []string{"mail"}}, {"required": []string{"text"}}, {"required": []string{"vector"}}},
	}
	if !labelled {
		return s
	}
	properties["label"] = schema{"type": "string", "enum": []string{stream.Spam.String(), stream.Ham.String()}, "description": "Not of unlearn."}
	properties["action"] = schema{"type": "string", "enum": []string{stream.Learn.String(), stream.Relearn.String(), stream.Unlearn.String(), stream.Correct.String()}, "default": stream.Learn.String()}
	properties["of"] = schema{"type": "string", "maxLength": stream.MaxIDLength, "description": "What relearn, unlearn and correct are about: an event's id, or a message's identity."}
	s["required"] = []string{"id"}
	return s
}
