// Package viboost is boosting as Bayesian inference about labels of which some are
// noise, by variational inference.
//
//	data, err := boost.Quantise(rows, 64)
//	b, err := viboost.New(data, y, viboost.Config{Rounds: 50})
//	if err := b.Train(ctx); err != nil {
//		return err
//	}
//	p := b.Ensemble().Prob(x)
//	last, ok := b.Last()
//	snr := last.SNR()
//
// # Model
//
// A label is true or noise. The true label of x is +1 with log-odds
// F(x) = Σ cₘfₘ(x) over base classifiers f = ±1. A noisy one is +1 with log-odds ξ
// (the noise grade) for every x. A fraction θ of the labels is true:
//
//	wₙ ~ Bernoulli(θ),   P(yₙ | wₙ) = σ(yₙF(xₙ)) if wₙ = 1, σ(yₙξ) if not
//	c ~ v-Log([1,−1], 0, μ₀),  ξ ~ v-Log([1,−1], 0, μ₀′),  θ ~ Beta(ζ₁, ζ₂)
//
// with v-Log of package algos/lab/vlog. That covers labels that are flipped (S.2).
//
// # Update
//
// A round adds one base classifier h, a stump, to the log-odds H so far, and
// approximates the posterior of c, ξ, θ and w by
//
//	q(c) = v-Log(β, γ, μ):  β = [1, −1, −yₙh(xₙ)],  γ = [0, 0, −H(xₙ)h(xₙ)],  μ = [μ₀, μ₀, φₙ]
//	q(ξ) = v-Log([1,−1], 0, ω):  ω₁ = μ₀′ + Σ_{y=−1} (1−φₙ),  ω₂ the same of y = +1
//	q(θ) = Beta(η):  η₁ = ζ₁ + Σ φₙ,  η₂ = ζ₂ + Σ (1−φₙ)
//	q(wₙ = 1) = φₙ = σ(ln κₙ):  ln κₙ = ψ(η₁) − ψ(η₂) + ψ(ω₀) − ψ(ω₁ or ω₂) − E_c[ln(1+e^(−yₙ(H+ch)))]
//
// ω₀ = ω₁+ω₂, and the ψ(ω) is that of the label's sign. h is the stump whose q(c)
// has the mode farthest from 0, and α, that mode, becomes its weight. Then a fixed
// number of passes sets α, ω, φ, η in this order, and H ← H + αh. φ starts at 1 and
// η at (1, 1); both are carried from round to round. H is real valued.
//
// The SNR is η₁/η₂, true labels for each noisy one; its ceiling is (ζ₁+N)/ζ₂. The
// noise grade is ln ω₂/ω₁, the mode of ξ. φₙ is the probability that a label is
// true. Neither SNR nor η₂/(η₁+η₂) is a flip rate.
//
// # What the paper leaves open
//
// The mode is the approximate one (17) with τ = 1, for which ranking the stumps is
// AdaBoost's search, and E_c is taken at the mode. τ = 1 makes H about half of the
// log-odds, so Prob is under-confident; the noise watch is defined by it. All parameters
// of the prior are 1. Candidates are stumps at midpoints, polarity +1, the sign in the
// weight; of equal ones the first wins. A sample weight multiplies φₙ and 1−φₙ wherever
// they are summed. Other choices are in algos/lab/viboost.
//
// # Cost
//
// A round is one search (N·D additions), N exponentials, and two to three operations a
// row and pass: two to three rounds of AdaBoost (algos/lab/viboost/MEASURED.md). It
// allocates nothing.
//
// Source: A. Lorbert, D. Blei, R. Schapire, P. Ramadge, A Bayesian boosting model
// (2012), algorithm 1, S.4 and S.5.
package viboost
