package contract

import (
	"reflect"

	"hamlet/stream"
)

// schemas returns the named schemas of all that is sent in JSON.
func schemas() Schema {
	all := Schema{
		"Event": recorded(), "Request": Request(),
		"Requests": ListOf(Ref("Request"), 1000), "Verdicts": ListOf(Ref("Verdict"), 1000),
		"Alert": alert(), "Standing": standing(), "DecisionLabel": decisionLabel(),
	}
	AddStructs(all, map[string]reflect.Type{
		"Verdict":  reflect.TypeFor[stream.Verdict](),
		"Info":     reflect.TypeFor[stream.Info](),
		"Receipt":  reflect.TypeFor[stream.Receipt](),
		"Decision": reflect.TypeFor[stream.JournalEntry](),
		"Action":   reflect.TypeFor[stream.AuditEntry](),

		// Parts of an alert.
		"Suspect":    reflect.TypeFor[stream.Suspect](),
		"SourceRate": reflect.TypeFor[stream.SourceRate](),
	}, texts)
	narrow(all, "Receipt", "outcome", stream.OutcomeWithdrawn, stream.OutcomeReplaced, stream.OutcomeOutweighed,
		stream.OutcomeUnchanged, stream.OutcomeNotAllowed)
	narrow(all, "Receipt", "action", stream.Relearn.String(), stream.Unlearn.String(), stream.Correct.String())
	return all
}

// recorded is the schema of an event in JSON as Kafka may carry it.
func recorded() Schema {
	s := submitted(stream.Actions())
	s["properties"].(Schema)["own_only"] = Schema{
		"type": "boolean", "enum": []bool{true},
		"description": "of must be an event of the same source. Whoever takes events from others sets it.",
	}
	return s
}

// narrow says which words a field may have.
func narrow(all Schema, name, field string, words ...string) {
	all[name].(Schema)["properties"].(Schema)[field].(Schema)["enum"] = words
}

// texts describe the fields of the document: Texts, and those that HTTP does not have.
var texts = func() map[string]string {
	all := map[string]string{
		"Receipt.id":              "Of the event that asked for it.",
		"Receipt.of":              "The event that was withdrawn, or the message; empty if the correction's body names it.",
		"Receipt.events":          "How many were withdrawn.",
		"Receipt.offset":          "Of the event that asked for it.",
		"Receipt.event":           "The model's event count after it.",
		"Receipt.withdrawn":       "The label that was withdrawn.",
		"Receipt.last":            "Without a withdrawal: the last label of the message.",
		"Receipt.learnt":          "The label that was learnt in its place.",
		"Receipt.trust":           "Label trust of the withdrawn event when it was learnt.",
		"Receipt.since":           "Events of its kind learnt after it.",
		"Receipt.h":               "The head's site: −h·xxᵀ was added to Λ.",
		"Receipt.eta":             "And −eta·x to η.",
		"Receipt.kl":              "Of the head's belief, before‖after, nats.",
		"Receipt.delta_log_det_v": "By how much ln|V| grew.",
		"Receipt.naive_bayes":     "Weight taken out of naive Bayes' counts.",
		"Receipt.traces":          "Parts of the model that keep a trace of the event.",
		"Receipt.before_sha256":   "Of the model; not of correct.",
		"Receipt.after_sha256":    "Of the model; not of correct.",
		"Decision.id":             "Identity of a mail.",
		"Decision.message_id":     "First 16 digits of the SHA-256 of a mail's Message-ID.",
		"Decision.lo":             "Of the 90 % interval.",
		"Decision.hi":             "Of the 90 % interval.",
		"Decision.reasons":        "Names of the largest.",
		"Decision.model":          "Its name, a slash, and the first 12 digits of its SHA-256.",
		"Decision.door":           "That the question came in by; nats if it named none.",
		"Decision.tenant":         "# and digits of its SHA-256 if it may be an address.",
		"Decision.ms":             "Milliseconds from the request's arrival to its verdict.",
		"Decision.request":        "The id of the request where it had one.",
		"Decision.rule":           "By which the probability became the verdict. Absent: the fixed thresholds.",
		"Action.id":               "Of the action: it has a line before it and one with its outcome.",
		"Action.roles":            "That the user had, with commas between.",
		"Action.from":             "Address of the user's browser.",
		"Action.outcome":          "intended, done, or failed: and an error.",
		"Suspect.phi":             "The probability that the label is true.",
	}
	for name, text := range Texts {
		all[name] = text
	}
	return all
}()

