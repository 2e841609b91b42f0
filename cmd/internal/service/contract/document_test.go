package contract

import (
	"slices"
	"strings"

	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/predictions"
	"hamlet/stream/questions"
)

// A channel is a topic of Kafka or a subject of NATS.
type channel struct {
	name    string // in the document
	address string // parameters stand in braces
	kafka   bool   // else NATS
	stream  string // of JetStream that keeps what is sent; empty: none
	says    string // what goes there, in sentences
	carries []string

	receives bool     // hamlet reads what others write
	sends    bool     // hamlet writes
	answers  []string // messages that answer one; nil: none
}

// parameters are the variable parts of addresses.
var parameters = Schema{
	"model": Schema{"description": "The model's name: a-z, 0-9 and -.", "default": nats.DefaultModel},
	"kind": Schema{"description": "What happened.",
		"enum": slices.DeleteFunc(slices.Clone(stream.AlertKinds), func(k string) bool { return k == stream.AlertUnknown })},
	"feed":     Schema{"description": "Whose labels they are, as the operator calls it."},
	"object":   Schema{"description": "MODEL/IDENTITY in base64 for URLs."},
	"contents": Schema{"description": "The object's nuid."},
}

const (
	keptMail  = "$O." + nats.MailBucket
	forOthers = "It is for hamlet's own services."
)

// channels are all topics and subjects.
var channels = slices.Concat([]channel{
	{
		name: "events", address: stream.EventsTopic("{model}"), kafka: true,
		carries: []string{"EventProtobuf", "EventJSON", "Standing"}, receives: true, sends: true,
		says: "What a model learns, in its order. One partition, kept 90 days. No model reads the key: " +
			"of mail it is tenant and identity, else what the producer chose. " +
			"Whoever may write here may say everything.",
	},
	{
		name: "feeds", address: "hamlet.feeds.{feed}", kafka: true, carries: []string{"EventProtobuf", "EventJSON"},
		receives: true,
		says: "Labels of one principal: ingest --from-topic copies them into the events, " +
			"under the source and tenants that the operator names. Any other name that is not hamlet's own will do.",
	},
	{
		name: "deadLetters", address: stream.DeadLetterTopic, kafka: true, carries: []string{"DeadLetter"}, sends: true,
		says: "Records that were not learnt, as they came, with the reason. Kept 14 days.",
	},
	{
		name: "receipts", address: stream.ReceiptTopic, kafka: true, carries: []string{"Receipt"}, sends: true,
		says: "What each relearn, unlearn and correct did. The key is the tenant. After a crash one may stand twice, equal.",
	},
	{
		name: "predictions", address: predictions.Topic("{model}"), kafka: true, carries: []string{"Predictions"},
		receives: true, sends: true,
		says: "What a model predicted of each event before it learnt the label. " +
			"One partition, in the order of learning, kept as long as the events. " +
			"After a crash predictions may stand twice, equal. " + forOthers,
	},
}, scoring(), []channel{
	{
		name: "incidents", address: nats.IncidentSubject("{model}"), stream: nats.AlertStream, carries: []string{"Alert"},
		sends: true,
		says:  "Every transition of every incident. Kept 90 days or 64 MiB.",
	},
	{
		name: "alerts", address: nats.AlertSubject("{kind}", "{model}"), stream: nats.AlertStream,
		carries: []string{"Alert"}, sends: true,
		says: "The transitions that name a kind: raised and cleared.",
	},
	{
		name: "decisions", address: nats.JournalSubject("{model}"), stream: nats.JournalStream,
		carries: []string{"Decision"}, sends: true,
		says: "The journal: what scorers answered. A message has one or more lines. " +
			"Kept 14 days or 128 MiB, unless the operator says otherwise.",
	},
	{
		name: "decisionLabels", address: nats.JournalLabelSubject("{model}"), stream: nats.JournalStream,
		carries: []string{"DecisionLabel"}, sends: true,
		says: "The labels that learners learnt for these messages, and all that are more likely false than true. " +
			"A message has one or more lines.",
	},
	{
		name: "audit", address: nats.AuditSubject("{model}"), stream: nats.AuditStream, carries: []string{"Action"},
		sends: true,
		says:  "What users of the console did. Kept 400 days or 1 GiB.",
	},
	{
		name: "waiting", address: nats.WaitingSubject("{model}"), stream: nats.WaitingStream, carries: []string{"Waiting"},
		receives: true, sends: true,
		says: "A work queue of answers with their mail that nobody has contradicted yet. " + forOthers,
	},
	{
		name: "mailDescriptions", address: keptMail + ".M.{object}", stream: nats.MailStream,
		carries: []string{"MailDescription"}, sends: true,
		says: "The descriptions of the object store " + nats.MailBucket + ": mail that scorers keep for review. " +
			"Use the object store's client.",
	},
	{
		name: "mailContents", address: keptMail + ".C.{contents}", stream: nats.MailStream,
		carries: []string{"MailContents"}, sends: true,
		says: "The messages of that store, reduced and compressed.",
	},
})

