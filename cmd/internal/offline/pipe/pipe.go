// Package pipe is `hamlet pipe`: one model behind standard input and output, for programs
// in other languages. It learns and answers as the services do, without a broker:
//
//	{"op": "learn", "events": [{"label": "spam", "text": "You won a prize"}]}
//	{"effects": [{"id": "#1", "p": 0.5, …}]}
//	{"op": "score", "events": [{"text": "You won"}]}
//	{"answers": [{"p": 0.93, "log_odds": 2.6, "interval": [0.41, 0.99]}]}
//
// A request is an object on one line, and so is its reply. A request that is wrong gets
// {"error": "…"} and changes nothing; the others are still answered. The table operations
// lists all requests.
//
// # Events
//
// They are those of the wire in JSON (package stream), reduced as ingest reduces them.
// With the same ids the same events make the same bytes as hamlet eval does. An event
// without an id gets "#N", where N is the model's count of events with it. No other id may
// start with "#".
//
// # Bounds
//
// A line is at most 256 MiB, and one line is read ahead. The process holds one model. Its bytes
// travel several times as fast in a file as in a line.
package pipe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/wholefile"
	"hamlet/cmd/internal/service/wire"
	"hamlet/cmd/internal/show/jsonlines"
	"hamlet/stream"
)

// Serve answers the requests of r on w: see [jsonlines.Serve]. What a rebuild of an ensemble
// met goes to warn.
func Serve(ctx context.Context, r io.Reader, w io.Writer, warn func(error)) error {
	s := &session{warn: warn}
	return jsonlines.Serve(ctx, r, w, s.answer)
}

// A session is a conversation about one model. Only the goroutine of Serve uses it.
type session struct {
	model     *model.Model // nil until "new" or "load"
	predictor *model.Predictor
	warn      func(error)
}

// An operation is a kind of request.
type operation struct {
	name    string
	fields  []string // beside op; those with a ? may be left out
	replies string   // for the help
	answer  func(s *session, ctx context.Context, q *request) (any, error)
}

// operations are all operations. All but new and load need a model.
var operations = []operation{
	{"new", []string{"config?"}, "what info replies", (*session).create},
	{"load", []string{"bytes?", "file?"}, "what info replies", (*session).load},
	{"learn", []string{"events"}, "effects: p before it was learnt, …", (*session).learn},
	{"score", []string{"events", "level?"}, "answers: p, log_odds, interval", (*session).score},
	{"explain", []string{"events", "level?", "words?"}, "answers, with reasons and words", (*session).explain},
	{"info", nil, "events, spam, config, incidents, …", (*session).info},
	{"save", []string{"file?"}, "sha256, and bytes unless in a file", (*session).save},
}

func operationOf(name string) (operation, error) {
	var names []string
	for _, o := range operations {
		if o.name == name {
			return o, nil
		}
		names = append(names, o.name)
	}
	return operation{}, fmt.Errorf("op: %q is not one of %s", name, strings.Join(names, ", "))
}

// A request holds the fields that were given, and the defaults of the others.
type request struct {
	Config json.RawMessage // of a model; nil: the defaults
	Bytes  []byte          // of a model; nil: not given
	File   string          // with a model's bytes; "": not given
	Events []json.RawMessage
	Level  float64 // of the interval
	Words  int     // that an explanation shows
}

func (s *session) answer(ctx context.Context, line []byte) ([]byte, error) {
	o, q, err := decode(line)
	if err != nil {
		return nil, err
	}
	if s.model == nil && o.name != "new" && o.name != "load" {
		return nil, fmt.Errorf("%s: there is no model yet: new or load comes first", o.name)
	}
	reply, err := o.answer(s, ctx, q)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	b, err := json.Marshal(reply)
	if err != nil {
		return nil, fmt.Errorf("%s: the reply in JSON: %w", o.name, err)
	}
	return b, nil
}

