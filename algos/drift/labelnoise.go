package drift

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Rhythm divides the event counts at which the label-noise alarm acts: results take
// effect, the rule is applied and SNRs are started.
const Rhythm = 50

// A LabelNoiseConfig tunes the label-noise alarm. Zero fields mean the defaults
// given. MEASURED.md has the false alarms and delays of the defaults. A clean s varies
// by about .03.
type LabelNoiseConfig struct {
	Dim int // D, the inputs of an event; must be given

	Drop      float64 // raised when s lies more than this below its reference, in nats; 0 is 0.2
	Confirmed float64 // or more than this, while ε > FlipRate; at most Drop; 0 is 0.1
	FlipRate  float64 // above it SNRs are started at every 50th count; 0 is 0.01
	Clear     float64 // cleared when s lies less than this below it; below Confirmed; 0 is Confirmed/2
}

// spans are the numbers of an alarm that are not thresholds. Tests have others than standard.
type spans struct {
	perClass            int // N/2, the events of each class in the window
	rounds, inner, bins int // of VIBoost: T, passes a round, the most quantile bins of an input
	every               int // an SNR is started at counts divisible by it, a multiple of Rhythm

	// The reference is the median of the last memory events but the latest lag. It needs least.
	// All are multiples of Rhythm.
	memory, lag, least int

	recent int // events for flip rates, suspects and sources
	settle int // after this many events an alarm ends, and a new reference is learnt
}

var standard = spans{
	perClass: 250, rounds: 10, inner: 5, bins: 64, every: 250,
	memory: 3_000, lag: 500, least: 1_000, recent: 500, settle: 20_000,
}

const (
	// A flip rate of greatest likelihood above likelyFactor times FlipRate confirms a
	// drop. Its search takes at most checkSteps steps.
	likelyFactor = 4
	checkSteps   = 25

	// A drop raises the alarm only if it is also above leastSpreads times the spread of s.
	leastSpreads = 3.5
	normalMAD    = 1.4826 // a normal's standard deviation over its median absolute deviation

	mostDim  = 1 << 20
	mostDrop = 100.0
)

// Fill sets the defaults of cfg. The error names every wrong field.
func (cfg *LabelNoiseConfig) Fill() error {
	setDefault(&cfg.Drop, 0.2)
	setDefault(&cfg.Confirmed, min(0.1, cfg.Drop))
	setDefault(&cfg.FlipRate, 0.01)
	setDefault(&cfg.Clear, cfg.Confirmed/2)

	var err error
	if cfg.Dim < 1 || cfg.Dim > mostDim {
		err = fmt.Errorf("drift: label noise: dim is %d: want 1 to %d", cfg.Dim, mostDim)
	}
	return errors.Join(err,
		checkNumber("label noise: drop", cfg.Drop, 1e-3, mostDrop),
		checkNumber("label noise: confirmed drop", cfg.Confirmed, 1e-3, cfg.Drop),
		checkNumber("label noise: flip rate", cfg.FlipRate, 1e-6, 1),
		checkNumber("label noise: clear", cfg.Clear, -mostDrop, cfg.Confirmed),
	)
}

// A LabelNoise is the alarm for labels gone bad. Its level is s = ln SNR − ln N with
// SNR = η₁/η₂ of VIBoost on the last N/2 events of each class. Its reference is the
// median of past s. The drop is the reference minus the level. It is raised when
//
//	drop > .2,   or   drop > .1 while ε > .01 or max(f₀, f₁) > .04,
//
// and drop > 3.5·σ. Here ε is the flip rate of a head on the same inputs that forgets
// (ρ = .998). f₀ and f₁ are the flip rates of greatest likelihood of the recent events
// by true label ([LabelNoise.Report]). If labels of both classes are flipped, ε rises
// sooner. If those of one class are, only f stays high: the head learns part of them.
//
// σ is the spread of the past s, 1.4826 times their median absolute deviation. It stops
// false alarms if labels are hard or wrong at a constant rate.
//
// The alarm clears when the drop falls below .05. The past is the s at each 50th event of
// the last 3,000 except the latest 500, at least 1,000 events. The reference does not
// change while the alarm is raised.
//
// While fewer than 6 % of the recent labels are of one class, SNRs say little: the window then
// compares old events of this class with new ones of the other. The rule is not asked, the
// alarm stays as it is, and the past takes nothing.
//
// An SNR takes milliseconds, so the owner computes it in the background. At every event
// count divisible by Rhythm, after Observe, the owner calls
//
//	if job, ok := n.Pending(); ok && … { n.Finish(result of job) }   // started a Rhythm ago
//	changed := n.Check(count)                                        // the rule
//	if job, ok := n.Start(count); ok { run job, in the background }  // if one is due
//
// It waits for a late result, so that slow and fast machines hold the same bytes. If a
// job is lost, Pending returns it again, the same to the last bit: the window has room
// for the rows that come until the result is due.
//
// Its Status has s as level and the median as reference, both in nats. Its threshold is
// the drop that would raise it now.
type LabelNoise struct {
	cfg      LabelNoiseConfig
	spans    spans
	classes  [2]rows // of ham, of spam
	recent   recent
	flipRate float64 // ε, the latest

	// The latest result that is Known. Finish writes it. Invariant: known ⇔ snr > 0.
	known bool
	snr   float64
	grade float64
	level float64 // s

	// The past. Check writes it. Invariant: !hasRef ⇒ !raised and reference = spread = 0.
	history   []float64 // s at each Rhythm while not raised, the latest last, at most memory/Rhythm
	hasRef    bool
	reference float64 // the median
	spread    float64 // σ
	likely    float64 // max(f₀, f₁) at the last Check, 0 where the drop was below Clear
	raised    bool
	since     uint64
	marked    uint64 // the count of the last Check

	// The job under way. Start sets it, Finish clears it. Invariant: pending ⇔ started > 0.
	pending bool
	started uint64    // the count at which the job was started
	upTo    [2]uint64 // classes' seen at that count

	skipped       uint64 // events that Skip counted
	skippedBefore uint64 // the same before the job under way
}

