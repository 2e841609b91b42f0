// Package promise keeps a budget for lost ham: "of all ham at most one in a thousand is called
// spam". It also says how many errors to expect without labels.
//
//	var ham promise.Table
//	ham.Observe(logOdds, 1) // each ham whose label was asked for, judged before it was learnt
//	bound := ham.Threshold(0.001)
//	if bound.Promised() {
//		spam = logOdds >= bound.LogOdds
//	} // else not yet: at least bound.Missing more ham are needed
//
// One [Table] serves every budget. A model holds one for each tenant, and whoever answers reads the
// thresholds of its budgets off it.
//
// # The promise
//
// Let F(τ) be the probability that a ham has log-odds of at least τ, and b the budget. The threshold is the
// smallest edge τ of a cell at which the evidence for F(τ) < b, [confseq.Below], is at least 10. Then,
// if ham is like the ham before it,
//
//	P(at any moment F(threshold) ≥ b) ≤ 1/10.   (1)
//
// Many edges are tried, and looked at after each ham, but only one can do harm: τ*, the highest edge with
// F(τ*) ≥ b, which is fixed. The evidence falls with τ. So if a threshold of τ* or less is chosen, the
// evidence at τ* was at least 10 as well. That ever happens with a probability of 1/10, by
// Ville's inequality. No union over edges is needed. This is Theorem 1 of Bates, Angelopoulos, Lei, Malik
// and Jordan, "Distribution-free, risk-controlling prediction sets", Journal of the ACM 68(6), 2021; testing
// from strict to lax is fixed-sequence testing in Angelopoulos, Bates, Candès, Jordan and Lei, "Learn
// then test", 2021 (Annals of Applied Statistics 19(2), 2025). With confidence sequences in the place
// of bounds for one n it is the argument of Howard and Ramdas, "Sequential estimation of quantiles
// with applications to A/B testing and best-arm identification", Bernoulli 28(3), 2022, for one quantile.
//
// If F changes with time, the same holds for the average of F(τ) over the past for each fixed τ, but
// τ* moves, and (1) is no theorem. Ham that gets better costs spam. Ham that gets worse raises the threshold
// too late: MEASURED.md has streams that lose up to 1.7 times the budget. So withdraw a promise while an
// alarm says that the world changed.
//
// # What it rests on
//
// Each ham counts by its weight, least/probability (Horvitz and Thompson, 1952): probability is that
// with which its label was asked for, least the smallest one for mail above any threshold. It is known
// before the message: the policy says it. Below the thresholds, labels may be asked for more
// rarely, down to least/[MostWeight]. So it pays to ask about junked mail more often than about the rest.
//
// A ham is judged when its label is learnt, up to days after the answer. A model that learnt much alike in between
// judges it better than the answer did. So bursts of ham that is alike are undercounted.
//
// Labels that people volunteer say what was judged wrong, not how often, and must not be observed. A wrong
// label "ham" of a spam counts as lost ham: the promise holds, and catches less.
//
// # Memory
//
// At a sum of weights of [Forget] all cells are halved. An era lasts from one halving to the next. In
// each (1) holds: half of a logarithm of evidence is that of its root, whose expectation is at most 1
// by Jensen's inequality. No finite memory can hold a promise for ever.
//
// # A prior from p
//
// Calibrated p say how many ham to expect above a threshold. A valid use is in the choice of the bets alone,
// and they can gain little: no bet reaches evidence 10 before ln(10)/b = 2.3/b ham, and the ones in
// use need 3.0/b. A tenant of 200 ham is told "not yet" for every budget up to 1 %.
//
// # Errors without labels
//
// [Expected] counts the errors that are to be expected of verdicts, from p alone. [Contradiction] says when labels
// show more of them than that.
package promise