// decode reads a request and checks which fields it has.
func decode(line []byte) (o operation, q *request, err error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(line, &given); err != nil {
		return o, nil, fmt.Errorf("not an object in JSON: %w", err)
	}
	var op string
	if err := field(given, "op", &op); err != nil {
		return o, nil, err
	}
	if o, err = operationOf(op); err != nil {
		return o, nil, err
	}
	q = &request{Level: defaultLevel, Words: defaultWords}
	into := map[string]any{"config": &q.Config, "bytes": &q.Bytes, "file": &q.File, "events": &q.Events, "level": &q.Level,
		"words": &q.Words}
	delete(given, "op")
	for _, name := range o.fields {
		name, optional := strings.CutSuffix(name, "?")
		if _, ok := given[name]; ok || !optional {
			err = errors.Join(err, field(given, name, into[name]))
		}
		delete(given, name)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		err = errors.Join(err, fmt.Errorf("there is no field %q", name))
	}
	if err != nil {
		return o, nil, fmt.Errorf("%s: %w", op, oneLine(err))
	}
	return o, q, nil
}

func field(given map[string]json.RawMessage, name string, dst any) error {
	text, ok := given[name]
	if !ok || string(text) == "null" {
		return fmt.Errorf("%s: missing", name)
	}
	if err := json.Unmarshal(text, dst); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// oneLine joins the lines of an error with semicolons.
func oneLine(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// create makes a new model in the place of any other.
func (s *session) create(_ context.Context, q *request) (any, error) {
	var cfg model.Config
	if q.Config != nil {
		d := json.NewDecoder(strings.NewReader(string(q.Config)))
		d.DisallowUnknownFields()
		if err := d.Decode(&cfg); err != nil {
			return nil, fmt.Errorf("config: %w; hamlet eval --keys lists the keys", err)
		}
	}
	m, err := model.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("config: %w", oneLine(err))
	}
	return s.hold(m), nil
}

// load takes the model with these bytes, or with those of the file, in the place of any other.
func (s *session) load(_ context.Context, q *request) (any, error) {
	b, from := q.Bytes, "bytes"
	if (q.Bytes == nil) == (q.File == "") {
		return nil, errors.New("one of bytes and file is wanted")
	}
	if q.File != "" {
		var err error
		if b, err = os.ReadFile(q.File); err != nil {
			return nil, fmt.Errorf("file: %w", err)
		}
		from = "file"
	}
	m, err := model.Restore(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if numerics := model.CurrentNumerics(); m.Numerics() != numerics {
		return nil, fmt.Errorf("%s: the model has numerics %s, this program has %s: learn its events again",
			from, m.Numerics(), numerics)
	}
	return s.hold(m), nil
}

func (s *session) hold(m *model.Model) any {
	s.model, s.predictor = m, m.NewPredictor()
	return s.state()
}

// A saved is the reply to save.
type saved struct {
	Bytes  []byte `json:"bytes,omitempty"` // unless a file has them
	SHA256 string `json:"sha256"`
}

func (s *session) save(_ context.Context, q *request) (any, error) {
	b, err := s.model.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	out := saved{Bytes: b, SHA256: hex.EncodeToString(sum[:])}
	if q.File != "" {
		err := wholefile.Write(q.File, func(w io.Writer) error {
			_, err := w.Write(b)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("file: %w", err)
		}
		out.Bytes = nil
	}
	return out, nil
}

// A state is the reply to new, load and info.
type state struct {
	Events    uint64                `json:"events"`
	Spam      uint64                `json:"spam"`
	FlipRate  float64               `json:"flip_rate"` // of the labels; before the first event 0.1
	Numerics  string                `json:"numerics"`
	Config    json.RawMessage       `json:"config"` // every key of it
	Incidents []stream.OpenIncident `json:"incidents"`
}

func (s *session) info(context.Context, *request) (any, error) { return s.state(), nil }

func (s *session) state() state {
	m := s.model
	out := state{
		Events: m.Events(), Spam: m.Spam(), FlipRate: m.Epsilon(), Numerics: m.Numerics(),
		Config: m.Config().JSON(), Incidents: []stream.OpenIncident{},
	}
	for _, i := range m.Incidents() {
		out.Incidents = append(out.Incidents, wire.Incident(stream.DefaultName, &i))
	}
	return out
}