// NewLabelNoise returns the alarm before any event. The error names every wrong field.
func NewLabelNoise(cfg LabelNoiseConfig) (*LabelNoise, error) {
	if err := cfg.Fill(); err != nil {
		return nil, err
	}
	return blank(cfg, standard), nil
}

// blank returns an alarm without events.
func blank(cfg LabelNoiseConfig, w spans) *LabelNoise {
	n := &LabelNoise{cfg: cfg, spans: w, recent: recent{limit: w.recent}}
	for c := range n.classes {
		n.classes[c] = rows{dim: cfg.Dim, limit: w.perClass + Rhythm}
	}
	return n
}

// Observe takes an event into the windows. It copies X. It panics on an event of
// another length or with impossible values, and on more than Rhythm events between a
// Start and its Finish.
func (n *LabelNoise) Observe(e Event) {
	e.check(n.cfg.Dim)
	rows := &n.classes[class(e.Label)]
	if n.pending && rows.seen-n.upTo[class(e.Label)] == Rhythm {
		panic("drift: a result is overdue")
	}
	rows.add(e.X)
	n.recent.add(witness{label: e.Label, prob: e.Prob, id: e.ID, source: e.Source})
	n.flipRate = e.FlipRate
}

// Skip counts an event that the windows do not take.
func (n *LabelNoise) Skip() { n.skipped++ }

// Skipped returns the number of events that Skip counted.
func (n *LabelNoise) Skipped() uint64 { return n.skipped }

// Start copies the window into a job if an SNR is due: at counts divisible by
// every, by Rhythm while ε > FlipRate, and only once there are N/2 events of each
// class, and both are known. Its result takes effect at count + Rhythm. It panics if one is pending.
func (n *LabelNoise) Start(count uint64) (Job, bool) {
	if n.pending {
		panic(fmt.Sprintf("drift: an SNR started at %d while that of %d is pending", count, n.started))
	}
	due := count%uint64(n.spans.every) == 0 || count%Rhythm == 0 && n.confirmed()
	if least := uint64(n.spans.perClass); !due || n.classes[0].seen < least || n.classes[1].seen < least {
		return Job{}, false
	}
	n.pending, n.started = true, count
	n.upTo, n.skippedBefore = [2]uint64{n.classes[0].seen, n.classes[1].seen}, n.skipped
	return n.Pending()
}

// Pending returns the job that was started and is not finished, if there is one.
// Its result is due at the event count Job.Count() + Rhythm.
func (n *LabelNoise) Pending() (Job, bool) {
	if !n.pending {
		return Job{}, false
	}
	j := Job{
		count: n.started, dim: n.cfg.Dim, perClass: n.spans.perClass,
		rounds: n.spans.rounds, inner: n.spans.inner, bins: n.spans.bins,
		data: make([]float32, 0, 2*n.spans.perClass*n.cfg.Dim),
	}
	for c := range n.classes {
		j.data = n.classes[c].appendLast(j.data, n.upTo[c], n.spans.perClass)
	}
	return j, true
}

// Finish applies the result of the pending job. The owner calls it at the count at which
// the result is due, before Check. It panics on the result of another job.
func (n *LabelNoise) Finish(r Result) {
	if !n.pending || r.Count != n.started || r.Known && !(r.SNR > 0) {
		panic(fmt.Sprintf("drift: result %+v, pending %v since %d", r, n.pending, n.started))
	}
	n.pending, n.started, n.upTo, n.skippedBefore = false, 0, [2]uint64{}, 0
	if r.Known {
		n.known, n.snr, n.grade, n.level = true, r.SNR, r.Grade, r.level(2*n.spans.perClass)
	}
}

