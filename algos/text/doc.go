// Package text implements the experts: learners over many hashed features. An expert
// gives a head its log-odds of spam, without an uncertainty. [Messages] and [Vectors]
// register the experts, and say how to add one:
//
//	entry := text.ByName(text.TextWords)
//	expert := entry.New(18)
//	entry.Reads.Read(hasher, &view, &text.Parts{Text: body})
//	score := expert.Score(&view) // score.Inputs go to the head
//	counted := expert.Learn(&view, score, spam, 1)
//	expert.Withdraw(&view, spam, counted) // undoes Learn if counted > 0
//
// [AdaGrad] and [NaiveBayes] hold one table of 2^b pairs of float32. A feature is one pair
// and costs one cache line. A message has n features i with values u_i = v_i/‖v‖ of unit
// length; for binary features u_i = 1/√n. So an expert's answer does not grow with the
// length of a message or the unit of its numbers.
//
// [AdaGrad] is logistic regression with a step size per weight (Duchi, Hazan and
// Singer, Adaptive subgradient methods, JMLR 2011), without a bias. Label y in
// {0, 1}, weight ω in (0, 1]:
//
//	s = Σ w_i·u_i
//	g_i = ω(σ(s) − y)·u_i,  G_i ← G_i + g_i²,  w_i ← w_i − rate·g_i/√(G_i + 10⁻⁶)
//
// Its input to the head is s·√((known+1)/(n+1)), clipped at ±10. known = n·Σu_i² over
// the features seen before, which is their number for binary features. A message of
// unknown words is no evidence.
//
// [NaiveBayes] counts, weighted by ω, the ham and spam messages a_i, b_i that
// hold feature i, and n0, n1 those learnt. With α = 10 and
// r_i = α(a_i+b_i)/(n0+n1+1),
//
//	s = Σ |u_i|·[ln((b_i+r_i)/(a_i+r_i)) + ln((n0+α)/(n1+α))]   over i with a_i+b_i > 0
//
// so that both rates shrink to the feature's overall rate. It learns only if its margin
// (2y−1)s ≤ 7. A negative value is another feature, counted in the neighbouring slot.
//
// Its surprise S measures how unlike all learnt messages a message is. With
// c_i = a_i+b_i, a feature's leverage is 1/(c_i+½): ½ is the prior. A message's leverage
// is the geometric mean of its features' leverages. S compares it with the leverage of a
// feature that every message has:
//
//	S = Σ u_i²·ln((n0+n1+α)/(c_i+½))
//
// in nats: about 0 for features of all messages, ln((n0+n1+α)/½) for features of none.
// The logarithm of c_i+½ is Mitchell's, which is too low by at most .06 nats. (A sum of
// leverages would depend only on the few features never seen. AdaGrad's G_i cannot replace
// counts: they hardly grow with messages that are well predicted.)
//
// Pool combines experts that learnt different messages into one answer.
//
// Sums over features run in feature order, in float64. The tables hold float32: weights
// are rounded to the nearest, counts beyond 2¹⁴ stochastically. Score and Learn cost O(n)
// and allocate nothing. An expert takes 8·2^b bytes.
//
// Most of the time is spent waiting for cache lines. So call an expert's Prefetch before
// hashing the features of the next expert.
package text
