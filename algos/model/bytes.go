package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/blr"
	"hamlet/algos/feature"
	"hamlet/algos/internal/codec"
	"hamlet/algos/text"
	"hamlet/algos/trust"
)

// A model's bytes, version 4, little endian:
//
//	header, 120 bytes
//	   0  "hamletPM"
//	   8  uint32 version = 4
//	  12  uint32 number of sections = 12
//	  16  uint64 length of each section; 0: there is none
//	 112  uint64 xxhash64 of bytes 0 to 111
//	sections, in this order, without gaps
//	  text tables     each text expert's, in the order of the configuration
//	  vector tables   AdaGrad's and naive Bayes'; none before the first hashed name
//	  seen            uint64 × keys: the duplicate window's ring, by slot
//	  text sites      the last events' sites, as drawn in sites.go
//	  vector sites    the same
//	  text stack      stacker, second head, ensembles and their window, as drawn in stack.go
//	  vector stack    the same
//	  text watch      the alarms, as drawn in drift/monitor.go
//	  vector watch    the same
//	  text half       uint64 events | labels, as drawn in package trust | head (package blr's bytes)
//	  vector half     uint64 events | labels | standardiser (8 + 16·d bytes) | head
//	  model           uint64 events | uint64 spam | uint64 unlearnt | uint64 the ring's next slot
//	                  | JSON {"numerics", "config", "adopted"}
//	trailer
//	  uint64 xxhash64 of all before it
//
// What is large and of fixed size comes first, at offsets that depend on the
// configuration and on which halves there are, so that parts that have not
// changed keep their place. Equal models have equal bytes and the reverse; all
// that a model's future depends on is in them.
const (
	magic   = "hamletPM"
	version = 4

	aboutOffset = 32 // in the model's section
	headerSize  = 16 + 8*sectionCount + 8
	trailerSize = 8

	// mostEvents is the end of the clock: beyond, counts are no longer exact in float64.
	mostEvents = 1 << 53

	// mostSignedLog bounds dense inputs before they are standardised: ln(1+v) of the
	// largest float64 is 709.78.
	mostSignedLog = 710
)

const (
	sectionTextTables = iota
	sectionVectorTables
	sectionSeen
	sectionTextSites
	sectionVectorSites
	sectionTextStack
	sectionVectorStack
	sectionTextWatch
	sectionVectorWatch
	sectionTextHalf
	sectionVectorHalf
	sectionModel
	sectionCount
)

// about is the part of the bytes that is text.
type about struct {
	Numerics string     `json:"numerics"`
	Config   Config     `json:"config"`
	Adopted  []Adoption `json:"adopted,omitempty"`
}

// AppendBinary appends m's bytes, as drawn above. It costs a copy of the tables:
// some milliseconds by default.
func (m *Model) AppendBinary(dst []byte) ([]byte, error) {
	start := len(dst)
	dst = append(dst, make([]byte, headerSize)...)
	var length [sectionCount]int
	for s := range sectionCount {
		at := len(dst)
		var err error
		if dst, err = m.appendSection(dst, s); err != nil {
			return nil, fmt.Errorf("model of %d events: %w", m.events, err)
		}
		length[s] = len(dst) - at
	}

	header := append(dst[start:start], magic...)
	header = binary.LittleEndian.AppendUint32(header, version)
	header = binary.LittleEndian.AppendUint32(header, sectionCount)
	for _, n := range length {
		header = binary.LittleEndian.AppendUint64(header, uint64(n))
	}
	binary.LittleEndian.AppendUint64(header, xxhash.Sum64(header))
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:])), nil
}

