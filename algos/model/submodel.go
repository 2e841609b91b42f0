package model

import (
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/drift"
	"hamlet/algos/ensemble"
	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/sites"
	"hamlet/algos/stack"
	"hamlet/algos/text"
	"hamlet/algos/trust"
)

// A kind is a kind of body. A model has a sub-model for each.
type kind int

const (
	ofText   kind = iota // mail and text
	ofVector             // vectors of named numbers
	kindCount
)

// bodies are the names of the kinds.
var bodies = [kindCount]string{ofText: BodyText, ofVector: BodyVector}

// kindOf returns the kind of b, which has passed Check.
func kindOf(b *Body) kind {
	if b.Message != nil {
		return ofText
	}
	return ofVector
}

// A spec is the configuration of one sub-model. It is immutable; adoptable fields are not
// read from it.
type spec struct {
	cfg       Config
	kind      kind
	headSpec  Head
	ensembles []ensemble.Kind
	memory    float64       // the stacker's forgetting factor ρ per event
	entries   []*text.Entry // of the experts
	surprise  int           // index of the expert whose surprise the covariate alarm watches, or noExpert
	layout    *layout
}

// The stackers' ρ. Mail's experts learn all the time, so the best weights of its head and
// ensembles change little. Those of vectors may change. (Package stack has figures.)
const textMemory, vectorMemory = 0.999, 0.995

func kindsOf(names []string) (all []ensemble.Kind) {
	for _, name := range names {
		all = append(all, ensemble.Kind(name))
	}
	return all
}

// noExpert is spec.surprise if no expert has a surprise, and for vectors with dense names:
// the covariate alarm watches the head's leverage then.
const noExpert = -1

func newSpecs(cfg Config) (specs [kindCount]*spec) {
	specs[ofText] = &spec{
		cfg: cfg, kind: ofText, headSpec: cfg.TextHead, ensembles: kindsOf(cfg.TextEnsembles), memory: textMemory,
		entries: textExperts(cfg), layout: newLayout(textInputs(cfg)),
	}
	specs[ofVector] = &spec{
		cfg: cfg, kind: ofVector, headSpec: cfg.VectorHead, ensembles: kindsOf(cfg.VectorEnsembles), memory: vectorMemory,
		entries: text.Vectors, layout: newLayout(vectorInputs(cfg)),
	}
	for _, s := range specs {
		s.surprise = slices.IndexFunc(s.entries, func(e *text.Entry) bool { return e.Surprise })
	}
	if len(cfg.Dense) > 0 {
		specs[ofVector].surprise = noExpert
	}
	return specs
}

// textExperts returns the experts of mail and text, the personal ones last: a personal list
// is made from the list that it salts.
func textExperts(cfg Config) []*text.Entry {
	return append(byName(cfg.TextExperts), text.Personal(byName(cfg.PersonalExperts))...)
}

func byName(names []string) (entries []*text.Entry) {
	for _, name := range names {
		entries = append(entries, text.ByName(name))
	}
	return entries
}

// newExperts creates the experts before any event.
func (s *submodel) newExperts() {
	s.experts, s.tables = text.Experts(s.entries, s.cfg.TableBits)
}

// counter returns the place of expert k, which counts, among the counters of a site.
func (s *spec) counter(k int) (place int) {
	for _, e := range s.entries[:k] {
		if e.Counts {
			place++
		}
	}
	return place
}

// expertSize returns the number of bytes of expert k.
func (s *spec) expertSize(k int) int {
	return s.entries[k].Size(s.cfg.TableBits + s.entries[k].Reads.Bits)
}

// tablesSize returns the size of the experts' tables in bytes.
func (s *spec) tablesSize() (n int) {
	for k := range s.entries {
		n += s.expertSize(k)
	}
	return n
}

// newHead returns a new head with the prior of s.
func (s *spec) newHead(site string, halfLife float64) *blr.Posterior {
	p := s.layout.prior
	head, err := blr.New(blr.Config{
		Dim: len(p.mean), Mean: p.mean, Precision: p.precision, Approximation: siteByName[site], HalfLife: halfLife,
	})
	if err != nil {
		panic(err) // the prior is ours
	}
	return head
}

