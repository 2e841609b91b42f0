// Package blr implements Bayesian logistic regression with a full Gaussian belief
// about the weights,
//
//	p(y | x, β) = σ(y·βᵀx),  y = ±1,   β ~ N(w, V),
//
// learnt one event at a time (Posterior) or from all events at once (FitBatch).
// The sources are J. Drugowitsch, Bayesian logistic regression (2010), whose
// equation numbers are quoted, and M. Lambert, S. Bonnabel, F. Bach, The recursive
// variational Gaussian approximation, Statistics and Computing (2022).
//
// # One event
//
// The likelihood of one event depends on β only through z = βᵀx. It is replaced
// by a Gaussian in z, so that the belief stays Gaussian. In the natural
// parameters Λ = V⁻¹, η = Λw, which are the truth here, that is a sum,
//
//	Λ ← Λ + h·xxᵀ,   η ← η + (r + h·m′)·x,   m′ = m + r·a,
//
// with m = wᵀx and a = xᵀVx. V, w and ln|V| are kept beside it: with u = Vx,
//
//	w ← w + r·u                  (1)
//	V ← V − h/(1+ha)·uuᵀ         (2)
//	ln|V| ← ln|V| − ln(1+ha)     (3)
//
// (2) is the Sherman–Morrison inverse of Λ + h·xxᵀ and (3) the determinant
// lemma. To see (1), multiply Λ′w′ = η + (r+hm′)x by V′ = V − h/(1+ha)·uuᵀ:
// w′ = w + [(r + h(m+ra)) − hm]/(1+ha)·u = w + r·u. An event costs O(D²): one
// product of a symmetric matrix and a vector and two updates of a triangle; it
// factorises nothing and allocates nothing.
//
// # Sites
//
// Only the scalars h and r depend on how the likelihood is approximated. All sites
// take it to a power φ in (0, 1], the trust in the label, and solve their fixed
// point in scalars; Site.Solve is that alone.
//
// JaakkolaJordan bounds it from below, touching it at z = ±ξ, with
// λ(ξ) = tanh(ξ/2)/4ξ and q = 1 + 2φλa:
//
//	h = 2φλ,   r + h·m′ = φy/2,   r = (φy/2 − 2φλm)/q,
//	ξ² = a/q + ((m + φya/2)/q)²
//
// η is therefore the prior's plus Σ φyx/2 exactly, whatever the ξ are. These are
// eqs. 51–56 multiplied out; the printed iteration of matrices is not needed, and
// its stopping rule on the bound, which depends on ln|V| and so on history, is
// there only on request (Config.XiTolerance).
//
// R-VGA is the Gaussian nearest in KL(q‖·) to belief times likelihood. Its
// stationary point is, under z ~ N(m′, s′) after the event,
//
//	r = φy·E[σ(−yz)],   h = φ·E[σ(z)σ(−z)],   s′ = a/(1+ha).
//
// Setting the derivatives of KL(q‖belief) − φE[ln σ(yz)] by the mean and the
// variance of q to zero gives both, since ∂E/∂m′ and 2∂E/∂s′ of a function are the
// expectations of its first and second derivative (Bonnet, Price). The site is
// implicit, it looks at the belief after the event; the explicit step (extended
// Kalman, Newton) is chaotic where p saturates. RVGA, the default, takes the two
// expectations by the probit approximation E[σ(z)] ≈ σ(m′/√(1+πs′/8)), ExactRVGA
// by quadrature.
//
// # All events at once
//
// FitBatch is the paper's variational fit with a Gamma hyperprior on one precision
// α of all weights or, for automatic relevance determination, on one of each.
//
// # Prediction
//
// About an x the belief says z ~ N(m, a) (Moments), and everything else follows
// from m and a: Exact is E[σ(z)] by quadrature, Moderate and Probit its usual
// approximation, which Prob serves (off by .017 at most, and never across ½),
// Interval is a credible interval of p. The paper's "predictive density" (35) is a
// lower bound for either label; Bounds has both, which do not add up to 1,
// Normalised the share of the first. Contributions and GroupContributions split m
// and a among inputs, or groups of inputs with their covariance.
//
// # What has been learnt can be changed
//
// Update returns the Record of its site. With a half-life of H events the sites
// fade by a power prior: ρ = 2^(−1/H), and every 50th update is followed by
// Λ ← ρ⁵⁰Λ + (1−ρ⁵⁰)Λ₀, η likewise. Refresh and Sweep solve sites again under the
// belief of today; Unlearn subtracts one as it stands now; Merge adds the sites of
// posteriors that learnt apart; FitPrior brings the prior's width to what the
// events say. Check holds a posterior that was read from somewhere against itself.
//
// Why refresh: an early site was solved with the little that was known then.
// JaakkolaJordan's early ξ stay too small, so that precision is overstated, w
// shrunk, and the order of arrival moves probabilities. Sweeps climb the bound to
// the fixed point of the batch fit for the prior. Log loss on held-out quarters,
// mean of five splits, prior precision 1, and in parentheses the paper's, D
// (2026-11-21, `go test -v -run LogLoss ./algos/blr`; five other splits of
// spambase move all rows by up to .006):
//
//	            spambase, log1p, standardised          letter-ab
//	            as learnt       three sweeps           as learnt       three sweeps
//	jj          .1868 (.2270)   .1766 (.2005)          .0443 (.0979)   .0313 (.0622)
//	rvga        .1737 (.2059)   .1715 (.1948)          .0216 (.0707)   .0177 (.0529)
//	rvga-exact  .1729 (.2066)   .1714 (.1953)          .0240 (.0714)   .0193 (.0536)
//	batch       .1743                                  .0121
//
// # Is the belief too sure?
//
// Share of events whose true p lies in the 90 % interval, in simulated streams
// with weights from N(0, 1) and x = [1, normals], so that σ often saturates
// (2026-11-21, `go test -v -run Calibration ./algos/blr`):
//
//	D = 10: n = 200   1,000   5,000    D = 58: 200   1,000   5,000
//	rvga         88 %   89      87              88    87      88
//	  swept      90     89      88              89    90      88
//	jj           67     53      41              57    30      14
//	  swept      91     90      88              89    90      91     under RVGA
//
// Two things make a belief too sure. The site: Jaakkola and Jordan's curvature
// 2λ(ξ) = tanh(ξ/2)/2ξ falls as 1/ξ where the likelihood's own, E[σ(z)σ(−z)],
// falls as the chance that |z| is small, so that events whose outcome was certain
// count as measurements. The correction is to put the right curvature there:
// SetSite(RVGA) and a Sweep over the records. The prior: weights of another size
// than it says. Weights twice the prior's leave 45 % at D = 10 and n = 5,000;
// three rounds of FitPrior bring that to 88 %, weights .3 of the prior's from
// 76 % to 90 % at D = 58 and n = 1,000. Below some 15 events an input the width of
// the prior cannot be had from the events.
//
// # Blocks
//
// With Config.Block = K the matrices are written once in K events, and UpdateMany
// multiplies V by all events of a block that it is given at once. Each event is
// still predicted before it is learnt and solved under the belief before it:
//
//	Vₖx = V₀x + Σⱼ<ₖ gⱼ(uⱼᵀx)·uⱼ,   g = −h/(1+ha)
//
// needs the K×K numbers uⱼᵀx and no matrix but V₀. Results equal those of events
// one by one to rounding, and the bytes depend on the events and on K, not on how
// many were fetched together.
//
// # Speed
//
// Times as long as an event takes here, gonum's MulVec and SymRankOne take for V
// alone (2026-11-21, medians of ratios taken in turns on a busy Xeon,
// `go test -run - -bench 'AgainstGonum|Blocked' ./algos/blr`):
//
//	D = 57, the two kernels alone     2.6     in Go alone 2.2
//	D = 57, the whole event           1.4
//	D = 57, ExactRVGA                  .6
//	blocks of 64, D = 256             1.9
//	              D = 1,024           4.6
//	              D = 4,096           10 to 14    in Go alone 3 to 5
//
// An event, that is both parametrisations, evidence and site, takes 2 µs at
// D = 57, 5 with ExactRVGA. The inner loops are in Go and, where the CPU has
// AVX, in assembly: the kernels give the same bits, because a vector holds four
// outputs and never four terms of one sum. The next factor would take vectors of
// eight (AVX-512), which can keep the bits, or a second core, which can as well;
// fused multiply-add would be worth up to two and would change every model.
//
// # Invariants
//
// Λ is the prior's diagonal plus a positive semidefinite sum, so every pivot of
// its Cholesky factor is at least the prior's precision; a withdrawal that would
// end that is refused. Both matrices are kept as one triangle and cannot become
// asymmetric. V is made anew from Λ at counts of updates divisible by
// Config.Refactor, after forgetting and sweeps, when the residual
// |xᵀV(Λx) − xᵀx|/xᵀx, probed at every 64th update and at every correction,
// exceeds 1e−8, and after an event with ha > 10⁶. After a million random updates,
// withdrawals, refreshes and forgettings at D = 58 max|VΛ − I| is 5e−15
// (`-bench Million`). All of that is a function of the events alone, and so are
// the bytes: the same events give the same bits on every CPU (package logistic,
// and kernels that round every product and sum in one order).
package blr
