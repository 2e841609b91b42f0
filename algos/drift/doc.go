// Package drift holds the three alarms that say what is wrong with a stream of
// labelled events. They are pure state machines: no goroutine, no clock, no I/O.
// Their clock is the event count, and after the same events they hold the same
// bytes on every machine.
//
//	LabelNoise   the labels' SNR on a class-balanced window   labels went bad
//	Covariate    the head's leverage xᵀVx, or surprise        the mail changed
//	PageHinkley  the log loss of predictions (concept)        the world changed
//
// [Diagnose] joins them to one [Diagnosis]. Each has a level, a reference and a threshold
// ([Status]) and hysteresis: it clears at another level than it is raised at, and
// takes for normal what lasts, so that none cries for ever.
//
// # Label noise
//
// VIBoost (package viboost; Lorbert, Blei, Schapire and Ramadge, A Bayesian
// boosting model, 2012) infers how many labels are true for each that is noise:
// SNR = η₁/η₂, at most N+1 on N events. It asks whether labels agree with inputs
// by any short sum of stumps, so that it stays where it was when the concept or
// the inputs change and the labels stay consistent, and falls when labels do not
// follow from inputs. It must be read from the last N/2 events of each class: on
// a plain window it falls with the rarer class. T = 10 rounds of 5 passes, τ = 1,
// at N = 500; fewer rounds are bistable, 30 fit the noise. With s = ln SNR − ln N,
// the alarm is raised when s lies more than .2 below the median of its past, or
// more than .1 while ε, the flip rate of a head with forgetting, is above .01, or
// that of greatest likelihood of one class above .04: the SNR decides, and flip
// rates make it decide sooner and on less. In either case the fall is to be more than
// 3.5 times the spread of that past. An SNR started at one event count takes effect 50
// events later, so that it can be computed beside the stream ([LabelNoise]). Its
// [Report] names the forged label, suspects and sources by what that head gave to
// the labels; the noise grade, which is reported beside, does not reliably name the
// forged side.
//
// # Covariate
//
// V is the covariance of the head's belief, so that a = xᵀVx, known before the
// label, is large where nothing like x was learnt (the leverage of linear
// regression; Belsley, Kuh and Welsch 1980, section 2.1). Its level is how far ln a
// of the last 30 events lies above Huber's location of the past, in robust units
// ([Covariate]). Inputs that shrink or vanish have less leverage and raise
// nothing here.
//
// A head whose inputs are experts' log-odds is blind to new words: experts that know
// none of them say 0, where x is small and a too. There the experts' own doubt takes
// the place of ln a: the surprise of naive Bayes, ln of the geometric mean of
// 1/(counts+½) over a message's features (package text), over 60 events, because a
// campaign is a part of the mail. Package model has what that finds, and what else
// was tried.
//
// # Concept
//
// The test of Page (1954) and Hinkley (1971) on the log loss, clipped at 3, of a
// head without forgetting ([PageHinkley]). It is the fastest and the least
// specific: flipped labels raise it first.
//
// # Peers
//
// [DDM] and [ADWIN] are what others raise an alarm by: they watch the error or the
// loss alone and say that something changed, not what. They are written from their
// papers, for measurements beside ours (hamlet bench alarms), and are no part of a
// model.
//
// # Measured
//
// Streams raised, of 20 shuffles of spambase changed at event 2,600 of 4,601, and
// the median delay in events, with the defaults. The delays of label noise include
// the 50 events until a result takes effect. No alarm was raised before the
// change. November 2026, go test -run - -bench SpambaseTable -benchtime 1x:
//
//	                        label noise   covariate   concept
//	clean                     0             0           0
//	5 % of labels flipped    19   450       0          20   357
//	10 %                     20   250       0          20   144
//	20 %                     20   150       0          20    58
//	20 columns mirrored       0            20   11     18    88
//	a quarter of the spam     1  1750       0           0
//	a quarter of the ham      0             0           3
//	inputs × 3                0            20   43      0
//	inputs × ⅓                0             0          18   372
//	20 columns vanish         0             0           7   826
//
// False alarms: in 1,000,000 clean events, 100,000 at a time resampled from spambase
// with replacement, label noise and covariate were raised never (by the rule of
// three below .3 per 100,000) and concept .5 times per 100,000 (-bench
// FalseAlarms; the head knows the rows by heart after a while). In 10,000,000 drawn
// leverages of each of five shapes covariate was raised 0 to .17 times per 100,000,
// and in as many losses drawn from those of a first pass over spambase, of variance
// .2, concept 4.9, 2.2 and 1.2 times at thresholds 24, 28 and 32 (-bench
// DrawnStreams). The smaller the variance the rarer, exponentially.
//
// Where labels are wrong at a constant rate, or hard, ε is always high and s
// restless. How often label noise was raised in 25,000 stationary events, resampled
// (30,000, and means of two, in the last two rows), without and with the bound of 3.5
// spreads:
//
//	                          flipped from the first event on
//	                       0       5 %      10 %     20 %
//	sms                    0  0     0  0    22  2    45  0
//	spambase               0  0     6  3    24 10    32  2
//	pima                  11  7
//	spam around the ham   42  2             37  0    37  0
//
// The bound costs spambase 50 events at 10 %, spam-drift and SpamAssassin none. At 3
// spreads spam around the ham has 8, at 5 all have 5 or fewer, but spambase waits 300
// events.
//
// At 60 inputs the noise watch costs 6 µs an event, 2.5 times an update of the head,
// and 27 µs while ε > .01; nearly all of it is SNRs, which run in the background. The
// others cost 22 and 11 ns (-bench NoiseWatch). Its state is 169 kB, mostly the
// window.
//
// # Invariants
//
//   - An owner that follows the protocol of [LabelNoise] holds the same bytes
//     however long a job takes and however often it was lost.
//   - Nothing that makes a state or a Report takes its exponentials and logarithms
//     from package math.
package drift