// scoring are the subjects of the scoring service, for the default model and for others.
func scoring() (all []channel) {
	for _, of := range []struct{ suffix, model string }{{"", ""}, {"OfModel", "{model}"}} {
		asked := []string{"Mail", "Text", "Request", "Requests"}
		answer := []string{"Verdict", "Verdicts", "Error"}
		all = append(all,
			channel{
				name: questions.Score + of.suffix, address: nats.Subject(questions.Score, of.model), carries: asked,
				receives: true, answers: answer,
				says: "The probability that a message is spam. An array is answered by an array, in order.",
			},
			channel{
				name: questions.Explain + of.suffix, address: nats.Subject(questions.Explain, of.model), carries: asked,
				receives: true, answers: answer,
				says: "As score; the verdict has reasons, and the words that counted most.",
			},
			channel{
				name: questions.Info + of.suffix, address: nats.Subject(questions.Info, of.model), carries: []string{"Empty"},
				receives: true, answers: []string{"Info", "Error"},
				says: "The model that is served.",
			})
	}
	return all
}

// asyncAPI returns the description of Kafka's topics and NATS' subjects, AsyncAPI 3.0.
// eventProto is the text of stream/event.proto.
func asyncAPI(eventProto string) Schema {
	named, all, operations := messages(eventProto), Schema{}, Schema{}
	replies := Schema{}
	for i := range channels {
		c := &channels[i]
		all[c.name] = c.describe()
		if c.sends {
			operations["send."+c.name] = Schema{"action": "send", "channel": Schema{"$ref": "#/channels/" + c.name}}
		}
		if !c.receives {
			continue
		}
		o := Schema{"action": "receive", "channel": Schema{"$ref": "#/channels/" + c.name}}
		if c.answers != nil {
			var of []Schema
			for _, name := range c.answers {
				replies[name] = Schema{"$ref": "#/components/messages/" + name}
				of = append(of, Schema{"$ref": "#/channels/answers/messages/" + name})
			}
			o["reply"] = Schema{"channel": Schema{"$ref": "#/channels/answers"}, "messages": of}
		}
		operations["receive."+c.name] = o
	}
	all["answers"] = Schema{
		"address": nil, "messages": replies, "servers": []Schema{{"$ref": "#/servers/nats"}},
		"description": "The reply subject of a question, below _INBOX. Where nats-server has users, it is _INBOX.USER.",
	}
	return Schema{
		"asyncapi": "3.0.0",
		"info": Schema{
			"title": "hamlet", "version": "1.0.0",
			"description": "Labels in over Kafka, probabilities of spam out over NATS, and what hamlet says about itself. " +
				"The HTTP doors have a document of their own: /openapi.json of the gateway. " +
				"PORTS.md beside this folder says who may do what. " +
				"Fields, headers and words are only added: pass over what you do not know.",
		},
		"defaultContentType": stream.ContentTypeJSON,
		"servers": Schema{
			"kafka": Schema{"host": "localhost:9092", "protocol": "kafka", "description": "Any cluster, with or without SASL."},
			"nats":  Schema{"host": "localhost:4222", "protocol": "nats", "description": "nats-server with JetStream."},
		},
		"channels": all, "operations": operations,
		"components": Schema{"messages": named, "schemas": schemas(), "parameters": parameters},
	}
}

func (c *channel) describe() Schema {
	server := "nats"
	if c.kafka {
		server = "kafka"
	}
	carried := Schema{}
	for _, name := range c.carries {
		carried[name] = Schema{"$ref": "#/components/messages/" + name}
	}
	d := Schema{
		"address": c.address, "description": c.says, "messages": carried,
		"servers": []Schema{{"$ref": "#/servers/" + server}},
	}
	if c.stream != "" {
		d["x-jetstream"] = c.stream
	}
	of := Schema{}
	for name := range parameters {
		if strings.Contains(c.address, "{"+name+"}") {
			of[name] = Schema{"$ref": "#/components/parameters/" + name}
		}
	}
	if len(of) > 0 {
		d["parameters"] = of
	}
	return d
}
