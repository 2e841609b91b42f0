// Package tokens says who may teach what over HTTP. The operator's file has the tokens'
// hashes, and the rights of each:
//
//   - {name: abuse-desk, sha256: 2c26…, sources: [abuse-desk], tenants: [example.org], actions: [learn, unlearn]}
//   - {name: importer, sha256: fcde…, sources: ["*"], tenants: ["*"], actions: [learn, relearn], any-source: true}
//
// All rights are said; only any-source may be left out. It is the right to withdraw and to
// correct what other sources taught, and to say that a label was asked for. [New] makes a token and its line.
//
//	file, err := tokens.Open(path, log)
//	err = file.Watch(ctx)             // reads it again on SIGHUP, until ctx ends
//
//	rights, ok := file.Find(secret)   // of a request
//	err = rights.Claim(&event)        // fills in the source
package tokens

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hamlet/stream"
)

// All in place of a source or of a tenant stands for every one.
const All = "*"

// Score is the action of asking for scores, which gateways answer.
const Score = "score"

// Rights are what the holder of a token may say. They are not changed once they are made.
type Rights struct {
	Name    string   // of the token, in metrics and logs
	Sources []string // that its events may name; All: every one
	Tenants []string // that its events may name; All: every one
	Actions []string // of events, and Score
	// AnySource: Relearn, Unlearn and Correct may be about events of other sources, and a label may be said to
	// have been asked for, so that a promise to all tenants rests on it.
	AnySource bool
}

// Everything returns the rights of the operator.
func Everything(name string) *Rights {
	return &Rights{Name: name, Sources: []string{All}, Tenants: []string{All}, Actions: Actions(), AnySource: true}
}

// OfTenant returns the rights of a tenant's own token: it says everything for the tenant and
// in the source's name, and withdraws that source's events alone.
func OfTenant(tenant, source string) *Rights {
	return &Rights{Name: ByTenant, Sources: []string{source}, Tenants: []string{tenant}, Actions: Actions()}
}

// Actions returns all actions that a token may have. Only hamlet itself assumes answers.
func Actions() []string {
	all := slices.DeleteFunc(stream.Actions(), func(a string) bool { return a == stream.Assume.String() })
	return append(all, Score)
}

// A DeniedError says which right is missing.
type DeniedError struct{ Reason string }

func (e *DeniedError) Error() string { return e.Reason }

func denied(format string, args ...any) error { return &DeniedError{fmt.Sprintf(format, args...)} }

// Claim checks that the holder may say e, whose tenant is that of [Rights.Tenant] where it
// named none. A source that e does not name becomes that of a token with one source. The
// error is a *DeniedError. e must not say OwnOnly: Claim does.
func (r *Rights) Claim(e *stream.Event) error {
	if err := r.Allow(e.Action.String()); err != nil {
		return err
	}
	if !r.OfTenant(e.Tenant) {
		return denied("tenant: this token is for %s", list(r.Tenants))
	}
	if only, ok := single(r.Sources); ok && e.Source == stream.DefaultName {
		e.Source = only
	}
	if !has(r.Sources, e.Source) {
		return denied("source: this token is for %s", list(r.Sources))
	}
	if e.Sampled != (stream.Sampled{}) && !r.AnySource {
		return denied("sampled: promises rest on what was asked for, and only a token with %s may say so", keyAnySource)
	}
	e.OwnOnly = e.Action != stream.Learn && !r.AnySource
	return nil
}

// Allow returns a *DeniedError if the token is not for an action.
func (r *Rights) Allow(action string) error {
	if slices.Contains(r.Actions, action) {
		return nil
	}
	return denied("action: this token may %s, and not %s", strings.Join(r.Actions, ", "), action)
}

// OfTenant reports whether the token is for a tenant.
func (r *Rights) OfTenant(tenant string) bool { return has(r.Tenants, tenant) }

// Tenant returns the tenant of what names none: that of a token with one tenant, else the
// fallback.
func (r *Rights) Tenant(fallback string) string {
	if only, ok := single(r.Tenants); ok {
		return only
	}
	return fallback
}

func single(names []string) (string, bool) {
	if len(names) == 1 && names[0] != All {
		return names[0], true
	}
	return "", false
}

func has(names []string, name string) bool {
	return slices.Contains(names, All) || slices.Contains(names, name)
}

// list quotes the first names for an error, which the token's holder reads.
func list(names []string) string {
	const most = 5
	var quoted []string
	for _, name := range names[:min(len(names), most)] {
		quoted = append(quoted, strconv.Quote(name))
	}
	if more := len(names) - most; more > 0 {
		quoted = append(quoted, fmt.Sprintf("%d more", more))
	}
	if len(names) == 1 {
		return quoted[0] + ": leave the field out"
	}
	return strings.Join(quoted, ", ")
}
