package httpdoor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/service/contract"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// A description is /openapi.json, read as a client reads it.
type description struct {
	paths    map[string]map[string]any // by path and method
	compiler *jsonschema.Compiler
}

// describe reads the document of s. Its schemas allow no field that they do not name, so
// that a field which the document lacks is an error.
func describe(t *testing.T, s *tested) *description {
	t.Helper()
	a := s.ask(t, question{method: http.MethodGet, path: documentPath})
	if a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.body)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	schemas := doc.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
	for _, s := range schemas {
		s.(map[string]any)["additionalProperties"] = false
	}
	d := &description{compiler: jsonschema.NewCompiler(), paths: map[string]map[string]any{}}
	for path, methods := range doc.(map[string]any)["paths"].(map[string]any) {
		d.paths[path] = methods.(map[string]any)
	}
	d.compiler.AssertFormat()
	d.compiler.AssertContent()
	if err := d.compiler.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	return d
}

// valid holds a JSON value against the schema at a place of the document.
func (d *description) valid(t *testing.T, value []byte, place ...string) error {
	t.Helper()
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	pointer := "openapi.json#"
	for _, p := range place {
		pointer += "/" + escape.Replace(p)
	}
	s, err := d.compiler.Compile(pointer)
	if err != nil {
		t.Fatalf("%s: %v", pointer, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// check holds an answer against the document, and returns what was asked for.
func (d *description) check(t *testing.T, q question, a answer) string {
	t.Helper()
	method, code := strings.ToLower(q.method), strconv.Itoa(a.code)
	operation, ok := d.paths[q.path][method].(map[string]any)
	if !ok { // a method that is not there: the path's only one says what is answered
		for method = range d.paths[q.path] {
			operation = d.paths[q.path][method].(map[string]any)
		}
	}
	what := fmt.Sprintf("%s %s %s", method, q.path, code)
	response, ok := operation["responses"].(map[string]any)[code].(map[string]any)
	if !ok {
		t.Errorf("%s is not in the document: %s", what, a.body)
		return what
	}
	kind, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil || response["content"].(map[string]any)[kind] == nil {
		t.Errorf("%s: the content type %q is not in the document", what, kind)
		return what
	}
	if err := d.valid(t, a.body, "paths", q.path, method, "responses", code, "content", kind, "schema"); err != nil {
		t.Errorf("%s: %s: %v", what, a.body, err)
	}
	headers, _ := response["headers"].(map[string]any)
	for _, name := range []string{"Retry-After", "Allow", "WWW-Authenticate"} {
		if (a.header.Get(name) != "") != (headers[name] != nil) {
			t.Errorf("%s: header %s: %q, and the document says %v", what, name, a.header.Get(name), headers[name])
		}
	}
	return what
}

// Every path, method, status and content type of the handlers is in the document, every
// field of an answer too, and the other way round: each status of the document is reached.
func TestDocumentAgainstHandlers(t *testing.T) {
	trouble := func(_ context.Context, tenant string, body []byte, _ string) error {
		switch {
		case bytes.Contains(body, []byte("broken")):
			return &questions.Refusal{Code: questions.Internal, Text: "internal error"}
		case bytes.Contains(body, []byte("busy")):
			return &questions.Refusal{Code: questions.Unavailable, Text: "overloaded: ask again later"}
		case bytes.Contains(body, []byte("new")):
			return &questions.Refusal{Code: questions.Unavailable, Text: "no model yet"}
		case bytes.Contains(body, []byte("gone")):
			return questions.ErrNoAnswerer
		}
		return nil
	}
	var infoErr error
	tenants := openTenants(t)
	serve := func(memory int64, stall time.Duration) *tested {
		return serve(t, config{
			Token: operator, Events: &published{}, pace: gateway.Pace{Stall: stall},
			Door: newGateway(t, gateway.Config{Memory: memory, Tenants: tenants, Teacher: noTeacher{}, Asker: &fakeClient{score: trouble, info: func() error { return infoErr }}}),
		})
	}
	s, poor, stalling, full := serve(0, time.Minute), serve(1<<10, time.Minute), serve(0, time.Millisecond), serve(0, time.Minute)
	for range cap(full.slots) {
		full.slots <- struct{}{}
	}
	d := describe(t, s)
	seen := map[string]bool{}
	ask := func(at *tested, q question, want int) {
		t.Helper()
		q.method = max(q.method, "POST") // "" sorts before it; GET is named
		a := at.ask(t, q)
		if a.code != want {
			t.Errorf("%s %s %.80q: %d %s, want %d", q.method, q.path, q.body, a.code, a.body, want)
		}
		seen[d.check(t, q, a)] = true
	}
	get := func(at *tested, q question, want int) {
		t.Helper()
		q.method = http.MethodGet
		a := at.ask(t, q)
		if a.code != want {
			t.Errorf("GET %s: %d %s, want %d", q.path, a.code, a.body, want)
		}
		seen[d.check(t, q, a)] = true
	}
	raw := func(at *tested, q question, header string, want int) {
		t.Helper()
		q.method = http.MethodPost
		a := at.raw(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n%s\r\n\r\n%s", q.path, q.token, q.kind, header, q.body))
		if a.code != want {
			t.Errorf("POST %s, %s: %d %s, want %d", q.path, header, a.code, a.body, want)
		}
		seen[d.check(t, q, a)] = true
	}
	other := [2]string{nats.HeaderTenant, "bob"}
	for _, path := range []string{scorePath, explainPath} {
		for _, c := range []struct{ kind, body string }{
			{questions.Mail, message}, {questions.Text, "x"}, {"text/plain; charset=utf-8", "x"}, {questions.JSON, `{"text":"x","id":"1"}`}, {questions.JSON, `[]`},
			{questions.JSON, `[{"text":"x"},{"vector":{"a":1}}]`},
		} {
			ask(s, question{path: path, token: operator, kind: c.kind, body: c.body}, 200)
			if c.kind == questions.JSON {
				if err := d.valid(t, []byte(c.body), "paths", path, "post", "requestBody", "content", c.kind, "schema"); err != nil {
					t.Errorf("%s: %v", c.body, err)
				}
			}
		}
		for _, c := range []struct{ kind, body string }{
			{questions.Mail, " "}, {questions.Text, ""}, {questions.Text, "\xff"}, {questions.JSON, ""}, {questions.JSON, "{}"}, {questions.JSON, `[{"text":"x"},{}]`},
			{questions.JSON, `{"text":"x","label":"spam"}`}, {questions.JSON, `{"text":"x","other":1}`},
		} {
			ask(s, question{path: path, token: operator, kind: c.kind, body: c.body}, 400)
		}
		ask(s, question{path: path, kind: questions.Mail, body: message}, 401)
		ask(s, question{path: path, token: alice, kind: questions.Mail, body: message, header: other}, 403)
		get(s, question{path: path, token: operator}, 405)
		raw(stalling, question{path: path, token: operator, kind: questions.Mail, body: "Sub"}, "Content-Length: 100", 408)
		raw(s, question{path: path, token: operator, kind: questions.Mail}, "Content-Length: 104857600", 413)
		raw(s, question{path: path, token: operator, kind: questions.Text}, fmt.Sprint("Content-Length: ", maxText+1), 413)
		for _, kind := range []string{"", "text/html", "text/plain; charset=latin1", ";"} {
			ask(s, question{path: path, token: operator, kind: kind, body: "x"}, 415)
		}
		ask(s, question{path: path, token: operator, kind: questions.Mail, body: "x", header: [2]string{"Content-Encoding", "gzip"}}, 415)
		ask(s, question{path: path, token: operator, kind: questions.Text, body: "busy"}, 429)
		ask(poor, question{path: path, token: operator, kind: questions.Mail, body: message + strings.Repeat("x", 100<<10)}, 429)
		ask(full, question{path: path, token: operator, kind: questions.Mail, body: message}, 429)
		ask(s, question{path: path, token: operator, kind: questions.Text, body: "broken"}, 500)
		ask(s, question{path: path, token: operator, kind: questions.Text, body: "new"}, 503)
		ask(s, question{path: path, token: operator, kind: questions.JSON, body: `{"text":"gone"}`}, 503)
	}

	get(s, question{path: infoPath, token: alice}, 200)
	get(s, question{path: infoPath, token: operator, header: [2]string{nats.HeaderTenant, strings.Repeat("x", 300)}}, 400)
	get(s, question{path: infoPath}, 401)
	get(s, question{path: infoPath, token: alice, header: other}, 403)
	ask(s, question{path: infoPath, token: operator, body: "x"}, 405)
	get(full, question{path: infoPath, token: alice}, 429)
	infoErr = &questions.Refusal{Code: questions.Internal, Text: "internal error"}
	get(s, question{path: infoPath, token: alice}, 500)
	infoErr = questions.ErrNoAnswerer
	get(s, question{path: infoPath, token: alice}, 503)

	const event = `{"id":"1","label":"spam","text":"x"}`
	ask(s, question{path: eventsPath, token: operator, kind: questions.JSON, body: event}, 202)
	ask(s, question{path: eventsPath, token: operator, kind: "application/x-ndjson", body: event + "\n" + event}, 202)
	ask(s, question{path: eventsPath, token: operator, kind: questions.JSON, body: "{}"}, 400)
	ask(s, question{path: eventsPath, token: operator, kind: questions.JSON, body: event, header: other}, 400)
	ask(s, question{path: eventsPath, kind: questions.JSON, body: event}, 401)
	ask(s, question{path: eventsPath, token: alice, kind: questions.JSON, body: `{"id":"1","label":"spam","text":"x","tenant":"bob"}`}, 403)
	get(s, question{path: eventsPath, token: operator}, 405)
	raw(stalling, question{path: eventsPath, token: operator, kind: questions.JSON, body: "{"}, "Content-Length: 100", 408)
	ask(s, question{path: eventsPath, token: operator, kind: questions.JSON, body: `{"id":"1","label":"spam","text":"` + strings.Repeat("x", 1<<20) + `"}`}, 413)
	ask(full, question{path: eventsPath, token: operator, kind: questions.JSON, body: event}, 429)
	ask(s, question{path: eventsPath, token: operator, kind: questions.JSON, body: `{"id":"hang","label":"spam","text":"x"}`}, 503)

	get(s, question{path: documentPath}, 200)
	ask(s, question{path: documentPath}, 405)
	get(full, question{path: documentPath}, 429)

	for path, methods := range d.paths {
		for method, o := range methods {
			for code := range o.(map[string]any)["responses"].(map[string]any) {
				if what := fmt.Sprintf("%s %s %s", method, path, code); !seen[what] {
					t.Errorf("the document has %s, and no handler answered so", what)
				}
			}
		}
	}
	for pattern := range s.handlers() {
		if d.paths[pattern] == nil && pattern != "/v1/" {
			t.Errorf("%s is served and not in the document", pattern)
		}
	}
	if a := s.ask(t, question{path: "/v1/other", body: "x"}); a.code != 404 || d.valid(t, a.body, "components", "schemas", "Error") != nil {
		t.Errorf("an unknown path: %d %s", a.code, a.body)
	}
	if a := s.ask(t, question{method: http.MethodHead, path: infoPath, token: alice}); a.code != 503 {
		t.Errorf("HEAD: %d", a.code)
	}
}

// raw sends bytes as they are, and reads one answer.
func (s *tested) raw(t testing.TB, request string) answer {
	t.Helper()
	conn := s.dial(t)
	defer conn.Close()
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(conn, request) // the server may refuse the rest
	}()
	a, err := conn.answer()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	<-written
	return a
}

// The document says of an event what stream.DecodeJSON and Event.Validate take.
func TestDocumentAgainstEvents(t *testing.T) {
	s := serve(t, config{Door: newGateway(t, gateway.Config{Asker: &fakeClient{}})})
	d := describe(t, s)
	_, err := stream.DecodeJSON([]byte(`{"?":1}`))
	_, known, _ := strings.Cut(err.Error(), "known are ")
	want := strings.Split(known, ", ")
	want = slices.DeleteFunc(want, func(field string) bool { return field == "own_only" }) // clients may not send it
	got := slices.Collect(maps.Keys(contract.Submitted()["properties"].(schema)))
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("fields %v, DecodeJSON takes %v", got, want)
	}
	long := strings.Repeat("x", 600)
	for _, text := range []string{
		`{"text":"x"}`, `{"text":""}`, `{"text":1}`, `{"mail":"eA=="}`, `{"mail":"?"}`, `{"vector":{}}`, `{"vector":{"a":1.5}}`, `{"vector":{"a":"1"}}`, `{"vector":[1]}`,
		`{}`, `[]`, `{"text":"x","mail":"eA=="}`, `{"text":"x","id":1}`, `{"text":"x","id":"` + long + `"}`, `{"text":"x","tenant":"` + long + `"}`,
		`{"text":"x","source":"` + long + `"}`, `{"text":"x","other":1}`, `{"text":"x","time":"2026-11-20T10:00:00Z"}`, `{"text":"x","time":"yesterday"}`, `{"text":"x","time":null}`,
		`{"text":"x","label":"spam"}`, `{"text":"x","id":"1","label":"ham"}`, `{"text":"x","id":"1","label":"other"}`, `{"text":"x","id":"1","label":"spam","action":"learn"}`,
		`{"text":"x","id":"1","label":"spam","action":"relearn","of":"0"}`, `{"text":"x","id":"1","action":"unlearn","of":"0"}`, `{"text":"x","id":"1","label":"spam","action":"sing"}`,
		`{"text":"x","id":"1","label":"spam","action":"relearn","of":1}`,
	} {
		e, err := stream.DecodeJSON([]byte(text))
		for name, validate := range map[string]func() error{"Request": e.ValidateRequest, "Event": e.Validate} {
			taken := err == nil && validate() == nil
			if name == "Event" && err == nil && e.Label == stream.Unlabelled && e.Action == stream.Learn {
				continue // the schema does not say which action needs a label
			}
			if invalid := d.valid(t, []byte(text), "components", "schemas", name); taken != (invalid == nil) {
				t.Errorf("%s as %s: taken %v, in the document: %v", text, name, taken, invalid)
			}
		}
	}
}

// Every text belongs to a field, every struct of an answer is a schema.
func TestTextsOfFields(t *testing.T) {
	all := components()
	for _, name := range []string{"Error.error", "Accepted.accepted"} {
		object, field, _ := strings.Cut(name, ".")
		s, _ := all[object].(schema)
		properties, _ := s["properties"].(schema)
		if properties[field] == nil {
			t.Errorf("%s is described and does not exist", name)
		}
	}
	full := stream.Verdict{ID: "1", Decision: stream.DecideSpam, Identity: "i", Reasons: []stream.Reason{{}}, Words: []stream.Word{{}}, Model: model}
	b, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	for field := range fields {
		if all["Verdict"].(schema)["properties"].(schema)[field] == nil {
			t.Errorf("the verdict's %s is not in the document", field)
		}
	}
}