// newColumns returns the standardiser of dense inputs, nil for mail and text.
func (s *spec) newColumns() *feature.Standardiser {
	if s.kind == ofText {
		return nil
	}
	return feature.NewStandardiser(len(s.cfg.Dense))
}

// monitorConfig returns the configuration of a monitor without its head.
func (s *spec) monitorConfig(a Alarms) drift.MonitorConfig {
	c := drift.MonitorConfig{
		Surprise: s.surprise != noExpert,
		Noise: drift.LabelNoiseConfig{
			Dim: s.layout.raw, Drop: a.Drop, Confirmed: a.Confirmed, FlipRate: a.FlipRate, Clear: a.Clear,
		},
		Covariate: drift.CovariateConfig{Threshold: a.Covariate},
		Concept:   drift.PageHinkleyConfig{Threshold: a.Concept},
	}
	if c.Surprise {
		c.Covariate.Window = drift.SurpriseWindow
		if a.Covariate == 0 {
			c.Covariate.Threshold = drift.SurpriseThreshold
		}
	}
	return c
}

// newMonitor returns new alarms with the current thresholds a, nil if they are off.
func (s *spec) newMonitor(a Alarms) *drift.Monitor {
	if a.Off {
		return nil
	}
	c := s.monitorConfig(a)
	if s.layout.raw <= MaxDenseByDefault {
		c.Head = s.newHead(SiteRVGA, blr.HalfLife(drift.MonitorMemory))
		c.Credulous = s.newHead(SiteRVGA, blr.HalfLife(drift.CredulousMemory))
	}
	m, err := drift.NewMonitor(c)
	if err != nil {
		panic(err) // validate has passed the thresholds
	}
	return m
}

// stackerInputs returns the number of the stacker's inputs, 0 without a stack.
func (s *spec) stackerInputs() int {
	return stack.StackerInputs(len(s.ensembles), s.cfg.SecondHead > 0)
}

// shape returns the shape of the sites.
func (s *spec) shape() sites.Shape {
	counters := 0
	for _, e := range s.entries {
		if e.Counts {
			counters++
		}
	}
	return sites.Shape{
		Inputs: s.layout.dim(), Stacker: s.stackerInputs(), Second: s.cfg.SecondHead > 0, Counters: max(1, counters),
	}
}

// newStack returns a new stack, nil if the head predicts alone.
func (s *spec) newStack() *stack.Stack {
	if s.stackerInputs() == 0 {
		return nil
	}
	c := stack.Config{
		Ensembles: s.ensembles, Inputs: s.layout.raw, Window: s.cfg.Window, Rebuild: s.cfg.Rebuild,
		Rounds: s.cfg.Rounds, Memory: s.memory, Gated: s.kind == ofText,
	}
	if ρ := s.cfg.SecondHead; ρ > 0 {
		c.Second = s.newHead(s.headSpec.Site, blr.HalfLife(ρ))
	}
	return stack.New(c)
}

// A submodel is the part of a model for one kind of body. Its first event creates it.
type submodel struct {
	*spec
	events  uint64 // learnt; Invariant: labels, head, columns, monitor and stack have seen exactly these
	labels  *trust.Labels
	head    *blr.Posterior
	experts []text.Expert // one for each entry; vectors have none before the first hashed name
	tables  []*text.Table // of the experts, in the order of features.lists
	copies  *int          // of the model, which have these experts and tables too: see Copy; nil: none
	spare   *submodel     // whose tables ownTables may write over; nil: none
	sites   *sites.Ring   // of the last events, which can be withdrawn
	counted []float64     // learn's buffer: Learn's result for each expert that counts

	columns *feature.Standardiser // of the dense names; nil for mail and text
	monitor *drift.Monitor        // nil: no alarms
	stack   *stack.Stack          // nil: the head predicts alone
}

