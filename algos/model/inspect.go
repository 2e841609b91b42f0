package model

import (
	"hamlet/algos/blr"
	"hamlet/algos/stack"
	"hamlet/algos/text"
)

// A TableUse says how full the table of some experts is. Features that meet in a slot are
// learnt as one: a table that is nearly full makes experts worse.
type TableUse struct {
	Body    string   // BodyText or BodyVector
	Experts []string // that read the same features, and share the table
	Slots   int
	Used    int // of them: some expert has learnt a feature there
}

// Share returns the part of the slots that is used.
func (t TableUse) Share() float64 { return float64(t.Used) / float64(t.Slots) }

// Tables returns the tables of the experts, those of mail and text first. It reads every
// slot, some 30 MB with the defaults.
func (m *Model) Tables() (all []TableUse) {
	for k, s := range m.submodels {
		if s == nil || s.experts == nil {
			continue
		}
		at := map[*text.List]int{} // in all
		for _, e := range s.entries {
			i, known := at[e.Reads]
			if !known {
				t := s.tables[len(at)] // in the order of first occurrence
				i = len(all)
				at[e.Reads] = i
				all = append(all, TableUse{Body: bodies[k], Slots: t.Slots(), Used: t.Used()})
			}
			all[i].Experts = append(all[i].Experts, e.Name)
		}
	}
	return all
}

// A StackState says what joins the answers of a head, a second head and ensembles.
type StackState struct {
	Body    string        // BodyText or BodyVector
	Members []StackMember // the head first
	Serves  bool          // it answers in place of the head
	Gated   bool          // it answers only while it is better than the head
	Lead    float64       // of a gated stack over the head, in nats

	// Started is the event count of the sub-model at which the pending rebuild was started;
	// 0: none is pending. Due is where it takes effect. The ensembles in effect were started
	// one rebuild before.
	Started, Due uint64
}

// A StackMember is one of the models whose log-odds a stack adds, with its weight.
type StackMember struct {
	Name     string // "head", "second head", or a kind of ensemble
	Ensemble bool   // it is an ensemble
	Built    bool   // false: an ensemble that was not built yet
	Mean, SD float64
}

// Stacks returns the stacks, that of mail and text first. A head that answers alone has none.
func (m *Model) Stacks() (all []StackState) {
	for k, s := range m.submodels {
		if s == nil || s.stack == nil {
			continue
		}
		names := []string{"head"}
		if s.stack.Second() != nil {
			names = append(names, "second head")
		}
		one := StackState{Body: bodies[k], Serves: s.stack.Serves()}
		var gate stack.Gate
		gate, one.Gated = s.stack.Gate()
		one.Lead = gate.Lead
		one.Started, one.Due = s.stack.Pending()
		ensembles := len(names)
		for _, kind := range s.stack.Kinds() {
			names = append(names, string(kind))
		}
		for i, w := range unitContributions(s.stack.Stacker())[1:] { // without the constant
			member := StackMember{Name: names[i], Ensemble: i >= ensembles, Built: true, Mean: w.Mean, SD: w.SD}
			if member.Ensemble {
				member.Built = s.stack.Ensemble(i-ensembles) != nil
			}
			one.Members = append(one.Members, member)
		}
		all = append(all, one)
	}
	return all
}

// A Weight is the belief about the weight of one input of a head: its mean, and its
// standard deviation.
type Weight struct {
	Body     string // BodyText or BodyVector
	Name     string // of the input
	Product  int    // 0: the input itself; else which product of that input it is, from 1
	Mean, SD float64
}

// Weights returns the weights of the heads, of mail and text first, in the order of the
// inputs. A head before its first event has none.
func (m *Model) Weights() (all []Weight) {
	for k, s := range m.submodels {
		if s == nil {
			continue
		}
		weights := unitContributions(s.head)
		products := map[string]int{}
		i := 0
		for _, g := range s.layout.groups {
			for _, name := range g.names {
				w := Weight{Body: bodies[k], Name: name, Mean: weights[i].Mean, SD: weights[i].SD}
				if g.product {
					products[name]++
					w.Product = products[name]
				}
				all = append(all, w)
				i++
			}
		}
	}
	return all
}

// A Regression is one of a model's Bayesian logistic regressions.
type Regression struct {
	Body      string         // BodyText or BodyVector
	Name      string         // "head", "stacker", "second head", "alarm's head" or "credulous head"
	Posterior *blr.Posterior // m's own: to be read until the next Apply, and not to be changed
}

// Regressions returns all of m's, those of mail and text first.
func (m *Model) Regressions() (all []Regression) {
	for k, s := range m.submodels {
		if s == nil {
			continue
		}
		add := func(name string, p *blr.Posterior) {
			if p != nil {
				all = append(all, Regression{bodies[k], name, p})
			}
		}
		add("head", s.head)
		if s.stack != nil {
			add("stacker", s.stack.Stacker())
			add("second head", s.stack.Second())
		}
		if s.monitor != nil {
			own, credulous := s.monitor.Heads()
			add("alarm's head", own)
			add("credulous head", credulous)
		}
	}
	return all
}

// unitContributions returns the mean and the standard deviation of each weight of p.
func unitContributions(p *blr.Posterior) []blr.Contribution {
	ones := make([]float64, p.Dim())
	for i := range ones {
		ones[i] = 1
	}
	return p.Contributions(nil, ones)
}
