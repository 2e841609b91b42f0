package score

import (
	"bytes"
	"strings"
	"testing"

	"hamlet/stream"
)

// Each rule is told in words.
func TestRuleText(t *testing.T) {
	for want, r := range map[string]stream.Rule{
		"spam from p = 0.962: at most 1 ham in 1,000 is lost, by 4,120 judged ham": {
			By: stream.RuleBudget, LoseAtMost: 0.001, SpamAt: 0.962, Ham: 4120.2, Lost: 1},
		"spam from p = 0.999998: at most 0.3% of all ham is lost, by 1,234,567 judged ham": {
			By: stream.RuleBudget, LoseAtMost: 0.003, SpamAt: 0.999998, Ham: 1234567},
		"at most 1 ham in 1,000 is to be lost: not yet, at least 1,204 more ham whose label was asked for; until then spam from p = 0.900": {
			By: stream.RuleNotYet, LoseAtMost: 0.001, SpamAt: 0.9, Ham: 1800, Missing: 1203.1},
		"at most 1 ham in 100 is to be lost: not yet, at least 3 more ham whose label was asked for; until then nothing is called spam": {
			By: stream.RuleNotYet, LoseAtMost: 0.01, Missing: 3},
		"at most 1 ham in 100 is to be lost: not yet, and no further ham mends that: " +
			"one that was rarely asked for is among the surest spam; spam from p = 0.900": {
			By: stream.RuleNotYet, LoseAtMost: 0.01, SpamAt: 0.9, Ham: 20},
		"at most 1 ham in 100 is to be lost: too many of 400 judged ham look like the surest spam, " +
			"at least 134 more ham whose label was asked for; until then nothing is called spam": {
			By: stream.RuleBroken, LoseAtMost: 0.01, Ham: 400, Missing: 133.4},
		"at most 1 ham in 100 is to be lost: withdrawn while an incident is raised; until it ends spam from p = 0.950": {
			By: stream.RuleWithdrawn, LoseAtMost: 0.01, SpamAt: 0.95, Ham: 800},
		"spam from p = 0.990, a fixed threshold of the tenant":         {By: stream.RuleFixed, SpamAt: 0.99},
		"spam from p = 0.980: a lost ham is as bad as 50 missed spams": {By: stream.RuleCost, Cost: 50, SpamAt: 50. / 51},
		"spam from p = 0.990, by the rule later\ufffd":                 {By: "later\x1b", SpamAt: 0.99},
	} {
		if got := ruleText(&r); got != want {
			t.Errorf("%+v:\ngot  %s\nwant %s", r, got, want)
		}
	}
}

// A rule is printed below the first verdict that it made, and not again until another one has decided.
func TestRuleIsPrintedOnce(t *testing.T) {
	var out bytes.Buffer
	p := &printer{out: &out, err: &out}
	budget, cost := &stream.Rule{By: stream.RuleBudget, LoseAtMost: 0.01, SpamAt: 0.9}, &stream.Rule{By: stream.RuleCost, Cost: 9, SpamAt: 0.9}
	for _, r := range []*stream.Rule{nil, budget, budget, cost, nil, cost} {
		if err := p.verdict("place", stream.Verdict{Decision: stream.DecideHam, Rule: r}); err != nil {
			t.Fatal(err)
		}
	}
	const v, b, c = "verdict", "budget", "cost"
	var got []string
	for line := range strings.Lines(out.String()) {
		switch {
		case strings.HasSuffix(line, "place\n"):
			got = append(got, v)
		case strings.Contains(line, "at most 1 ham in 100 is lost"):
			got = append(got, b)
		case strings.Contains(line, "as bad as 9 missed spams"):
			got = append(got, c)
		}
	}
	if want := []string{v, v, b, v, v, c, v, v, c}; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("printed %v, want %v:\n%s", got, want, &out)
	}
}