func (m *Model) appendSection(dst []byte, section int) ([]byte, error) {
	switch section {
	case sectionTextTables:
		return m.text.appendTables(dst)
	case sectionVectorTables:
		return m.vector.appendTables(dst)
	case sectionSeen:
		return m.seen.Append(dst), nil
	case sectionTextSites:
		return m.text.appendSites(dst), nil
	case sectionVectorSites:
		return m.vector.appendSites(dst), nil
	case sectionTextStack:
		return m.text.appendStack(dst)
	case sectionVectorStack:
		return m.vector.appendStack(dst)
	case sectionTextWatch:
		return m.text.appendWatch(dst)
	case sectionVectorWatch:
		return m.vector.appendWatch(dst)
	case sectionTextHalf:
		return m.text.append(dst)
	case sectionVectorHalf:
		return m.vector.append(dst)
	case sectionModel:
		dst = binary.LittleEndian.AppendUint64(dst, m.events)
		dst = binary.LittleEndian.AppendUint64(dst, m.spam)
		dst = binary.LittleEndian.AppendUint64(dst, m.unlearnt)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(m.seen.Next()))
		text, err := json.Marshal(about{Numerics: m.numerics, Config: m.cfg, Adopted: m.adoptions})
		return append(dst, text...), err
	}
	panic("model: no such section")
}

