package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/blr"
	"hamlet/algos/internal/codec"
	"hamlet/algos/sites"
	"hamlet/algos/text"
	"hamlet/algos/trust"
)

// A model's bytes, version 7, little endian:
//
//	header, 136 bytes
//	   0  "hamletPM"
//	   8  uint32 version = 7
//	  12  uint32 number of sections = 14; 15 with judged ham, and the header then has 144 bytes
//	  16  uint64 length of each section; 0: section absent
//	 128  uint64 xxhash64 of all bytes before it
//	sections, in this order, without gaps
//	  text tables     each text expert's, in the order of the configuration
//	  vector tables   AdaGrad's and naive Bayes'; absent before the first hashed name
//	  frozen expert   its bytes as drawn in text/frozen.go, whose SHA-256 is in the configuration; absent without one
//	  seen            uint64 × keys: the duplicate window's ring, by slot
//	  last labels     the table of the last messages' labels, as drawn in package lastlabel
//	  text sites      the last events' sites, as drawn in package sites
//	  vector sites    the same
//	  text stack      stacker, second head, ensembles and their window, as drawn in package stack
//	  vector stack    the same
//	  text alarms     the alarms, as drawn in drift/monitor.go
//	  vector alarms   the same
//	  text sub-model  uint64 events | labels, as drawn in package trust | head (package blr's bytes)
//	  vector sub-model  uint64 events | labels | standardiser (8 + 16·d bytes) | head
//	  model           uint64 events | uint64 spam | uint64 unlearnt | uint64 the rings' next slots: seen, last labels
//	                  | JSON {"numerics", "config", "adopted", "sources", "left_out", "assumed"}
//	  judged ham      the tables for promises, as drawn in promise.go; not even an absent section without any
//	trailer
//	  uint64 xxhash64 of all before it
//
// Large sections of fixed size come first. Their offsets depend only on the configuration
// and on which sections and sub-models exist, so unchanged parts keep their offsets. Models are equal
// if and only if their bytes are. The bytes hold all that a model's future depends on.
const (
	magic   = "hamletPM"
	version = 7

	headerSize  = 16 + 8*sectionCount + 8 // without judged ham
	trailerSize = 8

	// mostEvents is the largest event count. Beyond, float64 counts inexactly.
	mostEvents = 1 << 53

	// mostSignedLog bounds dense inputs before standardisation: ln(1+v) of the largest
	// float64 is 709.78.
	mostSignedLog = 710
)

// The section numbers. A constant of a sub-model is the number for text; vectors have the next.
const (
	sectionTables   = 0
	sectionFrozen   = 2
	sectionSeen     = 3
	sectionLabels   = 4
	sectionSites    = 5
	sectionStack    = 7
	sectionAlarms   = 9
	sectionSubmodel = 11
	sectionModel    = 13
	sectionCount    = 14 // that every model has
	sectionJudged   = 14
)

// A sections is the bytes of each section. Empty: absent.
type sections [sectionCount + 1][]byte

// about is the JSON in the model section.
type about struct {
	Numerics string                `json:"numerics"`
	Config   Config                `json:"config"`
	Adopted  []Adoption            `json:"adopted,omitempty"`
	Sources  map[string]trust.Role `json:"sources,omitempty"`
	LeftOut  uint64                `json:"left_out,omitempty"`
	Assumed  Assumed               `json:"assumed,omitzero"`
}

func (m *Model) about() ([]byte, error) {
	return json.Marshal(about{Numerics: m.numerics, Config: m.cfg, Adopted: m.adoptions, Sources: m.roles,
		LeftOut: m.leftOut, Assumed: m.assumed})
}

// canonical reports whether text is a as json.Marshal writes it, with m's configuration and
// record.
func (a *about) canonical(text []byte, m *Model) bool {
	asRead, err1 := json.Marshal(a)
	own, err2 := m.about()
	return errors.Join(err1, err2) == nil && bytes.Equal(asRead, text) && bytes.Equal(asRead, own)
}

// AppendBinary appends m's bytes in the format above. Copying the tables takes some
// milliseconds with the default configuration. It is an error after a *PanicError.
func (m *Model) AppendBinary(dst []byte) ([]byte, error) {
	e, err := m.encode()
	if err != nil {
		return nil, err
	}
	start := len(dst)
	dst = e.appendHeader(slices.Grow(dst, e.size()))
	for s, b := range e.sections {
		for _, expert := range m.experts(s) {
			if dst, err = expert.AppendBinary(dst); err != nil {
				return nil, fmt.Errorf("model of %d events: %w", m.events, err)
			}
		}
		dst = append(dst, b...)
	}
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:])), nil
}

