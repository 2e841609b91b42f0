// Laboratory: the join of posteriors that learnt different events.

package blr

import (
	"errors"
	"fmt"
)

// Merge joins posteriors that learnt different events from one prior,
//
//	Λ = Λ₀ + Σₖ(Λₖ − Λ₀),   η = η₀ + Σₖ(ηₖ − η₀):
//
// the prior counts once, each site once. With equal sites it is the sequential posterior
// to rounding. Sites solved separately change p by .01 to .02 for four parts, but not the
// error rate; a Sweep over all records removes the difference. Merge only parts with the
// same input coordinates. If parts have their own standardisation or experts, average
// their log-odds instead.
//
// The parts stay as they are. Updates, corrections and log evidence are sums. The error
// says which configurations differ. With a half-life each part's sites have faded by its
// own count of events, and its records do not fit the result.
func Merge(parts ...*Posterior) (*Posterior, error) {
	if len(parts) == 0 {
		return nil, errors.New("blr: merge no posteriors")
	}
	first := parts[0]
	for k, q := range parts[1:] {
		if !q.Alike(first) {
			return nil, fmt.Errorf("blr: merge: part %d and part 0 differ in inputs, prior, site, half-life, schedule, tolerance or block", k+1)
		}
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
