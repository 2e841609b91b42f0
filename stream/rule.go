package stream

import (
	"fmt"
	"math"
)

// A Rule says by which rule a scorer turned a probability into a verdict. A verdict by the scorer's own fixed
// thresholds has none.
//
//	{"by": "budget", "lose_at_most": 0.001, "spam_at": 0.962, "ham": 4120, "lost": 1}
//	{"by": "not-yet", "lose_at_most": 0.001, "spam_at": 0.9, "ham": 1800, "missing": 1204}
//	{"by": "cost", "cost": 50, "spam_at": 0.98}
type Rule struct {
	By RuleName `json:"by"`

	LoseAtMost float64 `json:"lose_at_most,omitempty"` // the budget: a share of all ham
	Cost       float64 `json:"cost,omitempty"`         // what a lost ham costs, in missed spams

	// SpamAt is the probability from which the answer is spam; 0: nothing is. What stands in for a budget, and
	// a fixed rule, want the interval above ½ too.
	SpamAt float64 `json:"spam_at,omitempty"`

	// Of a budget, weighed as in package promise: the judged ham that it rests on, and that at or above the
	// threshold which its table allows. SpamAt may be higher: it is at least ½, and what stands in may be stricter.
	// Missing is the least number of further ham until something can be promised; 0 also where no number is enough.
	Ham     float64 `json:"ham,omitempty"`
	Lost    float64 `json:"lost,omitempty"`
	Missing float64 `json:"missing,omitempty"`
}

// A RuleName is a rule in a word.
type RuleName string

const (
	RuleFixed     RuleName = "fixed"     // a fixed threshold
	RuleCost      RuleName = "cost"      // what a lost ham costs
	RuleBudget    RuleName = "budget"    // the threshold keeps the promise of a budget
	RuleNotYet    RuleName = "not-yet"   // there is not enough ham for a promise: something stands in
	RuleBroken    RuleName = "broken"    // there is ham enough, and no threshold keeps the budget: nothing is spam
	RuleWithdrawn RuleName = "withdrawn" // the promise does not hold while an incident is raised: something stands in
)

// numbers returns the numbers of a rule, in the order of their names in JSON.
func (r *Rule) numbers() [6]ruleNumber {
	return [...]ruleNumber{
		{"lose_at_most", &r.LoseAtMost}, {"cost", &r.Cost}, {"spam_at", &r.SpamAt},
		{"ham", &r.Ham}, {"lost", &r.Lost}, {"missing", &r.Missing},
	}
}

type ruleNumber struct {
	name  string
	value *float64
}

// appendJSON appends what json.Marshal makes of r.
func (r *Rule) appendJSON(dst []byte) ([]byte, error) {
	dst = appendJSONString(append(dst, `{"by":`...), string(r.By))
	for _, n := range r.numbers() {
		switch f := *n.value; {
		case math.IsNaN(f) || math.IsInf(f, 0):
			return dst, fmt.Errorf("rule in JSON: %s is %v, not a finite number", n.name, f)
		case f != 0:
			dst = append(append(append(dst, `,"`...), n.name...), `":`...)
			dst = appendJSONFloat(dst, f)
		}
	}
	return append(dst, '}'), nil
}

// rule reads a rule.
func (s *jsonScanner) rule(r *Rule) bool {
	numbers := r.numbers()
	return s.object(func(name []byte) (ok bool) {
		if string(name) == "by" {
			var by string
			by, ok = s.text()
			r.By = RuleName(by)
			return ok
		}
		for _, n := range numbers {
			if n.name == string(name) {
				*n.value, ok = s.number()
				return ok
			}
		}
		return false
	})
}
