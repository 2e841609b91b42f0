package fit

import (
	"math"
	"testing"
)

// Four rows by hand: of the cuts 1.5, 2.5 and 3.5 the first and the last leave one
// row of four wrong, and the first wins.
const fourRows = `"x": [[1], [2], [3], [4]], "y": [-1, 1, -1, 1]`

func sameNumber(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-14*max(1, math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestAdaBoostByHand(t *testing.T) {
	r := reply[adaBoostReply](t, `{"algorithm": "adaboost", "rounds": 1, `+fourRows+`}`)
	o := r.Rounds[0]
	if o.Feature != 0 || o.Threshold != 1.5 || o.Polarity != 1 || o.TrainError != 0.25 || o.Epsilon != 0.25 {
		t.Errorf("round %+v", o)
	}
	sameNumber(t, "α", o.Alpha, math.Log(3)/2)
	sameNumber(t, "Z", o.Z, math.Sqrt(3)/2)
	sameNumber(t, "∏Z", o.Bound, o.Z)
	sameNumber(t, "exp(−2Σγ²)", o.GammaBound, math.Exp(-0.125))
	for i, want := range []float64{1, 1, -1, 1} {
		sameNumber(t, "margin", r.Margins[i], want)
	}
	sameNumber(t, "p", r.P[0], 0.25) // odds 1 : 3
	sameNumber(t, "f", r.F[3], math.Log(3)/2)
}

func TestRealAdaBoostByHand(t *testing.T) {
	r := reply[realAdaBoostReply](t, `{"algorithm": "realadaboost", "rounds": 1, `+fourRows+`}`)
	o := r.Rounds[0]
	left, right := *o.Left, *o.Right
	if o.Feature != 0 || *o.Threshold != 1.5 || o.TrainError != 0.25 {
		t.Errorf("round %+v", o)
	}
	sameNumber(t, "left", left, math.Log(0.25/0.5)/2)
	sameNumber(t, "right", right, math.Log(0.75/0.5)/2)
	sameNumber(t, "Z", o.Z, 0.25*math.Exp(left)+0.5*math.Exp(-right)+0.25*math.Exp(right))
}

func TestBHBoostByHand(t *testing.T) {
	r := reply[bhBoostReply](t, `{"algorithm": "bhboost", "rounds": 1, "bins": 3, `+fourRows+`}`)
	o := r.Rounds[0]
	if o.Feature != 0 || len(o.Edges) != 2 || o.Edges[0] != 2 || o.Edges[1] != 3 || o.TrainError != 0.25 {
		t.Errorf("round %+v", o) // bins {1}, {2}, {3, 4}: both classes in the last, f = 0 counts as −1
	}
	const e = 1.0 / 12
	sameNumber(t, "BC", o.BC, 0.25)
	for k, want := range []float64{math.Log(e/(0.25+e)) / 2, math.Log((0.25+e)/e) / 2, 0} {
		sameNumber(t, "score", o.Scores[k], want)
	}
}

func TestAnyBoostByHand(t *testing.T) {
	r := reply[anyBoostReply](t, `{"algorithm": "anyboost", "rounds": 1, "cost": "logit", "step": "theorem", `+fourRows+`}`)
	o := r.Rounds[0]
	if o.Feature != 0 || o.Threshold != 1.5 || o.Polarity != 1 || o.Stopped == nil || *o.Stopped != "rounds" {
		t.Errorf("round %+v", o)
	}
	sameNumber(t, "α", o.Alpha, 0.5) // mean(2σ(0)·yh) = (3 − 1)/4
	sameNumber(t, "cost", o.Cost, (3*math.Log1p(math.Exp(-1))+math.Log1p(math.E))/4)
	exp := reply[anyBoostReply](t, `{"algorithm": "anyboost", "rounds": 1, `+fourRows+`}`)
	sameNumber(t, "α", exp.Rounds[0].Alpha, math.Log(3)/2)
	sameNumber(t, "cost", exp.Rounds[0].Cost, math.Sqrt(3)/2)
	tanh := reply[anyBoostReply](t, `{"algorithm": "anyboost", "cost": "tanh", `+fourRows+`}`)
	if o := tanh.Rounds[len(tanh.Rounds)-1]; o.Alpha != 64 || o.Cost != 0.5 || o.Stopped == nil || *o.Stopped != "no minimum" {
		t.Errorf("tanh, line search: %+v", o)
	}
}
