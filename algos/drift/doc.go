// Package drift says what is wrong with a stream of labelled events. Its types are pure state
// machines: no goroutine, no clock, no I/O. Their clock is the event count. After the same
// events they hold the same bytes on every machine.
//
//	LabelNoise   the labels' SNR on a class-balanced window   labels went bad
//	Covariate    the head's leverage xᵀVx, or surprise        the mail changed
//	PageHinkley  the log loss of predictions (concept)        something changed
//	Incidents    suspects first, then names                   which of these it was
//
// Each alarm has a level, a reference and a threshold ([Status]). It is raised at one level
// and cleared at another (hysteresis). It learns a lasting change as the new normal, so
// every alarm ends. A [Monitor] joins the alarms of one head. It reports [Incidents]:
//
//	var changes []drift.Change
//	for count, o := range observations { // count from 1; o was predicted and is not yet learnt
//		changes = monitor.Observe(changes[:0], &o, uint64(count), nil)
//		for _, c := range changes {
//			fmt.Println(c.State, c.Kind, "incident", c.Incident)
//		}
//	}
//
// # Label noise
//
// VIBoost (package viboost; Lorbert, Blei, Schapire and Ramadge, A Bayesian boosting
// model, 2012) infers how many labels are true for each that is noise: SNR = η₁/η₂,
// at most N+1 on N events. The SNR is high if a short sum of stumps explains the labels.
// So it does not change when concept or inputs change and the labels stay
// consistent. It falls when labels do not follow from inputs. The window
// is the last N/2 events of each class, because on a plain window the SNR falls with
// the rarer class. With s = ln SNR − ln N, [LabelNoise] compares s with the median of
// its past. An SNR that is started at one event count takes effect 50 events later,
// so that it can be computed in the background.
//
// # Covariate
//
// V is the covariance of the head's belief. The leverage a = xᵀVx is known before the
// label, and large where nothing like x was learnt (Belsley, Kuh and Welsch,
// Regression diagnostics, 1980, section 2.1). A head over experts' log-odds is blind to
// new words: x is small there, and so is a. The surprise of naive Bayes then takes the
// place of ln a (package text), over 60 events, because a campaign is a part of the mail.
//
// # Concept
//
// [PageHinkley] tests the log loss, clipped at 3, of a head without forgetting. It is not
// specific: flipped labels raise it as well. So it only opens or holds a suspicion.
//
// # Suspect, then name
//
// [Incidents] opens a suspicion when one of three walks on the doubt in labels is up, after a
// few dozen bad labels. It is named when the evidence is in: by an alarm that is specific, by an
// accused source (package trust), or by a Bayes factor between labels that are flipped and
// labels that follow a new rule.
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
