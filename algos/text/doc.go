// Package text implements the experts: learners over many hashed features. An expert
// gives a head its log-odds of spam, without an uncertainty. [Messages] and [Vectors]
// register the experts, and say how to add one:
//
//	e := text.ByName(text.TextWordsBayes)
//	expert := e.New(text.NewColumn(18 + e.Reads.Bits))
//	e.Reads.Read(feature.NewHasher(18+e.Reads.Bits), &view, &text.Parts{Text: body})
//	score := expert.Score(&view) // score.Inputs go to the head
//	counted := expert.Learn(&view, score, spam, 1)
//	expert.Withdraw(&view, spam, counted) // undoes Learn if counted > 0
//
// [Set] names the sets of experts: ten are full, four are lean. Experts that read the
// same [List] share one hashing and one [Table], where a feature's pairs of float32 are
// neighbours. A message has n features i with values u_i = v_i/‖v‖, or 1/√n if they are
// binary: length and unit do not matter. All inputs are clipped at ±10.
//
// # AdaGrad
//
// [AdaGrad] is logistic regression with a step size per weight (Duchi, Hazan and Singer,
// Adaptive subgradient methods, JMLR 2011), without a bias. Label y in {0, 1}, weight ω in
// (0, 1]:
//
//	s = Σ w_i·u_i
//	g_i = ω(σ(s) − y)·u_i,  G_i ← G_i + g_i²,  w_i ← w_i − rate·g_i/√(G_i + 10⁻⁶)
//
// Its input is s·(known+1)/(n+1): unknown words are no evidence. known = n·Σu_i² over the
// features seen before. Lean experts take the root of that share. Full ones learn up to the
// margin (2y−1)s ≤ 8. With Damp d, s and g_i are divided by n^d.
//
// Above, ω cancels in a feature's first step, g/√g²: a doubtful label moves new words by
// nearly a whole step. A robust twin takes g_i without ω, and learns only if c = 2ω−1 > 0:
//
//	w_i ← w_i − c·rate·g_i/√(G_i + g_i² + 10⁻⁶),  G_i ← G_i + c·g_i²
//
// # Naive Bayes
//
// [NaiveBayes] counts, weighted by ω, the ham and spam messages a_i, b_i that hold feature
// i, and n0, n1 those learnt. N_y = n_y+α. Over the features with a_i+b_i > 0,
//
//	t_i = α(a_i+b_i)/(n0+n1+1),  r_i = ln((b_i+t_i)/(a_i+t_i)) + ln(N0/N1)
//	s = Σ |u_i|·r_i
//	c = 2·Σ n·u_i²·r_i³/(Σ n·u_i²·r_i² + 1)
//	z = Σ |u_i|·clip((b_i/N1 − a_i/N0)/√(p_i(1−p_i)(1/N0+1/N1)), ±6),  p_i = (a_i+b_i+½)/(N0+N1)
//
// r_i shrinks both rates to the feature's overall rate. c is twice a contraharmonic mean:
// what the few loud features say. z sums standardised differences of rates. An expert gives
// the first one, two or three to the head, and learns up to a margin of s: 20 nats for
// full's 4-grams, else 7. A negative value is another feature, in the neighbouring slot.
//
// Its surprise S, in nats, compares the geometric mean of the features' leverages
// 1/(a_i+b_i+½) with that of a feature of every message. Its ln is off by at most .06 nats:
//
//	S = Σ u_i²·ln((n0+n1+α)/(a_i+b_i+½))
//
// # Other experts
//
// [ByteModel] predicts each of the first 1,000 bytes of T from those before it, once with
// the counts of ham and once with those of spam. For class y, with C_y a string's count and
// N_y the bytes learnt,
//
//	p_y = (C_y(byte)+½)/(N_y+128);  for L = 2 … 5:  p_y ← (g_y+2p_y)/(max(c_y, g_y)+2)
//
// where g_y counts the last L bytes and c_y the L−1 before the last. S sums ln(p₁/p₀),
// each within ±5, over n bytes: s = S/√(n+1), m = 10·S/(n+21). It learns if (2y−1)s ≤ 7.
//
// [Personal] experts learn each tenant's mail apart. A [Frozen] expert never learns.
//
// # What an Entry tells a model
//
//   - Mean, Variance: the prior of an input's weight, 1.2/k and .25/k for k opinions.
//   - Crossed: the head also has the inputs' products with two facts, HTML and length.
//   - Witness: the trust of a label depends on the inputs, and not only on the head.
//   - EarlyGain A: after t events the head's input is (1 + A·e^(−t/30)) times as large.
//
// # Rules
//
// Sums run in feature order, in float64. Weights are rounded to the nearest float32, counts
// beyond 2¹⁴ stochastically. Score and Learn cost O(n) and allocate nothing. An expert takes
// 8·2^b bytes. Give a table's Memory to the hasher's LoadAhead. Prefetch what it has not loaded
// before the next list is hashed.
package text