// newSubmodel returns a sub-model before its first event, with the alarms a.
func newSubmodel(s *spec, a Alarms) *submodel {
	m := &submodel{
		spec:    s,
		labels:  trust.New(),
		head:    s.newHead(s.headSpec.Site, float64(s.headSpec.HalfLife)),
		sites:   sites.New(s.shape()),
		counted: make([]float64, s.shape().Counters),
		columns: s.newColumns(),
		monitor: s.newMonitor(a),
		stack:   s.newStack(),
	}
	if s.kind == ofText {
		m.newExperts()
	}
	return m
}

// learn learns a labelled body that predict has predicted from in. It returns the event's
// site without its hashes. The site's trust is φ by [layout.witness]. The site is valid
// until the next event. how.label says who gave the label, learn adds the rest to it.
func (s *submodel) learn(in *features, ex *Example, how *teaching, policy trust.Policy) (at sites.Site) {
	y, label := sign(ex.Spam), how.label
	label.Spam, label.Q, label.Prob = ex.Spam, logistic.Sigmoid(y*s.layout.witness(in)), logistic.Sigmoid(in.head.LogOdds)
	w := s.labels.Weigh(label, policy)
	at.Trust, at.Weight = w.Phi, w.Standing
	w.Head *= float64(max(1, how.power))
	at.Head = s.head.Update(in.x, y, w.Head)
	at.Counted = s.counted
	clear(at.Counted)
	for _, l := range slices.Backward(in.lists) { // the cache still has what was scored last
		if s.experts == nil || w.Expert == 0 {
			break
		}
		for _, k := range l.experts {
			ω := w.Expert
			if how.isAgain(k) && s.entries[k].Counts {
				ω *= 2
			}
			counted := s.experts[k].Learn(l.view, in.scores[k], ex.Spam, ω)
			if s.entries[k].Counts {
				at.Counted[s.counter(k)] = counted
			} else if how.isAgain(k) {
				s.experts[k].Learn(l.view, s.experts[k].Score(l.view), ex.Spam, ω)
			}
		}
	}
	if s.columns != nil {
		s.columns.Observe(in.dense)
	}
	s.events++
	if s.stack != nil {
		if s.stack.Ready() && !in.stacked { // its gate is closed: it answers only to learn
			s.join(in)
		}
		answers := stack.Answers{Head: inflated(in.head.Mean, in.head.Variance).LogOdds, Stack: in.joint.LogOdds}
		row := stack.Row{Label: y, Phi: w.Sample(), ID: ex.ID, Source: ex.Source}
		at.Stacker, at.Second = s.stack.Learn(&in.scratch, in.event(), row, w.Head, answers, s.events)
	}
	in.accused = s.labels.Observe(label, w)
	return at
}

// sign returns the label as a number: 1 for spam, −1 for ham.
func sign(spam bool) float64 {
	if spam {
		return 1
	}
	return -1
}

// predict returns the prediction of s's stack if it serves, else of its head; of the prior
// if s is nil. It sets in.head and in.stacked, and in.joint if in.stacked.
func predict(s *submodel, in *features) Prediction {
	var mean, variance float64
	if s != nil {
		mean, variance = s.head.Moments(in.x)
	} else {
		before := in.spec.layout.prior
		for j, x := range in.x {
			mean += float64(before.mean[j] * x)
			variance += x * x / before.precision[j]
		}
	}
	in.head = belief{LogOdds: blr.Moderate(mean, variance), Mean: mean, Variance: variance}
	in.stacked = s != nil && s.stack != nil && s.stack.Serves()
	if in.stacked {
		return s.join(in)
	}
	return inflated(mean, variance)
}

// join returns the prediction of s's stack, which must be ready, for in, which predict has
// predicted. It sets in.joint.
func (s *submodel) join(in *features) Prediction {
	in.joint = inflated(s.stack.Predict(&in.scratch, in.event()))
	return in.joint
}

// inflated returns the Prediction of a belief with this mean and the variance a.
func inflated(mean, a float64) Prediction { return Expect(mean, float64(Inflation*a)) }

// Expect returns the Prediction with this Mean and Variance.
func Expect(mean, variance float64) Prediction {
	return Prediction{LogOdds: blr.Predictive(mean, variance), Mean: mean, Variance: variance}
}
