package model

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"hamlet/algos/sites"
	"hamlet/algos/trust"
)

// MostRoles is how many sources an operator can give a role other than trust.Ordinary.
const MostRoles = 256

// mostSourceName is the longest name of a source that an event has, in bytes.
const mostSourceName = 256

// SetRole says how labels of a source count from the next event on. It is part of the
// model's bytes and no event: it does not move the clock. It is a [*RefusedError] if no
// event has such a source, if there is no such role, or if MostRoles sources have one.
func (m *Model) SetRole(source string, role trust.Role) error {
	_, known := m.roles[source]
	switch {
	case role > trust.Muted:
		return &RefusedError{fmt.Sprintf("role %d is unknown", role)}
	case len(source) > mostSourceName || !utf8.ValidString(source):
		return &RefusedError{fmt.Sprintf("the name of a source has %d bytes, more than %d, or is not UTF-8",
			len(source), mostSourceName)}
	case role == trust.Ordinary:
		delete(m.roles, source)
	case !known && len(m.roles) >= MostRoles:
		return &RefusedError{fmt.Sprintf("%d sources have roles already: make some of them ordinary", MostRoles)}
	default:
		if m.roles == nil {
			m.roles = map[string]trust.Role{}
		}
		m.roles[source] = role
	}
	return nil
}

// Role returns the role of a source.
func (m *Model) Role(source string) trust.Role { return m.roles[source] }

// A Source is a source of labels of one kind of body, or one that has a role and is not
// known to have given any.
type Source struct {
	trust.Source
	Body string // BodyText or BodyVector; "": it has only a role
	Role trust.Role
}

// Sources returns the sources of labels, those with most labels first. The name of a source
// without a role is cut after 64 bytes.
func (m *Model) Sources() (all []Source) {
	names, roles := map[uint64]string{}, map[uint64]trust.Role{}
	for name, role := range m.roles {
		key := trust.SourceKey(name)
		names[key], roles[key] = name, role
	}
	for k, s := range m.submodels {
		if s == nil {
			continue
		}
		for _, from := range s.labels.Sources(roles, m.cfg.Standing == StandingAgreement) {
			if name, ok := names[from.Key]; ok {
				from.Name, from.Cut = name, false
			}
			all = append(all, Source{Source: from, Body: bodies[k], Role: roles[from.Key]})
		}
	}
	for key, name := range names {
		if !slices.ContainsFunc(all, func(s Source) bool { return s.Key == key }) {
			all = append(all, Source{Source: trust.Source{Name: name, Key: key}, Role: roles[key]})
		}
	}
	slices.SortFunc(all, func(a, b Source) int {
		return cmp.Or(cmp.Compare(b.Labels, a.Labels), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Body, b.Body))
	})
	return all
}

// MostLeftOut is how many sources [Config.WithoutSources] can name.
const MostLeftOut = 256

// LeftOut returns the number of events of [Config.WithoutSources]. They are among
// [Model.Events], so that the clock of a model without a source is that of a model with it. Only
// withdrawals of their events by other sources move it no more: they are refused.
func (m *Model) LeftOut() uint64 { return m.leftOut }

// LeavesOut reports whether the events of a source change nothing but the clock.
func (m *Model) LeavesOut(source string) bool {
	_, found := slices.BinarySearch(m.cfg.WithoutSources, source)
	return found
}

// Withdrawable returns nil if an Unlearn event could withdraw ex.Of now. If not, the error
// is a [*RefusedError] or a [*Defect], or wraps sites.ErrUnknown, ErrWithdrawn or ErrOtherBody. It
// changes nothing. ex has what the Unlearn event would have.
func (m *Model) Withdrawable(ex *Example) (err error) {
	if err := m.Check(&ex.Body); err != nil {
		return err
	}
	s := m.submodel(&ex.Body)
	if s == nil {
		return sites.ErrUnknown
	}
	defer m.own.vectorizer.defect(new(Effect), &err)
	_, err = m.find(ex, m.own.vectorizer.read(&ex.Body, s).bodyHashes().all)
	return err
}

// checkWithoutSources returns what is wrong with the names.
func (c Config) checkWithoutSources() (errs []error) {
	if n := len(c.WithoutSources); n > MostLeftOut {
		errs = append(errs, fmt.Errorf("without_sources: %d names, more than %d", n, MostLeftOut))
	}
	for _, name := range c.WithoutSources {
		if name == "" || len(name) > mostSourceName || !utf8.ValidString(name) {
			errs = append(errs, fmt.Errorf("without_sources: %s is not the name of a source", quote(name)))
		}
	}
	return errs
}

// leavesOutMore returns an error if c leaves out a source that a model with another
// configuration has learnt from.
func (c Config) leavesOutMore(model Config) error {
	for _, name := range c.WithoutSources {
		if !slices.Contains(model.WithoutSources, name) {
			return fmt.Errorf("without_sources: what source %s has taught would stay: "+
				"make a new model without it under another name", quote(name))
		}
	}
	return nil
}
