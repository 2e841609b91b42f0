package contract

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"hamlet/cmd/internal/testkit/debian"
	"hamlet/stream"
	"hamlet/stream/nats"
)

var update = flag.Bool("update", false, "write deploy/contracts/asyncapi.yaml")

const (
	root      = "../../../../"
	published = root + "deploy/contracts/asyncapi.yaml"
)

func file(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func written(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# Made by go test ./cmd/internal/service/contract -run TestDocumentIsWritten -update\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(asyncAPI(file(t, root+"stream/event.proto"))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The file that programmers read is what the code says.
func TestDocumentIsWritten(t *testing.T) {
	if *update {
		if err := os.WriteFile(published, written(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal([]byte(file(t, published)), written(t)) {
		t.Errorf("%s is not what the code says: go test ./cmd/internal/service/contract -run TestDocumentIsWritten -update", published)
	}
}

// document returns the published document as a program reads it.
func document(t testing.TB) map[string]any {
	t.Helper()
	var read any
	if err := yaml.Unmarshal([]byte(file(t, published)), &read); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

// at returns what stands at a path of the document.
func at(t testing.TB, in any, path ...string) any {
	t.Helper()
	for _, name := range path {
		object, ok := in.(map[string]any)
		if !ok || object[name] == nil {
			t.Fatalf("the document has no %s", strings.Join(path, "/"))
		}
		in = object[name]
	}
	return in
}

// The document holds against AsyncAPI's own schema, which npm has.
func TestDocumentIsAsyncAPI(t *testing.T) {
	dir := os.Getenv(debian.Variable)
	if dir == "" {
		t.Skipf("%s names no directory: .ci/programs DIR asyncapi-specs makes one", debian.Variable)
	}
	specs, err := jsonschema.UnmarshalJSON(strings.NewReader(file(t, filepath.Join(dir, "asyncapi-specs", "schemas", "3.0.0.json"))))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("asyncapi.json", specs); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("asyncapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(document(t)); err != nil {
		t.Error(err)
	}
	broken := document(t)
	broken["channels"].(map[string]any)["events"].(map[string]any)["address"] = 7.0
	if s.Validate(broken) == nil {
		t.Error("the schema takes a channel whose address is a number: the test misses its point")
	}
}

// Every reference leads somewhere, every part is referred to, and an operation's messages
// are its channel's.
func TestReferences(t *testing.T) {
	doc := document(t)
	used := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, part := range v {
				if ref, ok := part.(string); ok && name == "$ref" {
					at(t, doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
					used[ref] = true
				}
				walk(part)
			}
		case []any:
			for _, part := range v {
				walk(part)
			}
		}
	}
	walk(doc)
	for _, kind := range []string{"components/messages", "components/schemas", "components/parameters", "channels", "servers"} {
		for name := range at(t, doc, strings.Split(kind, "/")...).(map[string]any) {
			if !used["#/"+kind+"/"+name] {
				t.Errorf("nothing refers to %s/%s", kind, name)
			}
		}
	}
	for _, c := range channels {
		for _, braces := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(c.address, -1) {
			if parameters[braces[1]] == nil {
				t.Errorf("%s: no parameter %s", c.address, braces[1])
			}
		}
	}
}

// Every description belongs to a field.
func TestTexts(t *testing.T) {
	all := schemas()
	for name := range texts {
		object, field, _ := strings.Cut(name, ".")
		s, _ := all[object].(Schema)
		if properties, _ := s["properties"].(Schema); properties[field] == nil {
			t.Errorf("%s is described and does not exist", name)
		}
	}
}

// literals calls take for each string of the code below folders, tests and generated code
// aside, with the name of the constant that it is the value of.
func literals(t *testing.T, take func(path, constant, value string), folders ...string) {
	t.Helper()
	set := token.NewFileSet()
	for _, folder := range folders {
		err := filepath.WalkDir(root+folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
				return err
			}
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				constant := ""
				if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
					constant, n = spec.Names[0].Name, spec.Values[0]
				}
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if value, err := strconv.Unquote(literal.Value); err == nil {
						take(path, constant, value)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Every name of a topic, subject or stream in the code is in the document, and the other way
// round.
func TestChannelsAgainstCode(t *testing.T) {
	const service = nats.ServiceName + "."
	others := []string{
		"hamlet.", service, stream.TypeStanding, // types of CloudEvents, subjects of the service
		"hamlet.learner.", "hamlet.ingest.", // consumer groups
		"hamlet.order.", // not for others any more
	}
	name := regexp.MustCompile(`^(hamlet\.[a-z.-]*|HAMLET_[A-Z]+)$`)
	found := map[string]bool{}
	literals(t, func(path, constant, value string) {
		if strings.HasPrefix(value, "HAMLET_") && constant == "" || !name.MatchString(value) {
			return // a variable of the environment
		}
		for _, c := range channels {
			if c.stream == value || c.address == value || strings.HasSuffix(value, ".") && strings.HasPrefix(c.address, value) {
				found[value] = true
			}
		}
		switch filepath.Ext(value) {
		case ".conf", ".lua", ".yaml":
			return
		}
		if !found[value] && !slices.Contains(others, value) && (strings.Contains(path, "/stream/") || !strings.HasPrefix(value, "HAMLET_")) {
			t.Errorf("%s: %s is in no channel of the document", path, value)
		}
	}, "stream", "cmd/internal/service/settings", "cmd/internal/service/program", "cmd/internal/service/learner", "cmd/internal/service/ingest", "cmd/internal/service/scorer", "cmd/internal/door", "cmd/internal/service/parts", "cmd/internal/service/up")
	for _, c := range channels {
		prefix := strings.TrimSuffix(c.address, "{model}")
		known := found[c.address] || found[prefix] || c.name == "feeds" || c.answers != nil || c.stream == nats.MailStream
		for value := range found {
			known = known || strings.HasSuffix(value, ".") && strings.HasPrefix(c.address, value)
		}
		if !known {
			t.Errorf("the code has no name that begins %s", c.address)
		}
		if c.stream != "" && c.stream != nats.MailStream && !found[c.stream] {
			t.Errorf("the code has no stream %s", c.stream)
		}
	}
}

// Every header that the code has a constant for is in the document, and the other way round.
func TestHeadersAgainstCode(t *testing.T) {
	documented := map[string]bool{}
	for _, headers := range []map[string]header{cloudEvents, ofEvents, ofLetters, ofQuestions} {
		for name := range headers {
			documented[name] = true
		}
	}
	found := map[string]bool{}
	literals(t, func(path, constant, value string) {
		if strings.HasPrefix(strings.ToLower(constant), "header") {
			found[value] = true
		}
	}, "stream")
	if want, got := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(documented)); !slices.Equal(got, want) {
		t.Errorf("documented %v\nin the code %v", got, want)
	}
}

// A validator holds what is sent against the document, whose schemas then allow no field
// that they do not name.
type validator struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
}

func newValidator(t testing.TB) *validator {
	t.Helper()
	v := &validator{doc: document(t), compiler: jsonschema.NewCompiler()}
	var close func(any)
	close = func(part any) {
		switch part := part.(type) {
		case map[string]any:
			if part["properties"] != nil {
				part["additionalProperties"] = false
			}
			for _, p := range part {
				close(p)
			}
		case []any:
			for _, p := range part {
				close(p)
			}
		}
	}
	close(v.doc["components"])
	v.compiler.DefaultDraft(jsonschema.Draft7)
	v.compiler.AssertFormat()
	v.compiler.AssertContent()
	if err := v.compiler.AddResource("asyncapi.json", v.doc); err != nil {
		t.Fatal(err)
	}
	return v
}

// payload holds a message's bytes against its schema. full says that every field is there.
func (v *validator) payload(t testing.TB, message string, value []byte, full bool) error {
	t.Helper()
	m := at(t, v.doc, "components", "messages", message).(map[string]any)
	payload, _ := m["payload"].(map[string]any)
	switch {
	case payload == nil:
		if len(value) > 0 {
			return fmt.Errorf("%d bytes, want none", len(value))
		}
		return nil
	case payload["schemaFormat"] == protobufFormat:
		_, err := stream.DecodeProto(value)
		return err
	case payload["$ref"] == nil:
		return nil // any bytes
	}
	name := strings.TrimPrefix(payload["$ref"].(string), "#/components/schemas/")
	return v.schema(t, name, value, full)
}

func (v *validator) schema(t testing.TB, name string, value []byte, full bool) error {
	t.Helper()
	s, err := v.compiler.Compile("asyncapi.json#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return err
	}
	if full {
		for field := range at(t, v.doc, "components", "schemas", name, "properties").(map[string]any) {
			if _, ok := parsed.(map[string]any)[field]; !ok {
				return fmt.Errorf("%s: nobody writes the field %s", name, field)
			}
		}
	}
	return s.Validate(parsed)
}

// headers holds the headers of a message against its schema.
func (v *validator) headers(t testing.TB, message string, headers map[string]string) error {
	t.Helper()
	m := at(t, v.doc, "components", "messages", message).(map[string]any)
	if m["headers"] == nil {
		if len(headers) > 0 {
			return fmt.Errorf("%s has headers: %v", message, headers)
		}
		return nil
	}
	s, err := v.compiler.Compile("asyncapi.json#/components/messages/" + message + "/headers")
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	for name, value := range headers {
		object[name] = value
	}
	return s.Validate(object)
}
