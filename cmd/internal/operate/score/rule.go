package score

import (
	"math"
	"strings"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/strictness"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
)

// ruleText says in words which rule made a verdict, and when the verdict is spam.
func ruleText(r *stream.Rule) string {
	spam := "nothing is called spam"
	if r.SpamAt > 0 {
		spam = "spam from p = " + probability(r.SpamAt)
	}
	switch r.By {
	case stream.RuleFixed:
		return spam + ", a fixed threshold of the tenant"
	case stream.RuleCost:
		return spam + ": a lost ham is as bad as " + count(r.Cost) + " missed spams"
	case stream.RuleBudget:
		return spam + ": at most " + ofHam(r.LoseAtMost) + " is lost, by " + count(r.Ham) + " judged ham"
	case stream.RuleNotYet, stream.RuleBroken:
		text := "at most " + ofHam(r.LoseAtMost) + " is to be lost: not yet, "
		if r.By == stream.RuleBroken {
			text = "at most " + ofHam(r.LoseAtMost) + " is to be lost: too many of " + count(r.Ham) +
				" judged ham look like the surest spam, "
		}
		if r.Missing == 0 {
			return text + "and no further ham mends that: one that was rarely asked for is among the surest spam; " + spam
		}
		return text + "at least " + count(math.Ceil(r.Missing)) + " more ham whose label was asked for; until then " + spam
	case stream.RuleWithdrawn:
		return "at most " + ofHam(r.LoseAtMost) + " is to be lost: withdrawn while an incident is raised; until it ends " + spam
	}
	return spam + ", by the rule " + cli.Cell(string(r.By))
}

// ofHam writes a share of ham: 1 ham in 1,000, or 0.3% of all ham.
func ofHam(share float64) string {
	if n := math.Round(1 / share); math.Abs(n*share-1) < 1e-9 {
		return "1 ham in " + count(n)
	}
	return strictness.Share(share).String() + " of all ham"
}

// count writes a number without its fraction, and with commas between thousands.
func count(f float64) string {
	const most = 1e15
	text, _ := page.Number(int64(min(max(math.Round(f), 0), most)))
	return strings.ReplaceAll(text, "\u202f", ",")
}
