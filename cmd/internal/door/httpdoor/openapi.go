package httpdoor

import (
	"net/http"
	"strconv"
	"strings"

	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// The paths.
const (
	scorePath    = "/v1/score"
	explainPath  = "/v1/explain"
	infoPath     = "/v1/info"
	eventsPath   = "/v1/events"
	documentPath = "/openapi.json"
)

// An operation is a path with its method. Handlers and the document are made of the same
// table; a test asks for every status in it, and finds no other.
type operation struct {
	path, method string
	id           string // in the document
	summary      string // a sentence
	open         bool   // needs no token
	tenant       bool   // reads the header Hamlet-Tenant
	bodies       map[string]schema
	ok           int
	answer       schema // with ok
	errors       []int
	serve        func(s *server, w http.ResponseWriter, r *http.Request, from caller) error
}

var (
	scored       = []int{400, 401, 403, 405, 408, 413, 415, 429, 500, 503} // what goes wrong with scores
	scoredBodies = map[string]schema{
		questions.Mail: {"type": "string", "description": "A mail, RFC 5322. At most 25 MiB."},
		questions.Text: {"type": "string", "description": "Plain text in UTF-8. At most 960 KiB."},
		questions.JSON: {"oneOf": []schema{ref("Request"), listOf(ref("Request"), maxBatch)}},
	}
	verdicts = schema{"oneOf": []schema{ref("Verdict"), listOf(ref("Verdict"), maxBatch)}}
)

// operations are all operations.
var operations = []operation{
	{
		path: scorePath, method: http.MethodPost, id: "score", tenant: true,
		bodies: scoredBodies, ok: http.StatusOK, answer: verdicts, errors: scored,
		summary: "The probability that a message is spam. An array is answered by an array, in order.",
		serve:   score(false),
	},
	{
		path: explainPath, method: http.MethodPost, id: "explain", tenant: true,
		bodies: scoredBodies, ok: http.StatusOK, answer: verdicts, errors: scored,
		summary: "As score; the verdict has reasons, and the words that counted most.",
		serve:   score(true),
	},
	{
		path: infoPath, method: http.MethodGet, id: "info", tenant: true,
		ok: http.StatusOK, answer: ref("Info"), errors: []int{400, 401, 403, 405, 429, 500, 503},
		summary: "The model that is served.",
		serve:   info,
	},
	{
		path: eventsPath, method: http.MethodPost, id: "events",
		ok: http.StatusAccepted, answer: ref("Accepted"), errors: []int{400, 401, 403, 405, 408, 413, 429, 503},
		summary: "Labels to learn. The answer comes when Kafka has them safe. " +
			"A request with a wrong event is refused as a whole.",
		bodies: map[string]schema{
			questions.JSON:         ref("Event"),
			"application/x-ndjson": {"type": "string", "description": "One Event a line. At most 40 MiB and 10,000 events."},
		},
		serve: events,
	},
	{
		path: documentPath, method: http.MethodGet, id: "openapi", open: true,
		ok: http.StatusOK, answer: schema{"type": "object"}, errors: []int{405, 429},
		summary: "This document.",
		serve:   openAPI,
	},
}

// errorTexts say what a status means.
var errorTexts = map[int]string{
	http.StatusBadRequest:            "The request is wrong. It will not get better.",
	http.StatusUnauthorized:          "No token, or an unknown one.",
	http.StatusForbidden:             "The tenant is another's, or labels are not taken.",
	http.StatusMethodNotAllowed:      "Another method is wanted.",
	http.StatusRequestTimeout:        "The body did not arrive in time.",
	http.StatusRequestEntityTooLarge: "The body, or an event in it, is too large.",
	http.StatusUnsupportedMediaType:  "Another content type is wanted.",
	http.StatusTooManyRequests:       "The gateway or the scoring service has too much to do.",
	http.StatusInternalServerError:   "An error of the scoring service's own.",
	http.StatusServiceUnavailable:    "Nobody answers: no scorer, no model yet, or no Kafka.",
}

// errorHeaders are the headers that come with a status.
var errorHeaders = map[int]map[string]string{
	http.StatusUnauthorized:       {"WWW-Authenticate": "Bearer."},
	http.StatusMethodNotAllowed:   {"Allow": "The method that is wanted."},
	http.StatusTooManyRequests:    {"Retry-After": "Seconds to wait."},
	http.StatusServiceUnavailable: {"Retry-After": "Seconds to wait."},
}

// document returns the description of the door, OpenAPI 3.1.
func document() schema {
	paths := schema{}
	for _, o := range operations {
		paths[o.path] = schema{strings.ToLower(o.method): o.describe()}
	}
	return schema{
		"openapi": "3.1.0",
		"info": schema{
			"title":   "hamlet",
			"version": "1.0.0",
			"description": "Probabilities of spam, and labels to learn. A verdict is the scoring service's, as on NATS. " +
				"No answer is an error here: 503. Without tokens the door answers on this machine alone, for the default tenant. " +
				"A header of more than 32 KiB is answered 431, a path that does not exist 404.",
		},
		"paths": paths,
		"components": schema{
			"schemas": components(),
			"securitySchemes": schema{"token": schema{
				"type": "http", "scheme": "bearer",
				"description": "The operator's token speaks for every tenant, a tenant's token for that tenant alone, " +
					"and another token as the operator's file says.",
			}},
		},
	}
}

func (o *operation) describe() schema {
	responses := schema{strconv.Itoa(o.ok): response("The answer.", o.answer, nil)}
	for _, code := range o.errors {
		responses[strconv.Itoa(code)] = response(errorTexts[code], ref("Error"), errorHeaders[code])
	}
	d := schema{"operationId": o.id, "summary": o.summary, "responses": responses}
	if !o.open {
		d["security"] = []schema{{"token": []string{}}, {}}
	}
	var parameters []schema
	if o.tenant {
		parameters = append(parameters, schema{
			"name": nats.HeaderTenant, "in": "header", "schema": schema{"type": "string", "maxLength": stream.MaxNameLength},
			"description": "Whose mail it is, where the body does not say. A token with one tenant may name no other.",
		})
	}
	if !o.open {
		parameters = append(parameters, schema{
			"name": stream.HeaderTrace, "in": "header", "schema": schema{"type": "string"},
			"description": "W3C Trace Context. It is handed on, and logs name the trace. A malformed one is passed over.",
		})
		d["parameters"] = parameters
	}
	if o.bodies != nil {
		content := schema{}
		for kind, s := range o.bodies {
			content[kind] = schema{"schema": s}
		}
		d["requestBody"] = schema{"required": true, "content": content}
	}
	return d
}

func response(text string, s schema, headers map[string]string) schema {
	r := schema{"description": text, "content": schema{stream.ContentTypeJSON: schema{"schema": s}}}
	if len(headers) > 0 {
		all := schema{}
		for name, what := range headers {
			all[name] = schema{"description": what, "schema": schema{"type": "string"}}
		}
		r["headers"] = all
	}
	return r
}
