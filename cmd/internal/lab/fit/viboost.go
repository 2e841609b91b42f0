package fit

import (
	"context"

	"hamlet/algos/lab/viboost"
)

func init() {
	registerClassifier("viboost", viBoost)
	register("viboost.stage", viBoostStage)
	register("gibbs", gibbs)
}

// noisePrior is the prior of the model of noisy labels.
type noisePrior struct {
	Mu0      float64   `json:"mu0" default:"1" in:"[1e-90,1e90]"`
	Mu0Prime float64   `json:"mu0_prime" default:"1" in:"[1e-90,1e90]"`
	Zeta     []float64 `json:"zeta" shape:"2" default:"[1,1]" in:"[1e-90,1e90]"`
}

func (q *noisePrior) prior() viboost.Prior {
	return viboost.Prior{Mu0: q.Mu0, Mu0Prime: q.Mu0Prime, Zeta: [2]float64{q.Zeta[0], q.Zeta[1]}}
}

type viBoostRequest struct {
	examples
	weighted
	tested
	noisePrior
	Rounds     int     `json:"rounds" default:"50" in:"[1,1048576]"`
	Inner      int     `json:"inner" default:"10" in:"[1,1048576]"`
	Tau        float64 `json:"tau" default:"1" in:"[1e-6,1e6]"`
	Mode       string  `json:"mode" in:"approx|exact|mixed"`
	TypeUpdate string  `json:"type_update" in:"mode|exact"`

	// With rounds every round makes inner passes. With elbo, algorithm 1's own rule, a round
	// ends with the first pass by which the ELBO rises by less than elbo_gain nats, or
	// after 1,000; inner is not used.
	Stop     string  `json:"stop" in:"rounds|elbo"`
	ELBOGain float64 `json:"elbo_gain" default:"1e-4" in:"(0,∞)"`
	// once sets α in the first pass of a round alone (option b of section 5).
	AlphaUpdate string `json:"alpha_update" in:"pass|once"`
}

// The last pass computes omega from the previous φ. Eta, log_norm and elbo belong to the
// last φ; elbo is the whole of (91) for that omega.
type viBoostRound struct {
	stump                // polarity is always 1
	Alpha      float64   `json:"alpha"`
	Omega      []float64 `json:"omega"`
	Eta        []float64 `json:"eta"`
	SNR        float64   `json:"snr"`
	NoiseGrade float64   `json:"noise_grade"`
	ELBO       float64   `json:"elbo"`
	LogNorm    float64   `json:"log_norm"`
	Inner      int       `json:"inner"`
	TrainError float64   `json:"train_error"`
}

type viBoostReply struct {
	Rounds []viBoostRound `json:"rounds"`
	H      []float64      `json:"h"`
	Phi    []float64      `json:"phi"`
}

func viBoost(ctx context.Context, q *viBoostRequest) (*viBoostReply, Classifier, error) {
	cfg := viboost.Config{
		Prior: q.prior(), Rounds: q.Rounds, Inner: q.Inner, Tau: q.Tau, Bound: true, Weights: q.Weights,
		Gain: q.ELBOGain, WeighOnce: q.AlphaUpdate == "once",
	}
	if q.Stop == "elbo" {
		cfg.Stop = viboost.ByELBO
	}
	switch q.Mode {
	case "exact":
		cfg.Weighting = viboost.Exact
	case "mixed":
		cfg.Weighting = viboost.Mixed
	}
	if q.TypeUpdate == "exact" {
		cfg.Types = viboost.Expectation
	}
	b, err := train(ctx, q.X, q.Y, viboost.New, cfg)
	if err != nil {
		return nil, nil, err
	}
	r := &viBoostReply{H: make([]float64, len(q.X)), Phi: make([]float64, len(q.X))}
	for _, o := range b.Rounds() {
		r.Rounds = append(r.Rounds, viBoostRound{
			stump: stumpOf(o.Stump),
			Alpha: o.Alpha, Omega: o.Omega[:], Eta: o.Eta[:], SNR: o.SNR(), NoiseGrade: o.NoiseGrade(),
			ELBO: o.ELBO, LogNorm: o.LogNorm, Inner: o.Passes, TrainError: o.TrainError,
		})
	}
	b.LogOddsTo(r.H)
	b.PhiTo(r.Phi)
	return r, b.Ensemble(), nil
}

type viBoostStageRequest struct {
	noisePrior
	Y     []float64 `json:"y" shape:"N" in:"±1"`
	H     []float64 `json:"h" shape:"N" in:"±1"`
	HPrev []float64 `json:"h_prev" shape:"N" in:"[-1e90,1e90]"`
}

// Elbo is the last of elbo_trace. Both include the prior's normalisers.
type viBoostStageReply struct {
	ELBO      float64   `json:"elbo"`
	ELBOTrace []float64 `json:"elbo_trace"`
	Phi       []float64 `json:"phi"`
	Eta       []float64 `json:"eta"`
	Omega     []float64 `json:"omega"`
}

func viBoostStage(ctx context.Context, q *viBoostStageRequest) (*viBoostStageReply, error) {
	s, err := viboost.Infer(ctx, q.prior(), q.Y, q.H, q.HPrev)
	if err != nil {
		return nil, err
	}
	return &viBoostStageReply{ELBO: s.ELBO, ELBOTrace: s.Trace, Phi: s.Phi, Eta: s.Eta[:], Omega: s.Omega[:]}, nil
}

type gibbsRequest struct {
	noisePrior
	seeded
	F      [][]float64 `json:"f" shape:"M×N" in:"±1"`
	Y      []float64   `json:"y" shape:"N" in:"±1"`
	Sweeps int         `json:"sweeps" default:"2000" in:"[1,1099511627776]"` // after the burn-in
	BurnIn int         `json:"burn_in" default:"200" in:"[0,1099511627776]"`
}

// Xi, theta and w average their conditional means; c and c2 average draws.
type gibbsReply struct {
	C     []float64 `json:"c"`
	C2    []float64 `json:"c2"`
	Xi    float64   `json:"xi"`
	Theta float64   `json:"theta"`
	W     []float64 `json:"w"`
}

func gibbs(ctx context.Context, q *gibbsRequest) (*gibbsReply, error) {
	cfg := viboost.GibbsConfig{Prior: q.prior(), Sweeps: q.Sweeps, BurnIn: q.BurnIn}
	m, err := viboost.Gibbs(ctx, cfg, q.F, q.Y, q.source())
	if err != nil {
		return nil, err
	}
	return &gibbsReply{C: m.C, C2: m.C2, Xi: m.Xi, Theta: m.Theta, W: m.W}, nil
}
