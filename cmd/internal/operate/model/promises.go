package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"hamlet/algos/model"
	"hamlet/algos/promise"
)

// shownBudgets are the budgets whose thresholds are shown.
var shownBudgets = [...]float64{0.001, 0.002, 0.005, 0.01}

// A Judged is what a model's table of judged ham says of some budgets.
type Judged struct {
	Tenant   string   `json:"tenant,omitempty"` // the first 16 digits of the SHA-256 of its name; empty: of all
	Began    uint64   `json:"began,omitempty"`  // the event with which the tenant's table began
	Ham      float64  `json:"ham"`              // sum of weights
	Eras     uint64   `json:"eras,omitempty"`   // how often the table was halved
	Promises []Budget `json:"promises"`
}

// A Budget is a share of ham that may be lost, and what has to be so that it is not exceeded.
type Budget struct {
	Budget   float64  `json:"budget"`
	P        *float64 `json:"p,omitempty"`        // what has this probability or more may be called spam; nil: not yet
	LogOdds  *float64 `json:"log_odds,omitempty"` // the same
	Missing  float64  `json:"missing,omitempty"`  // so many ham at least until something can be promised; 0 where no number is enough
	promised bool
}

// judgedHam returns the table of all, and those of the tenants with most ham, at most so many; and how many
// tenants have one. nil: no ham was counted.
func judgedHam(m *model.Model, most int) (all []Judged, tenants int) {
	if m.PromiseAll().Ham() == 0 {
		return nil, 0
	}
	own := m.Promises()
	slices.SortFunc(own, func(a, b model.TenantPromise) int {
		return cmp.Or(cmp.Compare(b.Table.Ham(), a.Table.Ham()), cmp.Compare(a.Key, b.Key))
	})
	all = append(all, judged(m.PromiseAll()))
	for _, t := range own[:min(most, len(own))] {
		one := judged(t.Table)
		one.Tenant, one.Began = fmt.Sprintf("%016x", t.Key), t.Began
		all = append(all, one)
	}
	return all, len(own)
}

func judged(t *promise.Table) Judged {
	j := Judged{Ham: t.Ham(), Eras: t.Era()}
	for _, budget := range shownBudgets {
		bound, b := t.Threshold(budget), Budget{Budget: budget}
		if b.promised = bound.Promised(); b.promised {
			p := model.Prediction{LogOdds: bound.LogOdds}.P()
			b.P, b.LogOdds = &p, &bound.LogOdds
		} else if !math.IsInf(bound.Missing, 1) {
			b.Missing = math.Ceil(bound.Missing)
		}
		j.Promises = append(j.Promises, b)
	}
	return j
}

// text says the table in a line.
func (j *Judged) text() string {
	who := "all"
	if j.Tenant != "" {
		who = fmt.Sprintf("tenant %s, since event %d", j.Tenant, j.Began)
	}
	said := make([]string, len(j.Promises))
	for i, b := range j.Promises {
		what := "never"
		switch {
		case b.promised:
			what = fmt.Sprintf("p ≥ %.4f", *b.P)
		case b.Missing > 0:
			what = fmt.Sprintf("not yet, %.0f more", b.Missing)
		}
		said[i] = fmt.Sprintf("%g %%: %s", 100*b.Budget, what)
	}
	return fmt.Sprintf("%s: %.0f; %s", who, j.Ham, strings.Join(said, ", "))
}