// Check applies the rule at a count divisible by Rhythm. It reports whether the rule
// raised or cleared the alarm. It panics if count is not divisible or not after the last
// Check, or if a result is due and missing.
func (n *LabelNoise) Check(count uint64) (changed bool) {
	if count%Rhythm != 0 || count <= n.marked {
		panic(fmt.Sprintf("drift: label noise checked at count %d, last at %d", count, n.marked))
	}
	if n.pending && count >= n.started+Rhythm {
		panic(fmt.Sprintf("drift: at count %d the result of the SNR started at %d is missing", count, n.started))
	}
	n.marked = count
	n.likely = 0
	if !n.known {
		return false
	}
	if !n.bothKnown() {
		return n.raised && n.settled(count)
	}
	if n.raised {
		n.findLikely()
		return n.checkRaised(count)
	}
	if len(n.history) == n.spans.memory/Rhythm {
		copy(n.history, n.history[1:])
		n.history = n.history[:len(n.history)-1]
	}
	n.history = append(n.history, n.level)
	n.hasRef = len(n.past()) >= n.spans.least/Rhythm
	if !n.hasRef {
		n.reference, n.spread = 0, 0
		return false
	}
	n.reference = median(n.past())
	n.findSpread()
	n.findLikely()
	if n.reference-n.level <= n.threshold() {
		return false
	}
	n.raised, n.since = true, count
	return true
}

func (n *LabelNoise) checkRaised(count uint64) (changed bool) {
	if n.settled(count) {
		return true
	}
	if n.reference-n.level >= n.cfg.Clear {
		return false
	}
	n.raised, n.since = false, count
	return true
}

// settled ends an alarm that was raised settle events ago.
func (n *LabelNoise) settled(count uint64) (changed bool) {
	if count-n.since < uint64(n.spans.settle) {
		return false
	}
	n.history, n.hasRef, n.reference, n.spread = nil, false, 0, 0
	n.raised, n.since = false, count
	return true
}

// leastClass is the part of the recent labels, in percent, from which on a class is known: 30
// of 500.
const leastClass = 6

// knownClasses reports whether enough of the recent labels are ham, and spam.
func (n *LabelNoise) knownClasses() (known [2]bool) {
	var given [2]int
	for i := range n.recent.ring {
		given[class(n.recent.ring[i].label)]++
	}
	for c := range known {
		known[c] = 100*given[c] >= leastClass*n.spans.recent
	}
	return known
}

func (n *LabelNoise) bothKnown() bool {
	known := n.knownClasses()
	return known[0] && known[1]
}

// past returns the s whose median is the reference.
func (n *LabelNoise) past() []float64 { return n.history[:max(0, len(n.history)-n.spans.lag/Rhythm)] }

// findSpread sets σ.
func (n *LabelNoise) findSpread() {
	deviations := slices.Clone(n.past())
	for i, s := range deviations {
		deviations[i] = math.Abs(s - n.reference)
	}
	n.spread = float64(normalMAD * median(deviations))
}

// findLikely sets the flip rate of greatest likelihood if the drop is above Clear. It
// costs some 0.3 ms.
func (n *LabelNoise) findLikely() {
	if n.reference-n.level > n.cfg.Clear {
		f, _ := flipRates(n.recent.oldest(), [2]bool{true, true}, n.flipRate, checkSteps)
		n.likely = max(f[0], f[1])
	}
}

// confirmed reports whether a flip rate, ε or f, also says that labels are wrong.
func (n *LabelNoise) confirmed() bool {
	return n.flipRate > n.cfg.FlipRate || n.likely > float64(likelyFactor*n.cfg.FlipRate)
}

// threshold returns the drop that raises the alarm now.
func (n *LabelNoise) threshold() float64 {
	drop := n.cfg.Drop
	if n.confirmed() {
		drop = n.cfg.Confirmed
	}
	return max(drop, float64(leastSpreads*n.spread))
}

// median returns the median of v. It does not change v.
func median(v []float64) float64 {
	sorted := slices.Clone(v)
	slices.SortFunc(sorted, cmp.Compare[float64])
	m := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[m]
	}
	return (sorted[m-1] + sorted[m]) / 2
}

// Status returns the alarm as it stands.
func (n *LabelNoise) Status() Status {
	return Status{
		Raised: n.raised, Since: n.since, Known: n.known && n.hasRef,
		Level: n.level, Reference: n.reference, Threshold: n.threshold(),
	}
}

// Clock returns how many events have been observed, and the event count of the
// last Check.
func (n *LabelNoise) Clock() (seen, checked uint64) {
	return n.classes[0].seen + n.classes[1].seen + n.skipped, n.marked
}

// Due returns the event count at which the pending result takes effect, if there is one.
func (n *LabelNoise) Due() (count uint64, pending bool) {
	return n.started + Rhythm, n.pending
}
