// Package contract describes hamlet's wire to those who write programs for it: the JSON Schemas of what
// is sent. The gateway's OpenAPI document has them. The AsyncAPI document of Kafka's topics and NATS'
// subjects is made by the package's tests, of the same schemas. Metrics are described by the rules and the
// dashboard in deploy/prometheus and deploy/grafana, and defined where they are counted.
//
//	all := contract.Schema{"Event": contract.Submitted()}
//	contract.AddStructs(all, map[string]reflect.Type{"Verdict": reflect.TypeFor[stream.Verdict]()}, contract.Texts)
//
// Schemas of answers are made of their Go types. Tests hold the others against the encoders
// of package stream. A test compares deploy/contracts/asyncapi.yaml, and writes it:
//
//	go test ./cmd/internal/service/contract -run TestDocumentIsWritten -update
package contract

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"hamlet/stream"
)

// A Schema is a part of a document, such as a JSON Schema. What stands in it means the same
// in JSON Schema's draft 7, as AsyncAPI has it, and in 2020-12, as OpenAPI has it.
type Schema = map[string]any

// Ref refers to a named schema of the document.
func Ref(name string) Schema { return Schema{"$ref": "#/components/schemas/" + name} }

// ListOf is an array of at most so many items.
func ListOf(item Schema, most int) Schema {
	return Schema{"type": "array", "items": item, "maxItems": most}
}

// AddStructs puts the schemas of structs into all, as encoding/json writes them, under the
// names given. The schemas of their parts go there too, under their types' names. Texts
// describe fields, by "Struct.field".
func AddStructs(all Schema, named map[string]reflect.Type, texts map[string]string) {
	m := maker{all, texts}
	for name, t := range named {
		all[name] = m.structSchema(name, t)
	}
}

type maker struct {
	all   Schema
	texts map[string]string
}

func (m maker) structSchema(name string, t reflect.Type) Schema {
	properties, required := Schema{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		field, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if field == "-" {
			continue
		}
		property := m.typeSchema(f.Type)
		if text := m.texts[name+"."+field]; text != "" {
			property["description"] = text
		}
		properties[field] = property
		if options != "omitempty" {
			required = append(required, field)
		}
	}
	return Schema{"type": "object", "properties": properties, "required": required}
}

func (m maker) typeSchema(t reflect.Type) Schema {
	switch t {
	case reflect.TypeFor[time.Time]():
		return Schema{"type": "string", "format": "date-time"}
	case reflect.TypeFor[stream.Decision]():
		return Schema{"type": "string", "enum": []string{string(stream.DecideSpam), string(stream.DecideHam),
			string(stream.DecideUnsure)}}
	}
	switch t.Kind() {
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.String:
		return Schema{"type": "string"}
	case reflect.Float64:
		return Schema{"type": "number"}
	case reflect.Int, reflect.Int64:
		return Schema{"type": "integer", "format": "int64"}
	case reflect.Uint64:
		return Schema{"type": "integer", "minimum": 0}
	case reflect.Pointer:
		return m.typeSchema(t.Elem())
	case reflect.Slice:
		return Schema{"type": "array", "items": m.typeSchema(t.Elem())}
	case reflect.Array:
		return Schema{"type": "array", "items": m.typeSchema(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return Schema{"type": "object", "additionalProperties": m.typeSchema(t.Elem())}
	case reflect.Struct:
		if m.all[t.Name()] == nil {
			m.all[t.Name()] = m.structSchema(t.Name(), t)
		}
		return Ref(t.Name())
	}
	panic(fmt.Sprintf("contract: no schema of %v", t))
}

// Texts describe the fields of what is sent.
var Texts = map[string]string{
	"Verdict.id":       "The request's, where it had one.",
	"Verdict.p":        "Probability of spam.",
	"Verdict.log_odds": "logit of p, in nats.",
	"Verdict.interval": "Central 90 % interval of the probability.",
	"Verdict.margin": "How far the mail is beyond the border of spam, in nats: " +
		"at least 0 exactly if the verdict is spam.",
	"Verdict.rule": "Which rule turned p into the verdict. Absent: the scorer's fixed thresholds.",
	"Rule.by": "fixed; cost; budget: a promise is kept; not-yet: there is not enough ham to promise anything; " +
		"broken: there is ham enough, and no threshold keeps the budget; withdrawn: an incident is raised. " +
		"In the last three cases something stands in.",
	"Rule.lose_at_most": "The budget: the share of all ham that may be called spam.",
	"Rule.cost":         "What a lost ham costs, in missed spams.",
	"Rule.spam_at":      "From this probability on the verdict is spam. Absent: nothing is called spam.",
	"Rule.ham":          "Judged ham that the budget's threshold rests on, weighed by how it was asked for.",
	"Rule.lost":         "Of it, what is at or above the threshold that the judged ham allows. spam_at may be stricter.",
	"Rule.missing":      "At least so much further ham until something can be promised. Absent: none is missing, or none is enough.",
	"Verdict.identity":  "Names a mail in header fields and corrections.",
	"Verdict.reasons":   "Explain only: the model's inputs by what they contribute, largest first.",
	"Verdict.model":     "The model that answered.",
	"Verdict.words": "Explain only: the pieces of the message that moved the answer most, largest first. " +
		"They do not add up.",
	"Reason.name":         "The input.",
	"Word.text":           "A word, a run of marks, or the host of a link.",
	"Word.where":          "text, subject, link, header, name, or a header field's name.",
	"Word.contribution":   "To the mean of the log-odds, in nats.",
	"Word.shared":         "Something else in the message has the same slot of a hash table.",
	"Reason.contribution": "To the mean of the log-odds, in nats.",
	"Reason.sd":           "Its standard deviation.",
	"ModelRef.sha256":     "Of the model's bytes.",
	"ModelRef.positions":  "One: the next offset of the log.",
	"ModelRef.age_ms":     "Milliseconds since the newest of its checkpoints was saved.",
	"Info.events":         "Learnt.",
	"Info.stale":          "The state cannot be reached: this is the last good model.",
	"Info.pinned":         "An operator pinned a version, and it is served.",
	"Sources.left_out":    "That the model was made to leave out: it has none of their labels.",
	"Info.spam_at":        "From this probability on the verdict is spam, if the interval allows it.",
	"Info.ham_at":         "Up to this probability the verdict is ham.",
	"Info.rule":           "Which rule decides for tenants without one of their own. Absent: the fixed thresholds.",
	"Info.promoted": "Present if model answers in the place of the one that was asked, " +
		"because an operator promoted it.",
	"Promoted.for":  "The model that was asked.",
	"Promoted.by":   "Who promoted it, as the program said that did.",
	"Info.pin_lost": "The state has lost a pinned version: the newest is served in its place.",
}
