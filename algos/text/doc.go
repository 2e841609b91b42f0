// Package text implements the experts: learners over hashed features that see much, do
// not know how sure they are, and give a head their log-odds of spam. All are an
// [Expert], and [Messages] and [Vectors] register them; the comment there says how to
// add one:
//
//	entry := text.ByName(text.TextWords)
//	expert := entry.New(18)
//	entry.Reads.Read(hasher, &view, &text.Parts{Text: body})
//	score := expert.Score(&view) // score.Inputs go to the head
//	counted := expert.Learn(&view, score, spam, 1)
//	expert.Withdraw(&view, spam, counted) // takes it back, if it was counted
//
// [AdaGrad] and [NaiveBayes] hold one table of 2^b pairs of float32, a pair to a feature, so
// that a feature costs one cache line. A message has n features i with values
// v_i of unit length; binary features are the case v_i = 1/√n, which is the
// measured recipe, and u_i = v_i/‖v‖ is its generalisation to named numbers:
// an expert's answer then does not grow with the length of a message or the
// unit of its numbers.
//
// [AdaGrad] is logistic regression with a step size per weight (Duchi, Hazan and
// Singer, Adaptive subgradient methods, JMLR 2011), without a bias. Label y in
// {0, 1}, weight ω in (0, 1]:
//
//	s = Σ w_i·u_i
//	g_i = ω(σ(s) − y)·u_i,  G_i ← G_i + g_i²,  w_i ← w_i − rate·g_i/√(G_i + 10⁻⁶)
//
// Its input to the head is s·√((known+1)/(n+1)), known = n·Σu_i² over features
// seen before (for binary features: their number), because a message of unknown
// words is no evidence; then clipped at ±10.
//
// [NaiveBayes] counts, weighted by ω, the ham and spam messages a_i, b_i that
// hold feature i, and n0, n1 those learnt. With α = 10 and
// r_i = α(a_i+b_i)/(n0+n1+1),
//
//	s = Σ |u_i|·[ln((b_i+r_i)/(a_i+r_i)) + ln((n0+α)/(n1+α))]   over i with a_i+b_i > 0
//
// so that both rates shrink to the feature's overall rate. It learns only if its
// margin (2y−1)s ≤ 7. A value says how much a feature counts, its sign is part
// of the feature: a negative value is counted in the neighbouring slot.
//
// It also says how unlike all that it learnt a message is, its surprise. A count and
// a prior of ½ are the precision of a feature's rate, so that 1/(c_i+½), c_i = a_i+b_i,
// is its leverage. The message's is their geometric mean, compared with that of a
// feature of every message:
//
//	S = Σ u_i²·ln((n0+n1+α)/(c_i+½))
//
// in nats: about 0 for what all messages hold, ln((n0+n1+α)/½) for what none held.
// The logarithm of c_i+½ is Mitchell's, which is too low by at most .06 nats. A sum
// of leverages would be that of the few features never seen. The AdaGrad experts' G_i
// are no counts: they hardly grow with messages that are known already.
//
// Experts that learnt different messages answer as one by Pool.
//
// Sums over features run in the order of the features, in float64; what is
// stored is rounded to float32: weights to the nearest, counts beyond 2¹⁴ up or down
// so that they are right on the average. Scoring costs O(n) and allocates nothing, so
// does learning. Memory is 8·2^b bytes each.
//
// Most of the time goes into waiting for cache lines. So call an expert's Prefetch
// before hashing the features of the next one.
package text