// WriteTo writes m's bytes in the format above, in pieces: beside m it takes the memory of what is not tables,
// 2 MB with the defaults. Predictors may run meanwhile. It is an error after a *PanicError.
func (m *Model) WriteTo(w io.Writer) (n int64, err error) {
	e, err := m.encode()
	if err != nil {
		return 0, err
	}
	err = e.each(func(piece []byte) error {
		k, err := w.Write(piece)
		n += int64(k)
		return err
	})
	return n, err
}

// An encoded is a model's bytes by section. The tables are the model's.
type encoded struct {
	model    *Model
	sections sections // empty: absent, or tables
}

// encode encodes m but for its tables.
func (m *Model) encode() (*encoded, error) {
	if m.broken != nil {
		return nil, fmt.Errorf("model of %d events: it is damaged: %w", m.events, m.broken)
	}
	e := &encoded{model: m}
	for s := range e.sections {
		var err error
		if e.sections[s], err = m.appendSection(nil, s); err != nil {
			return nil, fmt.Errorf("model of %d events: %w", m.events, err)
		}
	}
	return e, nil
}

// experts returns the experts whose tables are a section, none if it is another.
func (m *Model) experts(section int) []text.Expert {
	if k := section - sectionTables; k < int(kindCount) && m.submodels[k] != nil {
		return m.submodels[k].experts
	}
	return nil
}

// length returns the length of a section.
func (e *encoded) length(section int) int {
	if e.model.experts(section) != nil {
		return e.model.submodels[section-sectionTables].tablesSize()
	}
	return len(e.sections[section])
}

// count returns the number of sections that the header has.
func (e *encoded) count() int {
	if len(e.sections[sectionJudged]) > 0 {
		return sectionCount + 1
	}
	return sectionCount
}

// size returns the number of all bytes.
func (e *encoded) size() int {
	n := headerSize + 8*(e.count()-sectionCount) + trailerSize
	for s := range e.sections {
		n += e.length(s)
	}
	return n
}

func (e *encoded) appendHeader(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(e.count()))
	for s := range e.count() {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.length(s)))
	}
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

// pieceSize is the most bytes of a table that each makes at once.
const pieceSize = 64 << 10

// each calls do with all bytes in order, in pieces, until it returns an error. A piece is valid until do returns.
func (e *encoded) each(do func(piece []byte) error) error {
	sum := xxhash.New()
	piece := func(b []byte) error {
		if len(b) == 0 {
			return nil
		}
		_, _ = sum.Write(b)
		return do(b)
	}
	if err := piece(e.appendHeader(nil)); err != nil {
		return err
	}
	buf := make([]byte, pieceSize)
	for s, b := range e.sections {
		for _, expert := range e.model.experts(s) {
			if err := text.EachPiece(expert, buf, piece); err != nil {
				return err
			}
		}
		if err := piece(b); err != nil {
			return err
		}
	}
	return do(binary.LittleEndian.AppendUint64(nil, sum.Sum64()))
}

// appendSection appends a section, none of tables.
func (m *Model) appendSection(dst []byte, section int) ([]byte, error) {
	w := codec.NewWriter(dst)
	switch section {
	case sectionFrozen:
		if f := m.cfg.frozen; f != nil {
			dst = append(dst, f.Bytes()...)
		}
		return dst, nil
	case sectionSeen:
		return m.seen.Append(dst), nil
	case sectionLabels:
		return m.labels.Append(dst), nil
	case sectionModel:
		w.Uint64(m.events, m.spam, m.unlearnt, uint64(m.seen.Next()), uint64(m.labels.Next()))
		text, err := m.about()
		if err != nil {
			return nil, err
		}
		w.Bytes(text)
		return w.Finish()
	case sectionJudged:
		m.judged.write(w)
		return w.Finish()
	}
	for k, s := range m.submodels {
		if s == nil {
			continue
		}
		switch section - k {
		case sectionSites:
			s.sites.Write(w)
		case sectionStack:
			if s.stack != nil {
				s.stack.Write(w)
			}
		case sectionAlarms:
			if s.monitor != nil {
				s.monitor.Write(w)
			}
		case sectionSubmodel:
			s.write(w)
		}
	}
	return w.Finish()
}

// Restore returns the model with the bytes b. It does not retain b. If its Numerics are
// CurrentNumerics, the model continues bit for bit as if it had never stopped. Bytes that
// no learner wrote are an error even if their checksums are right, and never make Apply
// panic. No length in b is trusted before it is checked.
func Restore(b []byte) (*Model, error) {
	m, err := restore(b)
	if err != nil {
		return nil, fmt.Errorf("restore model from %d bytes: %w", len(b), err)
	}
	return m, nil
}