var (
	text     = Schema{"type": "string"}
	number   = Schema{"type": "number"}
	count    = Schema{"type": "integer", "minimum": 0}
	instant  = Schema{"type": "string", "format": "date-time"}
	interval = Schema{"type": "array", "items": number, "minItems": 2, "maxItems": 2}
	rate     = Schema{"type": []string{"number", "null"}, "minimum": 0, "maximum": 1}
)

// object is an object whose fields must all be there.
func object(properties Schema, required ...string) Schema {
	return Schema{"type": "object", "properties": properties, "required": required}
}

// alert is the schema of a stream.Alert that was published: it has an incident.
func alert() Schema {
	both := func(s Schema) Schema {
		return object(Schema{"ham_called_spam": s, "spam_called_ham": s}, "ham_called_spam", "spam_called_ham")
	}
	s := object(Schema{
		"incident": Schema{"type": "string", "description": "Model, partition and event count, such as default.0.6102."},
		"transition": Schema{"type": "integer", "minimum": 1,
			"description": "Of the incident. With it the alert has an identity: a copy has the same."},
		"kind": Schema{"type": "string", "enum": stream.AlertKinds},
		"state": Schema{"type": "string", "enum": stream.AlertStates,
			"description": "suspected is followed by raised or withdrawn, raised by cleared."},
		"accused":   Schema{"type": "string", "description": "The source whose labels are wrong, if one is known."},
		"event":     Schema{"type": "integer", "minimum": 1, "description": "The model's event count when it happened."},
		"level":     Schema{"type": "number", "description": "Label noise: ln SNR − ln N."},
		"reference": Schema{"type": "number", "description": "Label noise: the running median of level."},
		"threshold": Schema{"type": "number", "description": "Label noise: the drop below reference that applied."},
		"body": Schema{"type": "string", "enum": []string{stream.AlertText, stream.AlertVector},
			"description": "Which sub-model it is about."},
		"reading": Schema{"type": "string", "description": "What the alarms mean together, in words."},
		"model":   text, "time": instant, "partition": count,

		"epsilon": Schema{"type": "number", "minimum": 0, "maximum": 1,
			"description": "The flip rate of the labels."},
		"snr":                 Schema{"type": "number", "description": "η₁/η₂."},
		"noise_grade":         Schema{"type": "number", "description": "ln ω₂/ω₁."},
		"flip_rates":          both(rate),
		"flip_rate_intervals": both(interval),
		"suspects":            ListOf(Ref("Suspect"), stream.MostSuspects),
		"sources":             Schema{"type": "array", "items": Ref("SourceRate")},
	}, "incident", "transition", "kind", "state", "event", "level", "reference", "threshold", "body", "reading", "model",
		"partition", "time")
	labels := []string{"epsilon", "snr", "noise_grade", "flip_rates", "flip_rate_intervals", "suspects", "sources"}
	dependencies := Schema{}
	for _, field := range labels {
		dependencies[field] = labels
	}
	s["dependencies"] = dependencies
	return s
}

func standing() Schema {
	roles := []string{stream.Ordinary.String(), stream.Anchor.String(), stream.Muted.String()}
	return object(Schema{
		"type": Schema{"type": "string", "enum": []string{stream.TypeStanding}},
		"id":   Schema{"type": "string", "maxLength": stream.MaxIDLength}, "time": instant,
		"source": Schema{"type": "string", "maxLength": stream.MaxNameLength, "description": "Whose labels."},
		"role": Schema{"type": "string", "enum": roles,
			"description": "An anchor is believed; who is muted is not learnt."},
	}, "type", "id", "source", "role")
}

func decisionLabel() Schema {
	return object(Schema{
		"time": instant, "id": Schema{"type": "string", "description": "Identity of the message."},
		"label":  Schema{"type": "string", "enum": []string{stream.Spam.String(), stream.Ham.String()}},
		"source": text, "model": text,
		"withdrawn": Schema{"type": "boolean", "enum": []bool{true}, "description": "The label was withdrawn."},
		"tenant": Schema{"type": "string",
			"description": "Of a doubtful label: # and digits of its SHA-256 if it may be an address."},
		"p": Schema{"type": "number", "minimum": 0, "maximum": 1,
			"description": "Of a doubtful label: the probability of spam before it was learnt."},
		"phi": Schema{"type": "number", "minimum": 0, "exclusiveMaximum": 0.5,
			"description": "Of a doubtful label: the probability that it is true."},
		"offset": Schema{"type": "integer", "minimum": 0,
			"description": "Of a doubtful label: the offset of its event in the model's log."},
	}, "time", "id", "label", "source", "model")
}
