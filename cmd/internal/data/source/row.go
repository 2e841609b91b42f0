package source

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"hamlet/stream"
	"hamlet/stream/mail"
)

// parseText reads "label<TAB>text". Invalid UTF-8 becomes U+FFFD.
func (l *labelling) parseText(line []byte) (stream.Event, error) {
	name, text, ok := strings.Cut(string(line), "\t")
	if !ok {
		return stream.Event{}, errors.New("no tab: label<TAB>text is wanted")
	}
	label, err := l.of(name)
	if err != nil {
		return stream.Event{}, err
	}
	return stream.Event{Label: label, Body: stream.Body{
		Kind: stream.Text, Text: strings.ToValidUTF8(text, "\ufffd"),
	}}, nil
}

func parseLabel(s string) (stream.Label, error) {
	switch s {
	case "spam":
		return stream.Spam, nil
	case "ham":
		return stream.Ham, nil
	}
	return 0, fmt.Errorf("label: %s is neither spam nor ham", word(s))
}

// parseJSONL reads an event in JSON, and reduces a mail in it. A line with a type is a
// standing.
func parseJSONL(line []byte) (draft, error) {
	if stream.HasType(line) {
		s, err := stream.DecodeStanding(line)
		if err != nil {
			return draft{}, err
		}
		return draft{standing: &s}, nil
	}
	e, err := stream.DecodeJSON(line)
	if err != nil {
		return draft{}, err
	}
	if e.Body.Kind == stream.Mail {
		if e.Body.Mail, err = mail.Reduce(e.Body.Mail); err != nil {
			return draft{}, err
		}
	}
	return draft{event: e}, nil
}

// internedIndices bounds the stored names of svmlight's indices.
const internedIndices = 1 << 20

// svmLight reads rows of SVMlight: "label index:value … # comment". The name of a
// number is its index in decimal. A missing index means 0; fill adds it to the event if
// it is a dense input.
type svmLight struct {
	dense  []string
	labels *labelling
	names  map[uint64]string
}

func newSVMLight(dense []string, labels *labelling) *svmLight {
	return &svmLight{dense: dense, labels: labels, names: make(map[uint64]string)}
}

func (p *svmLight) parse(line []byte) (stream.Event, error) {
	row, _, _ := strings.Cut(string(line), "#")
	fields := strings.Fields(row)
	if len(fields) == 0 {
		return stream.Event{}, errSkip
	}
	e := stream.Event{Body: stream.Body{Kind: stream.Vector, Vector: make([]stream.Number, 0, len(fields)-1+len(p.dense))}}
	var err error
	if e.Label, err = p.labels.of(fields[0]); err != nil {
		return stream.Event{}, err
	}
	for _, f := range fields[1:] {
		index, value, ok := strings.Cut(f, ":")
		i, err := strconv.ParseUint(index, 10, 64)
		if !ok || err != nil {
			return stream.Event{}, fmt.Errorf("%s: index:value is wanted, the index a whole number", word(f))
		}
		v, err := parseNumber(value)
		if err != nil {
			return stream.Event{}, fmt.Errorf("index %d: %w", i, err)
		}
		e.Body.Vector = append(e.Body.Vector, stream.Number{Name: p.name(i), Value: v})
	}
	if err := stream.SortVector(e.Body.Vector); err != nil {
		return stream.Event{}, err
	}
	if len(p.dense) > 0 {
		p.fill(&e.Body)
	}
	return e, nil
}

func (p *svmLight) name(i uint64) string {
	name, ok := p.names[i]
	if !ok {
		name = strconv.FormatUint(i, 10)
		if len(p.names) < internedIndices {
			p.names[i] = name
		}
	}
	return name
}

// fill adds the dense names that the row left out.
func (p *svmLight) fill(b *stream.Body) {
	have := make(map[string]bool, len(b.Vector))
	for _, n := range b.Vector {
		have[n.Name] = true
	}
	for _, name := range p.dense {
		if !have[name] {
			have[name] = true
			b.Vector = append(b.Vector, stream.Number{Name: name})
		}
	}
	if err := stream.SortVector(b.Vector); err != nil {
		panic(err) // names are distinct
	}
}