func (h *half) appendTables(dst []byte) (_ []byte, err error) {
	if h == nil {
		return dst, nil
	}
	for _, e := range h.experts {
		if dst, err = e.AppendBinary(dst); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func (h *half) appendSites(dst []byte) []byte {
	if h == nil {
		return dst
	}
	return h.sites.append(dst)
}

func (h *half) appendStack(dst []byte) ([]byte, error) {
	if h == nil || h.stack == nil {
		return dst, nil
	}
	return h.stack.append(dst)
}

func (h *half) appendWatch(dst []byte) ([]byte, error) {
	if h == nil || h.monitor == nil {
		return dst, nil
	}
	w := codec.NewWriter(dst)
	h.monitor.Write(w)
	return w.Finish()
}

func (h *half) append(dst []byte) (_ []byte, err error) {
	if h == nil {
		return dst, nil
	}
	dst = binary.LittleEndian.AppendUint64(dst, h.events)
	w := codec.NewWriter(dst)
	h.labels.Write(w)
	if dst, err = w.Finish(); err != nil {
		return nil, err
	}
	if h.columns != nil {
		if dst, err = h.columns.AppendBinary(dst); err != nil {
			return nil, err
		}
	}
	return h.head.AppendBinary(dst)
}

// Restore returns the model that has the bytes b, of which it keeps nothing.
// Going on from it is bit-equal to never having stopped, if its Numerics are
// CurrentNumerics. Nothing is allocated for a length that b does not bear out. What
// has the right checksums is held against itself as well, so that bytes which no
// learner wrote are an error here and no panic in Apply: counts against the events of
// their half, heads by [blr.Posterior.Check].
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

	s := section[sectionModel]
	if len(s) < aboutOffset {
		return nil, errors.New("its event count is missing")
	}
	var a about
	dec := json.NewDecoder(bytes.NewReader(s[aboutOffset:]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil {
		return nil, fmt.Errorf("its configuration: %w", err)
	}
	m, err := New(a.Config)
	if err != nil {
		return nil, fmt.Errorf("its configuration: %w", err)
	}
	m.numerics, m.adoptions = a.Numerics, a.Adopted
	m.events = binary.LittleEndian.Uint64(s)
	m.spam = binary.LittleEndian.Uint64(s[8:])
	m.unlearnt = binary.LittleEndian.Uint64(s[16:])
	if canonical, err := m.appendSection(nil, sectionModel); err != nil || !bytes.Equal(canonical[aboutOffset:], s[aboutOffset:]) {
		return nil, errors.New("its configuration is not in canonical form")
	}
	if err := m.seen.Restore(section[sectionSeen], binary.LittleEndian.Uint64(s[24:])); err != nil {
		return nil, err
	}

	if m.text, err = restoreText(&section, m.cfg); err != nil {
		return nil, fmt.Errorf("text half: %w", err)
	}
	if m.vector, err = restoreVector(&section, m.cfg); err != nil {
		return nil, fmt.Errorf("vector half: %w", err)
	}

	learnt := uint64(0)
	for _, h := range []*half{m.text, m.vector} {
		if h != nil {
			learnt += h.events
		}
	}
	if m.events > mostEvents || learnt+m.unlearnt != m.events || learnt > m.events || m.spam > m.events || uint64(m.seen.Len()) > m.events {
		return nil, fmt.Errorf("its counts disagree: %d events, %d of them spam, %d learnt by its halves, %d unlearnt, %d known again",
			m.events, m.spam, learnt, m.unlearnt, m.seen.Len())
	}
	return m, nil
}

// split checks header, lengths and checksums and returns the sections.
func split(b []byte) (section [sectionCount][]byte, err error) {
	if len(b) < headerSize+trailerSize || string(b[:8]) != magic {
		return section, errors.New("these are not a model's bytes")
	}
	if v, n := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:]); v != version || n != sectionCount {
		return section, fmt.Errorf("version %d with %d sections; this program reads version %d with %d", v, n, version, sectionCount)
	}
	if binary.LittleEndian.Uint64(b[headerSize-8:]) != xxhash.Sum64(b[:headerSize-8]) {
		return section, errors.New("the header's checksum is wrong")
	}
	body, trailer := b[headerSize:len(b)-trailerSize], b[len(b)-trailerSize:]
	for s := range section {
		n := binary.LittleEndian.Uint64(b[16+8*s:])
		if n > uint64(len(body)) {
			return section, fmt.Errorf("section %d of %d bytes, %d are left", s, n, len(body))
		}
		section[s], body = body[:n], body[n:]
	}
	if len(body) > 0 {
		return section, fmt.Errorf("%d bytes belong to no section", len(body))
	}
	if binary.LittleEndian.Uint64(trailer) != xxhash.Sum64(b[:len(b)-trailerSize]) {
		return section, errors.New("the checksum is wrong")
	}
	return section, nil
}

// The sections of a half.
type halfSections struct{ half, tables, sites, stack, watch []byte }

// none reports whether there is no half, or says what there is without one.
func (s *halfSections) none() (bool, error) {
	if len(s.half) > 0 {
		return false, nil
	}
	if len(s.tables)+len(s.sites)+len(s.stack)+len(s.watch) > 0 {
		return true, errors.New("there is none, but its tables, sites, stack or watch")
	}
	return true, nil
}

// restoreText reads the text half, nil if there is none. Nothing is allocated
// before the lengths are known to be true.
func restoreText(section *[sectionCount][]byte, cfg Config) (*half, error) {
	s := halfSections{
		section[sectionTextHalf], section[sectionTextTables], section[sectionTextSites],
		section[sectionTextStack], section[sectionTextWatch],
	}
	if none, err := s.none(); none {
		return nil, err
	}
	size := 0
	for _, name := range cfg.TextExperts {
		size += textExperts[name].size(cfg.TableBits)
	}
	if len(s.tables) != size {
		return nil, fmt.Errorf("tables of %d bytes, want %d", len(s.tables), size)
	}
	before := textPrior(cfg)
	h := &half{experts: newTextExperts(cfg)}
	if err := h.restore(&s, before, cfg.TextHead, emptySites(len(before.mean), stackerInputs(cfg.TextEnsembles, cfg.SecondHead), cfg.SecondHead > 0)); err != nil {
		return nil, err
	}
	return h, h.restoreBeside(&s, cfg, before, cfg.TextHead, cfg.TextEnsembles, textMemory, textCounter(cfg))
}

// restoreVector is restoreText for the vector half.
func restoreVector(section *[sectionCount][]byte, cfg Config) (*half, error) {
	s := halfSections{
		section[sectionVectorHalf], section[sectionVectorTables], section[sectionVectorSites],
		section[sectionVectorStack], section[sectionVectorWatch],
	}
	if none, err := s.none(); none {
		return nil, err
	}
	h := &half{columns: feature.NewStandardiser(len(cfg.Dense))}
	switch size := text.AdaGradSize(cfg.TableBits) + text.NaiveBayesSize(cfg.TableBits); len(s.tables) {
	case 0:
	case size:
		h.experts = newVectorExperts(cfg)
	default:
		return nil, fmt.Errorf("tables of %d bytes, want none or %d", len(s.tables), size)
	}
	before := vectorPrior(cfg)
	if err := h.restore(&s, before, cfg.VectorHead, emptySites(len(before.mean), stackerInputs(cfg.VectorEnsembles, cfg.SecondHead), cfg.SecondHead > 0)); err != nil {
		return nil, err
	}
	return h, h.restoreBeside(&s, cfg, before, cfg.VectorHead, cfg.VectorEnsembles, vectorMemory, vectorCounter(cfg))
}

// restoreBeside reads what stands beside the head of a half that is restored else. It
// allocates heads of as many inputs as that one has.
func (h *half) restoreBeside(s *halfSections, cfg Config, before prior, head Head, ensembles []string, ρ float64, counter int) error {
	inputs := len(before.mean) - 1
	if h.stack = newStack(cfg, ensembles, before, head, inputs, ρ); h.stack != nil {
		if err := h.stack.restore(s.stack, h.events); err != nil {
			return fmt.Errorf("stack: %w", err)
		}
	} else if len(s.stack) > 0 {
		return errors.New("a stack that its configuration does not have")
	}
	h.counter = counter
	if h.monitor = newMonitor(cfg, before, inputs, counter); h.monitor != nil {
		r := codec.NewReader(s.watch, nil)
		h.monitor.Read(r, h.events)
		if err := r.Close(); err != nil {
			return fmt.Errorf("alarms: %w", err)
		}
	} else if len(s.watch) > 0 {
		return errors.New("alarms that its configuration does not have")
	}
	return h.sites.check(h.head, h.stack)
}

// restore reads a half whose experts and columns have their sizes already.
func (h *half) restore(s *halfSections, before prior, head Head, empty sites) error {
	h.sites = empty
	if err := h.sites.restore(s.sites); err != nil {
		return err
	}
	b, tables := s.half, s.tables
	if len(b) < 8 {
		return fmt.Errorf("%d bytes, want at least 8", len(b))
	}
	h.events = binary.LittleEndian.Uint64(b)
	if h.events == 0 {
		return errors.New("it has learnt nothing: there is none before its first event")
	}
	r := codec.NewReader(b[8:], nil)
	h.labels = new(trust.Labels)
	h.labels.Read(r, h.events)
	b = r.Rest()
	if r.Err() != nil {
		return fmt.Errorf("labels: %w", r.Err())
	}
	if h.columns != nil {
		n := h.columns.Size()
		if len(b) < n {
			return fmt.Errorf("standardiser of %d bytes, want %d", len(b), n)
		}
		if err := h.columns.UnmarshalBinary(b[:n]); err != nil {
			return err
		}
		if err := h.columns.Check(h.events, mostSignedLog); err != nil {
			return err
		}
		b = b[n:]
	}
	h.head = new(blr.Posterior)
	if err := h.head.UnmarshalBinary(b); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	if h.head.Dim() != len(before.mean) { // before a head of that many inputs is made to compare
		return fmt.Errorf("a head of %d inputs, want %d", h.head.Dim(), len(before.mean))
	}
	if err := h.head.CheckAs(newHead(before, head, float64(head.HalfLife))); err != nil {
		return err
	}
	if h.head.Updates() != h.events {
		return fmt.Errorf("head of %d events, its half learnt %d", h.head.Updates(), h.events)
	}
	if kept := len(h.sites.ring); uint64(kept) != min(h.events, SiteWindow) {
		return fmt.Errorf("%d sites of %d events", kept, h.events)
	}
	for _, e := range h.experts {
		n := e.Size()
		if err := e.UnmarshalBinary(tables[:n]); err != nil {
			return err
		}
		tables = tables[n:]
	}
	return nil
}