func restore(b []byte) (*Model, error) {
	section, err := split(b)
	if err != nil {
		return nil, err
	}
	return made(&section, nil)
}

// made returns the model of the sections. If it is a copy of another model, the tables are that one's, and so is the
// frozen expert.
func made(section *sections, of *Model) (*Model, error) {
	r := codec.NewReader(section[sectionModel], nil)
	var events, spam, unlearnt, next, nextLabel uint64
	r.Uint64To(&events, &spam, &unlearnt, &next, &nextLabel)
	text := r.Rest()
	if r.Err() != nil {
		return nil, fmt.Errorf("its counts: %w", r.Err())
	}
	var a about
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil {
		return nil, fmt.Errorf("its configuration: %w", err)
	}
	cfg := a.Config
	if of != nil {
		cfg = cfg.WithFrozen(of.cfg.frozen)
	} else {
		var err error
		if cfg, err = cfg.restoreFrozen(section[sectionFrozen]); err != nil {
			return nil, err
		}
	}
	m, err := New(cfg)
	if err != nil {
		return nil, fmt.Errorf("its configuration: %w", err)
	}
	m.numerics, m.adoptions, m.roles = a.Numerics, a.Adopted, a.Sources
	if len(m.roles) > MostRoles {
		return nil, fmt.Errorf("roles of %d sources, more than %d", len(m.roles), MostRoles)
	}
	for source, role := range m.roles {
		if role == trust.Ordinary || role > trust.Muted || len(source) > mostSourceName {
			return nil, errors.New("a source has a role that cannot be set")
		}
	}
	m.events, m.spam, m.unlearnt, m.leftOut, m.assumed = events, spam, unlearnt, a.LeftOut, a.Assumed
	if !a.canonical(text, m) {
		return nil, errors.New("its configuration is not in canonical form")
	}
	if err := m.seen.Restore(section[sectionSeen], next); err != nil {
		return nil, err
	}
	if err := m.labels.Restore(section[sectionLabels], nextLabel); err != nil {
		return nil, err
	}

	learnt := uint64(0)
	for k, spec := range m.specs {
		var tables *submodel
		if of != nil {
			tables = of.submodels[k]
		}
		s, err := restoreSubmodel(section, spec, m.cfg.Alarms, tables)
		if err != nil {
			return nil, fmt.Errorf("%s sub-model: %w", bodies[k], err)
		}
		if m.submodels[k] = s; s != nil {
			learnt += s.events
			if n := s.labels.LastAccusation(); n > m.events {
				return nil, fmt.Errorf("a source was accused at event %d of %d", n, m.events)
			}
		}
	}
	if b := section[sectionJudged]; len(b) > 0 {
		r := codec.NewReader(b, nil)
		if m.judged.read(r, learnt, m.events); r.Err() != nil {
			return nil, fmt.Errorf("judged ham: %w", r.Err())
		}
	}
	if m.events > mostEvents || m.leftOut > m.events || m.unlearnt > m.events ||
		learnt+m.unlearnt+m.leftOut != m.events || learnt > m.events || m.spam > m.events ||
		m.assumed.Spam > m.spam || m.assumed.Ham > learnt || m.spam > learnt || m.spam+m.assumed.Ham > learnt ||
		uint64(m.seen.Len()) > m.events {
		return nil, fmt.Errorf("its counts disagree: %d events, %d of them spam, "+
			"%d learnt by its sub-models, %d unlearnt, %d left out, %d known again",
			m.events, m.spam, learnt, m.unlearnt, m.leftOut, m.seen.Len())
	}
	return m, nil
}

// split checks header, lengths and checksums and returns the sections.
func split(b []byte) (section sections, err error) {
	if len(b) < headerSize+trailerSize || string(b[:8]) != magic {
		return section, errors.New("these are not a model's bytes")
	}
	v, n := binary.LittleEndian.Uint32(b[8:]), int(binary.LittleEndian.Uint32(b[12:]))
	if v != version || n != sectionCount && n != len(section) {
		return section, fmt.Errorf("version %d with %d sections; this program reads version %d with %d or %d",
			v, n, version, sectionCount, len(section))
	}
	header := headerSize + 8*(n-sectionCount)
	if len(b) < header+trailerSize || binary.LittleEndian.Uint64(b[header-8:]) != xxhash.Sum64(b[:header-8]) {
		return section, errors.New("the header's checksum is wrong")
	}
	body, trailer := b[header:len(b)-trailerSize], b[len(b)-trailerSize:]
	for s := range n {
		length := binary.LittleEndian.Uint64(b[16+8*s:])
		if length > uint64(len(body)) {
			return section, fmt.Errorf("section %d of %d bytes, %d are left", s, length, len(body))
		}
		section[s], body = body[:length], body[length:]
	}
	if n > sectionCount && len(section[sectionJudged]) == 0 {
		return section, errors.New("a section of judged ham without any")
	}
	if len(body) > 0 {
		return section, fmt.Errorf("%d bytes belong to no section", len(body))
	}
	if binary.LittleEndian.Uint64(trailer) != xxhash.Sum64(b[:len(b)-trailerSize]) {
		return section, errors.New("the checksum is wrong")
	}
	return section, nil
}

