// Package drift holds the three alarms that say what is wrong with a stream of
// labelled events. They are pure state machines: no goroutine, no clock, no I/O.
// Their clock is the event count. After the same events they hold the same bytes on
// every machine.
//
//	LabelNoise   the labels' SNR on a class-balanced window   labels went bad
//	Covariate    the head's leverage xᵀVx, or surprise        the mail changed
//	PageHinkley  the log loss of predictions (concept)        the world changed
//
// Each alarm has a level, a reference and a threshold ([Status]). It clears at another
// level than it is raised at (hysteresis), and learns as normal what lasts, so that
// every alarm ends. [Diagnose] makes one [Diagnosis] of the three:
//
//	concept, err := drift.NewPageHinkley(drift.PageHinkleyConfig{})
//	if err != nil {
//		return err
//	}
//	for count, e := range events { // count from 1
//		loss := head.LogLoss(e) // before the event is learnt
//		if concept.Observe(uint64(count), loss) {
//			fmt.Println(drift.Diagnose(noise.Status(), covariate.Status(), concept.Status()))
//		}
//	}
//
// # Label noise
//
// VIBoost (package viboost; Lorbert, Blei, Schapire and Ramadge, A Bayesian boosting
// model, 2012) infers how many labels are true for each that is noise: SNR = η₁/η₂,
// at most N+1 on N events. It asks whether labels agree with inputs by any short sum
// of stumps. So the SNR stays where it was when concept or inputs change and the
// labels stay consistent. It falls when labels do not follow from inputs. The window
// is the last N/2 events of each class, because on a plain window the SNR falls with
// the rarer class. With s = ln SNR − ln N, [LabelNoise] compares s with the median of
// its past. An SNR that is started at one event count takes effect 50 events later,
// so that it can be computed in the background.
//
// [Report] names suspects, sources and the flip rate of each class, by what a head
// with forgetting gave to the labels. The noise grade is reported too, but does not
// reliably name the forged side.
//
// # Covariate
//
// V is the covariance of the head's belief. The leverage a = xᵀVx is known before the
// label, and large where nothing like x was learnt (Belsley, Kuh and Welsch,
// Regression diagnostics, 1980, section 2.1). The level of [Covariate] is how far ln a
// of the last 30 events lies above Huber's location of the past, in robust units.
// Inputs that shrink or vanish have less leverage and raise nothing here.
//
// A head whose inputs are experts' log-odds is blind to new words: experts that know
// none of them answer 0, x is small, and so is a. There the surprise of naive Bayes
// takes the place of ln a: ln of the geometric mean of 1/(counts+½) over a message's
// features (package text), over 60 events, because a campaign is a part of the mail.
//
// # Concept
//
// The test of Page (1954) and Hinkley (1971) on the log loss, clipped at 3, of a head
// without forgetting ([PageHinkley]). It is the fastest and the least specific alarm:
// flipped labels raise it first.
//
// # The laboratory
//
// [DDM] and [ADWIN] are what others raise an alarm by. They watch the error or the
// loss alone and say that something changed, not what. They are written from their
// papers for comparison (hamlet bench alarms) and are no part of a model.
//
// # Invariants
//
//   - An owner that follows the protocol of [LabelNoise] holds the same bytes
//     however long a job takes and however often it was lost.
//   - Nothing that makes a state or a Report takes its exponentials and logarithms
//     from package math.
//
// MEASURED.md has detection delays, false alarms and costs.
package drift
