package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/drift"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/trust"
)

// watchMemory is ρ of the head that the noise watch asks: it forgets at this rate
// an event. With ρ = 1 a change of concept would look like noise, because a head
// that does not forget goes on contradicting the new labels (measured with the
// watch's rule, drift's doc).
const watchMemory = 0.998

// A watch is the three alarms of one half. Covariate and concept look at what the
// half's head said before it learnt; label noise needs ε of a head of its own, on
// the same inputs, which forgets. It weighs labels by their trust: one that learns
// them in full takes flips of one class for the world within 300 events, and ε,
// which should say that labels are wrong, falls back to 0 (measured with 20 % of
// the spam of spam-drift and SpamAssassin called ham: not raised then, else within
// 200 and 300 events).
type watch struct {
	head    *blr.Posterior // nil beyond MaxDenseByDefault inputs
	epsilon float64        // flip rate by that head

	noise     *drift.LabelNoise
	covariate *drift.Covariate
	counter   int // the expert whose surprise covariate looks at, or noCounter
	concept   *drift.PageHinkley

	snr *task[drift.Result] // the pending SNR; nil: none, or nobody has taken it up
}

// The covariate alarm of a half looks at the surprise of the expert that counts
// (text.NaiveBayes), where that reads all there is: at mail, text and vectors
// without dense names. To a head over experts, mail in new words is dull: its
// log-odds lie near 0 and its leverage is small. Where no expert counts, or beside
// dense names, it looks at the head's leverage.
const noCounter = -1

// textCounter and vectorCounter return which of a half's experts that is, or
// noCounter.
func textCounter(cfg Config) int { return slices.Index(cfg.TextExperts, Opening) }

func vectorCounter(cfg Config) int {
	if len(cfg.Dense) > 0 {
		return noCounter
	}
	return vectorCounts
}

// surpriseWindow is the covariate alarm's window where it looks at surprises, in
// events: new campaigns are a part of the mail, while inputs that are rescaled are
// so in every event. The package doc has what other windows gave.
const surpriseWindow = 60

// newWatch returns the alarms of a half whose head has the prior before, whose
// ensembles would see dim inputs, and of whose experts one counts or none; nil if
// there are to be none.
func newWatch(cfg Config, before prior, dim, counter int) *watch {
	if cfg.Alarms.Off {
		return nil
	}
	w := &watch{epsilon: trust.FirstFlipRate, counter: counter}
	if dim <= MaxDenseByDefault {
		w.head = newHead(before, Head{Site: SiteRVGA}, halfLife(watchMemory))
	}
	w.noise, w.covariate, w.concept = cfg.Alarms.alarms(dim, counter)
	return w
}

// alarms returns the alarms before any event.
func (a Alarms) alarms(dim, counter int) (*drift.LabelNoise, *drift.Covariate, *drift.PageHinkley) {
	noise, err1 := drift.NewLabelNoise(drift.LabelNoiseConfig{
		Dim: dim, Drop: a.Drop, Confirmed: a.Confirmed, FlipRate: a.FlipRate, Clear: a.Clear,
	})
	novelty := drift.CovariateConfig{Threshold: a.Covariate}
	if counter != noCounter {
		novelty.Window = surpriseWindow
	}
	covariate, err2 := drift.NewCovariate(novelty)
	concept, err3 := drift.NewPageHinkley(drift.PageHinkleyConfig{Threshold: a.Concept})
	if err := errors.Join(err1, err2, err3); err != nil {
		panic(err) // validate has asked
	}
	return noise, covariate, concept
}

// halfLife is that of a power prior with ρ an event.
func halfLife(ρ float64) float64 { return -math.Ln2 / logistic.Log(ρ) }

// A changed alarm is one that an event raised or cleared.
type changed struct {
	kind   string
	status drift.Status
	report *drift.Report
}

// observe takes an event that was read and predicted as in, and that made the
// half's event count count. It appends the alarms whose state it changed.
func (w *watch) observe(dst []changed, in *reading, ex *Example, count uint64, r Runner) []changed {
	was := in.head
	y := -1.0
	if ex.Spam {
		y = 1
	}
	q := logistic.Sigmoid(y * was.LogOdds)
	if w.head != nil {
		q = logistic.Sigmoid(y * blr.Moderate(w.head.Moments(in.x)))
	}
	φ := trust.Phi(q, w.epsilon, w.epsilon)
	w.epsilon = trust.NextFlipRate(w.epsilon, φ, count-1)
	if w.head != nil {
		w.head.Update(in.x, y, φ)
	}

	if w.unlike(count, in) {
		dst = append(dst, changed{kind: KindCovariate, status: w.covariate.Status()})
	}
	if w.concept.Observe(count, -logistic.LogSigmoid(y*was.LogOdds)) {
		dst = append(dst, changed{kind: KindConcept, status: w.concept.Status()})
	}
	w.noise.Observe(drift.Event{X: in.inputs, Label: y, Prob: q, FlipRate: w.epsilon, ID: ex.ID, Source: ex.Source})
	if count%drift.Rhythm != 0 {
		return dst
	}
	if due, pending := w.noise.Due(); pending && due == count {
		w.resume(r)
		w.noise.Finish(w.snr.get())
		w.snr = nil
	}
	before := w.noise.Status()
	if w.noise.Check(count) {
		report := w.noise.Report()
		if !report.Status.Known { // it has lasted: the reference is given up, and this was it
			report.Status.Reference = before.Reference
		}
		dst = append(dst, changed{kind: KindLabelNoise, status: report.Status, report: &report})
	}
	if job, ok := w.noise.Start(count); ok {
		w.snr = begin(r, job.Run)
	}
	return dst
}