// restoreSubmodel reads a sub-model, nil if absent. It shares tables with the sub-model of which it is a copy, if
// there is one. It checks lengths before it allocates.
func restoreSubmodel(section *sections, spec *spec, a Alarms, of *submodel) (*submodel, error) {
	part := func(first int) []byte { return section[first+int(spec.kind)] }
	if len(part(sectionSubmodel)) == 0 {
		if len(part(sectionTables))+len(part(sectionSites))+len(part(sectionStack))+len(part(sectionAlarms)) > 0 {
			return nil, errors.New("tables, sites, stack or alarms of a sub-model that is absent")
		}
		return nil, nil
	}
	s := &submodel{spec: spec, labels: new(trust.Labels), head: new(blr.Posterior), columns: spec.newColumns()}
	r := codec.NewReader(part(sectionSites), nil)
	s.sites, s.counted = sites.Read(r, spec.shape()), make([]float64, spec.shape().Counters)
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("sites: %w", err)
	}
	r = codec.NewReader(part(sectionSubmodel), nil)
	if s.read(r); r.Err() != nil {
		return nil, r.Err()
	}
	if n := s.sites.Len(); uint64(n) != min(s.events, sites.Window) {
		return nil, fmt.Errorf("%d sites of %d events", n, s.events)
	}
	if of != nil {
		s.experts, s.tables, s.copies = of.experts, of.tables, of.copies
	} else if err := s.restoreExperts(part(sectionTables)); err != nil {
		return nil, err
	}
	// The head has been read and checked, so other heads of its size can be allocated.
	var stacker, second *blr.Posterior
	r = codec.NewReader(part(sectionStack), nil)
	if s.stack = spec.newStack(); s.stack != nil {
		s.stack.Read(r, s.events)
		stacker, second = s.stack.Stacker(), s.stack.Second()
	}
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("stack: %w", err)
	}
	r = codec.NewReader(part(sectionAlarms), nil)
	if s.monitor = spec.newMonitor(a); s.monitor != nil {
		s.monitor.Read(r, s.events)
	}
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("alarms: %w", err)
	}
	if err := s.sites.Check(s.head, stacker, second); err != nil {
		return nil, fmt.Errorf("sites: %w", err)
	}
	return s, nil
}

// write appends events, labels, columns and head.
func (s *submodel) write(w *codec.Writer) {
	w.Uint64(s.events)
	s.labels.Write(w)
	if s.columns != nil {
		w.Append(s.columns)
	}
	w.Append(s.head)
}

// read reads what write wrote, and checks it.
func (s *submodel) read(r *codec.Reader) {
	s.events = r.Uint64()
	if s.events == 0 {
		r.Fail("it has no events; the first event creates a sub-model")
	}
	s.labels.Read(r, s.events)
	if s.columns != nil {
		r.Unmarshal(r.Bytes(uint64(s.columns.Size())), s.columns)
		if err := s.columns.Check(s.events, mostSignedLog); err != nil {
			r.Fail("%w", err)
		}
	}
	r.Unmarshal(r.Rest(), s.head)
	if r.Err() != nil {
		return
	}
	if s.head.Dim() != s.layout.dim() { // checked before newHead allocates
		r.Fail("a head of %d inputs, want %d", s.head.Dim(), s.layout.dim())
		return
	}
	if err := s.head.CheckAs(s.newHead(s.headSpec.Site, float64(s.headSpec.HalfLife))); err != nil {
		r.Fail("%w", err)
	}
	if s.head.Updates() != s.events {
		r.Fail("head of %d events, its sub-model learnt %d", s.head.Updates(), s.events)
	}
}

// restoreExperts reads the experts' tables. Vectors have none before the first hashed name.
func (s *submodel) restoreExperts(tables []byte) error {
	if s.kind == ofVector && len(tables) == 0 {
		return nil
	}
	if len(tables) != s.tablesSize() {
		return fmt.Errorf("tables of %d bytes, want %d", len(tables), s.tablesSize())
	}
	s.newExperts()
	r := codec.NewReader(tables, nil)
	for k, e := range s.experts {
		r.Unmarshal(r.Bytes(uint64(s.expertSize(k))), e)
	}
	return r.Close()
}
