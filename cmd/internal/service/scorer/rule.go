package scorer

import (
	"cmp"
	"context"
	"math"
	"slices"

	"hamlet/algos/model"
	"hamlet/algos/promise"
	"hamlet/cmd/internal/service/strictness"
	"hamlet/stream"
)

// Tenants say by which rule mail of a tenant is called spam. [*gateway.Tenants] are some.
type Tenants interface {
	Strictness() strictness.Rules
	Watch(ctx context.Context) error // reads them again when they change, until ctx ends
}

// rules are what turns probabilities into verdicts.
//
// A tenant that [Tenants] name has that rule, and a budget is read off the tenant's own table of judged ham. All
// others have the scorer's own rule. Its budget is read off the table of all tenants: tables of their own would
// keep many small tenants at "not yet" for ever.
//
// While a budget cannot be promised, what stands in is the fixed thresholds, or nothing is called spam. A promise
// is withdrawn while one of the incidents in changed is raised in the served model. Then spam must reach both the
// fixed threshold and that of the budget: else an incident would make a scorer laxer. A budget is broken when there
// is ham enough, but no threshold keeps it. Then nothing is called spam: what is lost makes no scorer laxer.
type rules struct {
	fixed   ruling // the scorer's fixed thresholds
	never   bool   // nothing is called spam in the place of a promise
	budget  strictness.Share
	tenants Tenants // nil: none has a rule of its own
}

func newRules(cfg *Config) *rules {
	return &rules{
		fixed: ruling{spamAt: cfg.SpamAt, hamAt: cfg.HamAt},
		never: cfg.NeverUntilPromised, budget: cfg.LoseAtMost, tenants: cfg.Tenants,
	}
}

// ofTenants returns the rules of tenants that have their own. All of one request are answered by the same ones.
func (r *rules) ofTenants() strictness.Rules {
	if r.tenants == nil {
		return nil
	}
	return r.tenants.Strictness()
}

// changed are the incidents that withdraw promises: ham may have got worse. A source that is accused is not among
// them. Anybody who has a name for labels could withdraw the promise by it.
var changed = []string{stream.AlertConcept, stream.AlertCovariate, stream.AlertLabelNoise}

// withdraws reports whether one of the incidents withdraws promises.
func withdraws(open []stream.OpenIncident) bool {
	return slices.ContainsFunc(open, func(i stream.OpenIncident) bool {
		return i.State == stream.AlertRaised && slices.Contains(changed, i.Kind)
	})
}

// A ruling is a rule as it stands in one snapshot. It does not change.
type ruling struct {
	told *stream.Rule // nil: the scorer's fixed thresholds

	spamAt, hamAt float64 // probabilities
	byLogOdds     bool    // it is spam from logOdds on, whatever the interval
	logOdds       float64
	never         bool // nothing is spam

	bound promise.Bound // of a budget
}

// decide returns the verdict of an answer, and its margin. Where nothing is called spam the margin is that of the fixed
// thresholds, below 0.
func (r *ruling) decide(p, logOdds, lo float64) (d stream.Decision, margin float64) {
	if !r.byLogOdds {
		if d = stream.Decide(p, lo, r.spamAt, r.hamAt); r.never && d == stream.DecideSpam {
			d = stream.DecideUnsure
		}
		return d, stream.Margin(logOdds, lo, r.spamAt, d)
	}
	switch {
	case logOdds >= r.logOdds:
		d = stream.DecideSpam
	case p <= r.hamAt:
		d = stream.DecideHam
	default:
		d = stream.DecideUnsure
	}
	return d, stream.MarginTo(logOdds, r.logOdds, d)
}

// A ruled is what a ruling of a snapshot is of.
type ruled struct {
	tenant string // "": all that have no rule of their own
	rule   strictness.Rule
}

// of returns the ruling for a tenant in s. tenants is what ofTenants returned. A ruling is computed once a
// snapshot, which takes some 10 µs, and to find it takes no lock.
func (r *rules) of(s *snapshot, tenants strictness.Rules, tenant string) *ruling {
	key := ruled{rule: strictness.Rule{LoseAtMost: r.budget}}
	tenant = cmp.Or(tenant, stream.DefaultName)
	if own, ok := tenants[tenant]; ok {
		key = ruled{tenant, own}
	} else if r.budget == 0 {
		return &r.fixed
	}
	if known, ok := s.rulings.Load(key); ok {
		return known.(*ruling)
	}
	made, _ := s.rulings.LoadOrStore(key, r.make(s, key))
	return made.(*ruling)
}

// make computes a ruling.
func (r *rules) make(s *snapshot, of ruled) *ruling {
	rule, made := of.rule, r.fixed
	made.hamAt = cmp.Or(rule.HamAt, made.hamAt)
	told := stream.Rule{By: stream.RuleFixed}
	switch {
	case rule.LoseAtMost > 0:
		table := s.model.PromiseAll()
		if of.tenant != "" {
			table = s.model.Promise(of.tenant)
		}
		made.bound = table.Threshold(float64(rule.LoseAtMost))
		told.By = r.keep(&made, s.withdrawn)
		told.LoseAtMost, told.Ham = float64(rule.LoseAtMost), made.bound.Ham
		told.Lost = made.bound.Lost
		if !math.IsInf(made.bound.Missing, 1) { // there is no such number in JSON
			told.Missing = made.bound.Missing
		}
	case rule.Cost > 0: // the expected cost of "spam" is the smaller one from p = c/(1+c) on
		made.byLogOdds, made.logOdds, made.spamAt = true, math.Log(rule.Cost), rule.Cost/(1+rule.Cost)
		told.By, told.Cost = stream.RuleCost, rule.Cost
	default:
		made.spamAt = rule.SpamAt
	}
	made.hamAt = min(made.hamAt, made.spamAt)
	if !made.never {
		told.SpamAt = made.spamAt
	}
	made.told = &told
	return &made
}

// keep makes the promise of made's bound decide, or what stands in for it.
//
// What is more likely ham than spam is not called spam, however large a budget: to call it so costs ham and saves
// nothing. The interval has no say in a promise, which is about all ham: it could only let more spam pass.
func (r *rules) keep(made *ruling, withdrawn bool) stream.RuleName {
	threshold := max(made.bound.LogOdds, 0)
	switch {
	case made.bound.Broken:
		made.never = true
		return stream.RuleBroken
	case !made.bound.Promised():
		made.never = r.never
		return stream.RuleNotYet
	case withdrawn:
		made.never = r.never
		made.spamAt = max(made.spamAt, probability(threshold))
		return stream.RuleWithdrawn
	}
	made.byLogOdds, made.logOdds, made.spamAt = true, threshold, probability(threshold)
	return stream.RuleBudget
}

func probability(logOdds float64) float64 { return 1 / (1 + math.Exp(-logOdds)) }

// mostBudgets bounds the series of metrics: no more tenants have a table.
const mostBudgets = model.MostPromises + 1

// budgets returns the rulings of all budgets in s by tenant, that of the scorer itself as "".
func (r *rules) budgets(s *snapshot) map[string]*ruling {
	all, tenants := map[string]*ruling{}, r.ofTenants()
	if r.budget > 0 {
		all[""] = r.of(s, nil, "")
	}
	for name, rule := range tenants {
		if rule.LoseAtMost > 0 && len(all) < mostBudgets {
			all[name] = r.of(s, tenants, name)
		}
	}
	return all
}
