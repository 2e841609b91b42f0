package fit

import (
	"math"
	"slices"
	"testing"

	"hamlet/algos/boost"
	"hamlet/algos/ensemble"
	"hamlet/algos/lab/boosting"
)

// The door has every kind of --ensembles, in their order, and its answers are those of
// the ensemble that the learner builds from the window.
func TestEnsembleIsTheLearners(t *testing.T) {
	var kinds []string
	for _, k := range ensemble.Kinds() {
		kinds = append(kinds, string(k))
	}
	if words := algorithms["ensemble"].request.field("kind").words; !slices.Equal(words, kinds) {
		t.Fatalf("the door has %v, --ensembles %v", words, kinds)
	}
	x, y, ω := weightedRows()
	w := &ensemble.Window{Dim: len(x[0]), Labels: y, Weights: ω}
	for _, row := range x {
		for _, v := range row {
			w.Inputs = append(w.Inputs, float32(v))
		}
	}
	for i, built := range ensemble.Build(t.Context(), ensemble.Kinds(), w) {
		r := reply[ensembleReply](t, requestLine(t, "ensemble", "x", x, "y", y, "weights", ω, "kind", kinds[i]))
		for n, row := range x {
			if want := built.Ensemble.LogOdds(row); r.LogOdds[n] != want || r.P[n] != built.Ensemble.Prob(row) {
				t.Errorf("%s, row %d: log-odds %v, the learner's ensemble has %v", kinds[i], n, r.LogOdds[n], want)
			}
		}
	}
}

