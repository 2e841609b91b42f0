package blr

import (
	"errors"
	"fmt"
	"slices"
)

// Merge joins posteriors that learnt different events from one prior, in natural
// parameters,
//
//	Λ = Λ₀ + Σₖ(Λₖ − Λ₀),   η = η₀ + Σₖ(ηₖ − η₀):
//
// the prior is counted once, each site once. It is associative and commutative to
// rounding, and the sequential posterior for given sites; the parts' sites, solved
// apart, differ a little from those of one run (by .01 to .02 in p for four parts,
// with equal error rates), and a Sweep over the records of all brings them
// together. Merging is right only where all parts' inputs are in one coordinate
// system: with running standardisation or experts of their own, average log-odds.
//
// The result is a new posterior; the parts stay as they are. Updates, corrections
// and log evidence are sums, the last the score of each part by itself. The error
// says how the parts do not fit: other inputs, prior or configuration. Where they
// forget, each part's sites have faded by its own count of events, and its records
// do not fit the result.
func Merge(parts ...*Posterior) (*Posterior, error) {
	if len(parts) == 0 {
		return nil, errors.New("blr: merge no posteriors")
	}
	var errs []error
	first := parts[0]
	for k, q := range parts[1:] {
		switch {
		case q.dim != first.dim:
			errs = append(errs, fmt.Errorf("blr: merge: part %d has %d inputs, part 0 has %d", k+1, q.dim, first.dim))
		case !slices.Equal(q.mean0, first.mean0) || !slices.Equal(q.precision0, first.precision0):
			errs = append(errs, fmt.Errorf("blr: merge: part %d has another prior than part 0", k+1))
		case q.site != first.site || q.refactor != first.refactor || q.halfLife != first.halfLife || q.xiStop != first.xiStop || q.block.size != first.block.size:
			errs = append(errs, fmt.Errorf("blr: merge: part %d has another site, half-life, schedule, tolerance or block than part 0", k+1))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	m := first.Clone()
	m.write()
	for _, q := range parts[1:] {
		for i, v := range q.precisionNow() {
			m.precision[i] += v
		}
		for j, τ := range q.precision0 {
			m.precision.row(m.dim, j)[0] -= τ
			m.eta[j] += q.eta[j] - float64(τ*q.mean0[j])
		}
		m.updates += q.updates
		m.corrections += q.corrections
		m.scheduled += q.scheduled
		m.repaired += q.repaired
		m.raised += q.raised
		m.logEvidence += q.logEvidence
	}
	m.scheduled++
	m.remake()
	return m, nil
}