// unlike lets the covariate alarm see in and reports whether its state changed.
func (w *watch) unlike(count uint64, in *reading) bool {
	if w.counter == noCounter {
		return w.covariate.Observe(count, in.head.Variance)
	}
	return w.covariate.ObserveLog(count, in.scores[w.counter].Surprise)
}

// resume takes up the SNR that is pending, if nobody has: it was started before the
// model was saved.
func (w *watch) resume(r Runner) {
	if w.snr != nil {
		return
	}
	if job, pending := w.noise.Pending(); pending {
		w.snr = begin(r, job.Run)
	}
}

// retune gives the alarms other thresholds, which validate has passed.
func (w *watch) retune(a Alarms) {
	noise, covariate, concept := a.alarms(w.noise.Config().Dim, w.counter)
	if err := errors.Join(w.noise.Retune(noise.Config()), w.covariate.Retune(covariate.Config()), w.concept.Retune(concept.Config())); err != nil {
		panic(err)
	}
}

// alarmConfigs are what the alarms have been made with.
type alarmConfigs struct {
	noise     drift.LabelNoiseConfig
	covariate drift.CovariateConfig
	concept   drift.PageHinkleyConfig
}

func (w *watch) configs() alarmConfigs {
	return alarmConfigs{w.noise.Config(), w.covariate.Config(), w.concept.Config()}
}

func (w *watch) diagnosis() drift.Diagnosis {
	return drift.Diagnose(w.noise.Status(), w.covariate.Status(), w.concept.Status())
}

// The bytes of a watch, little endian:
//
//	float64 ε | head | label noise | covariate | concept
//
// where each of the last four is behind a uint64 with its length. Beyond
// MaxDenseByDefault inputs there is no head.
func (w *watch) append(dst []byte) (_ []byte, err error) {
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(w.epsilon))
	if w.head != nil {
		if dst, err = appendPart(dst, w.head); err != nil {
			return nil, err
		}
	}
	for _, part := range []appender{w.noise, w.covariate, w.concept} {
		if dst, err = appendPart(dst, part); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// restore reads what append wrote, for a half of the given number of learnt
// events into a watch before any event.
func (w *watch) restore(b []byte, events uint64) error {
	if len(b) < 8 {
		return fmt.Errorf("%d bytes, want at least 8", len(b))
	}
	w.epsilon, b = math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:]
	if !trust.IsFlipRate(w.epsilon) {
		return fmt.Errorf("flip rate %v", w.epsilon)
	}
	var err error
	if w.head != nil {
		if w.head, b, err = restoreHead(b, w.head); err != nil {
			return err
		}
		if w.head.Updates() != events {
			return fmt.Errorf("a head of %d events in a half of %d", w.head.Updates(), events)
		}
	}
	fresh := w.configs()
	for i, part := range []decoder{w.noise, w.covariate, w.concept} {
		if b, err = restorePart(b, part); err != nil {
			return fmt.Errorf("%s: %w", []string{KindLabelNoise, KindCovariate, KindConcept}[i], err)
		}
	}
	for _, a := range []struct {
		kind          string
		seen, changed uint64
		all           bool // it has seen every event
	}{
		{KindCovariate, w.covariate.Events(), w.covariate.Status().Since, true},
		{KindConcept, w.concept.Events(), w.concept.Status().Since, false},
	} {
		if a.seen > events || a.all && a.seen < events || a.changed > events {
			return fmt.Errorf("%s: an alarm of %d events, changed at %d, in a half of %d", a.kind, a.seen, a.changed, events)
		}
	}
	seen, checked := w.noise.Clock()
	due, pending := w.noise.Due()
	switch {
	case len(b) > 0:
		return fmt.Errorf("%d bytes too many", len(b))
	case w.configs() != fresh:
		return fmt.Errorf("alarms with %+v, their configuration says %+v", w.configs(), fresh)
	case seen != events || checked != events-events%drift.Rhythm || pending && due != checked+drift.Rhythm:
		return fmt.Errorf("a noise watch of %d events, checked at %d, with a result due at %d (%v), in a half of %d",
			seen, checked, due, pending, events)
	}
	return nil
}