// One tree by hand: at depth 1 the cut with the largest gain, leaves 0.3·clip(G/(H+1)).
func TestLogitTreesByHand(t *testing.T) {
	r := reply[logitTreesReply](t, `{"algorithm": "logit-trees", "depth": 1, "rounds": 1, `+fourRows+`}`)
	if len(r.Rounds) != 1 || len(r.Rounds[0].Splits) != 1 {
		t.Fatalf("%+v", r)
	}
	// G = ±½ a row, H = ½ a row: at 1.5 the sides have −½ and +½ over H+1 = 1.5 and 2.5.
	if s := r.Rounds[0].Splits[0]; s.Feature != 0 || s.Threshold != 1.5 {
		t.Errorf("split %+v", s)
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-7 { // slopes are in fixed point
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("left leaf", r.Rounds[0].Leaves[0], -0.3*0.5/1.5)
	near("right leaf", r.Rounds[0].Leaves[1], 0.3*0.5/2.5)
	near("f", r.F[0], -0.1)
	z := []float64{1 / (1 + math.Exp(0.2)), 1 / (1 + math.Exp(0.12)), 1 / (1 + math.Exp(-0.12))}
	near("D", r.D[2], z[2]/(z[0]+2*z[1]+z[2]))
}

// Reference: slides 8, 12, 20, 21, from the stumps of adaboost by definition.
func TestBoundsByDefinition(t *testing.T) {
	x, y, _ := weightedRows()
	const rounds, δ = 12, 0.1
	ada := reply[adaBoostReply](t, requestLine(t, "adaboost", "x", x, "y", y, "rounds", rounds))
	r := reply[boostingBoundsReply](t, requestLine(t, "boosting.bounds", "x", x, "y", y, "rounds", rounds, "theta", []float64{0.1, 0.4}, "delta", δ))
	n := float64(len(y))
	f, product, γ2, alphas, least := make([]float64, len(y)), 1.0, 0.0, 0.0, 1.0
	for k, o := range ada.Rounds {
		h := boost.Stump{Feature: o.Feature, Threshold: o.Threshold, Polarity: o.Polarity}
		before, ε, errors := 0.0, 0.0, 0.0
		for i, row := range x {
			d := math.Exp(-y[i] * f[i])
			before += d
			if h.Value(row) != y[i] {
				ε += d
			}
		}
		ε /= before
		loss := 0.0
		for i, row := range x {
			f[i] += o.Alpha * h.Value(row)
			loss += math.Exp(-y[i]*f[i]) / n
			if (f[i] > 0) != (y[i] > 0) {
				errors += 1 / n
			}
		}
		product *= 2 * math.Sqrt(ε*(1-ε))
		γ2 += (0.5 - ε) * (0.5 - ε)
		alphas += o.Alpha
		least = min(least, 1-2*ε)
		got := r.Rounds[k]
		closeTo(t, "ε", got.Epsilon, ε)
		closeTo(t, "γ", got.Gamma, 0.5-ε)
		closeTo(t, "∏Z", got.Bound, product)
		closeTo(t, "∏Z, the mean of e^(−yf)", got.Bound, loss)
		closeTo(t, "exp(−2Σγ²)", got.GammaBound, math.Exp(-2*γ2))
		closeTo(t, "train error", got.TrainError, errors)
		closeTo(t, "VC bound", got.VCBound, boosting.VCBound(errors, k+1, len(y), len(x[0]), δ))
	}
	closeTo(t, "least edge", *r.LeastEdge, least)
	for _, m := range r.Thetas {
		share := 0.0
		for i := range y {
			if y[i]*f[i]/alphas <= m.Theta {
				share += 1 / n
			}
		}
		closeTo(t, "share", m.Share, share)
		closeTo(t, "margin bound", m.Bound, math.Exp(m.Theta*alphas)*product)
		if m.ErrorBound < share {
			t.Errorf("θ=%v: the bound on new errors %v is below the share %v", m.Theta, m.ErrorBound, share)
		}
	}
}

// Reference: slides 35 and 36: edges, value and margins stand in order, in AdaBoost and
// in repeated play, measured on the matrix of the stumps that the reply names.
func TestGameOfBoosting(t *testing.T) {
	x, y, _ := weightedRows()
	r := reply[gameBoostingReply](t, requestLine(t, "game.boosting", "x", x, "y", y, "rounds", 400))
	edge := func(d []float64) float64 {
		most := -1.0
		for _, s := range r.Stumps {
			h, e := boost.Stump{Feature: s.Feature, Threshold: s.Threshold, Polarity: s.Polarity}, 0.0
			for i, row := range x {
				e += d[i] * y[i] * h.Value(row)
			}
			most = max(most, e)
		}
		return most
	}
	margin := func(votes []float64) float64 {
		least := 1.0
		for i, row := range x {
			f := 0.0
			for j, s := range r.Stumps {
				f += votes[j] * boost.Stump{Feature: s.Feature, Threshold: s.Threshold, Polarity: s.Polarity}.Value(row)
			}
			least = min(least, y[i]*f)
		}
		return least
	}
	closeTo(t, "edge on the minimax weights", edge(r.D), r.Value)
	closeTo(t, "margin of the minimax votes", margin(r.Votes), r.Value)
	closeTo(t, "edge of hedge", r.Hedge.Edge, edge(r.Hedge.D))
	closeTo(t, "margin of hedge", r.Hedge.Margin, margin(r.Hedge.Votes))
	closeTo(t, "gap", r.Hedge.Gap, math.Sqrt(2*math.Log(float64(len(y)))/400))
	order := []float64{
		r.Value - r.Hedge.Gap, r.Hedge.Margin, r.Value, r.Hedge.Edge, r.Hedge.MeanEdge, r.Value + r.Hedge.Gap,
	}
	for k := 1; k < len(order); k++ {
		if order[k-1] > order[k]+1e-12 {
			t.Errorf("%v: out of order at %d", order, k)
		}
	}
	if len(r.AdaBoost.Edges) == 0 || slices.Min(r.AdaBoost.Edges) < r.Value-1e-12 || r.AdaBoost.Margin > r.Value+1e-12 {
		t.Errorf("AdaBoost: %+v, the value is %v", r.AdaBoost, r.Value)
	}
}

// Reference: bblr.txt, eq. 10: loss_start and loss_end are Σ σ(−γ·y·wᵀx) + λ/2·|w|², and
// the probability is σ(γ·wᵀx).
func TestSigmoidLossByDefinition(t *testing.T) {
	x, y, ω := weightedRows()
	w0 := []float64{1, -0.5, 0}
	r := reply[bblrFitReply](t, requestLine(t, "bblr.fit", "x", x, "y", y, "weights", ω, "variant", "sigmoid", "w0", w0, "lambda", 0.05))
	loss := func(w []float64) float64 {
		sum := 0.0
		for j := range w {
			sum += 0.05 / 2 * w[j] * w[j]
		}
		for i, row := range x {
			z := 0.0
			for j := range w {
				z += w[j] * row[j]
			}
			sum += ω[i] / (1 + math.Exp(r.Gamma*y[i]*z))
		}
		return sum
	}
	closeTo(t, "loss at the start", r.LossStart, loss(w0))
	closeTo(t, "loss at the end", r.LossEnd, loss(r.W))
	if r.LossEnd >= r.LossStart {
		t.Errorf("loss %v at the start, %v at the end", r.LossStart, r.LossEnd)
	}
}

// Real AdaBoost over logistic hypotheses: with step and rate 1, the first round's weight
// on each feature is ½ΣDyu, and f is half of the log-odds.
func TestRealAdaBoostLogisticByHand(t *testing.T) {
	r := reply[realAdaBoostReply](t, `{"algorithm": "realadaboost", "learner": "logistic", "rounds": 1, `+fourRows+`}`)
	o := r.Rounds[0]
	sd := math.Sqrt(1.25)
	w := 0.5 * (1.5 - 0.5 - 0.5 + 1.5) / 4 / sd // Σ yu/4, u = (x − 2.5)/sd
	sameNumber(t, "weight", *o.Weight, w)
	sameNumber(t, "bias", *o.Bias, 0)
	z, p := 0.0, 0.0
	for i, y := range []float64{-1, 1, -1, 1} {
		u := (float64(i+1) - 2.5) / sd
		z += math.Exp(-y*w*u/2) / 4
		p += 1 / (1 + math.Exp(-y*w*u)) / 4
		sameNumber(t, "f", r.F[i], w*u/2)
	}
	sameNumber(t, "Z", o.Z, z)
	sameNumber(t, "mean p", *o.MeanP, p)
}
