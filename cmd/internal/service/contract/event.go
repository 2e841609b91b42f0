package contract

import "hamlet/stream"

// Submitted is the schema of an event that a client sends to a door.
func Submitted() Schema {
	return submitted([]string{stream.Learn.String(), stream.Relearn.String(), stream.Unlearn.String(),
		stream.Correct.String()})
}

func submitted(actions []string) Schema {
	s := Request()
	properties := s["properties"].(Schema)
	properties["label"] = Schema{"type": "string", "enum": []string{stream.Spam.String(), stream.Ham.String()},
		"description": "Not of unlearn."}
	properties["action"] = Schema{"type": "string", "enum": actions, "default": stream.Learn.String()}
	properties["of"] = Schema{"type": "string", "maxLength": stream.MaxIDLength,
		"description": "What relearn, unlearn and correct are about: an event's id, or a message's identity."}
	share := func(text string) Schema {
		return Schema{"type": "number", "exclusiveMinimum": 0, "maximum": 1, "description": text}
	}
	properties["sampled"] = Schema{
		"type": "object", "additionalProperties": false, "required": []string{"probability", "why"},
		"description": "The label was asked for. Without it, it was volunteered, and no promise about lost ham rests on it.",
		"properties": Schema{
			"probability": share("With which this label was asked for."),
			"least": share("With which the same policy asks at least about mail that lies above a threshold. " +
				"Default: probability."),
			"why": Schema{"type": "string", "enum": stream.SampledWhys()},
		},
	}
	s["required"] = []string{"id"}
	return s
}

// Request is the schema of a score request as stream.DecodeJSON reads it.
func Request() Schema {
	return Schema{
		"type": "object", "additionalProperties": false,
		"oneOf": []Schema{{"required": []string{"mail"}}, {"required": []string{"text"}}, {"required": []string{"vector"}}},
		"properties": Schema{
			"id": Schema{"type": "string", "maxLength": stream.MaxIDLength,
				"description": "Names the event within its tenant and source. A verdict repeats it."},
			"time": Schema{"type": "string", "format": "date-time"},
			"source": Schema{"type": "string", "maxLength": stream.MaxNameLength, "default": stream.DefaultName,
				"description": "Who gave the label: no address."},
			"tenant": Schema{"type": "string", "maxLength": stream.MaxNameLength,
				"description": "Whose mail it is. Default: the token's tenant."},
			"mail": Schema{"type": "string", "contentEncoding": "base64", "contentMediaType": "message/rfc822"},
			"text": Schema{"type": "string", "minLength": 1},
			"vector": Schema{"type": "object", "additionalProperties": Schema{"type": "number"},
				"maxProperties": stream.MaxVectorNames},
		},
	}
}
