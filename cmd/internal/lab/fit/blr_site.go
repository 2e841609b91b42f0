package fit

import (
	"context"

	"hamlet/algos/blr"
)

func init() { register("blr.site", blrSite) }

// A blrSiteRequest is one event, σ(y·z) under the belief z ~ N(m, a), in nats and
// nats². At a = 0, ξ = |m| and the bound is ln σ(ym). Squares of moments beyond 1e100
// overflow float64, so they are refused.
type blrSiteRequest struct {
	M float64 `json:"m" in:"[-1e100,1e100]"`
	A float64 `json:"a" in:"[0,1e100]"`
	Y float64 `json:"y" in:"±1"`
}

type blrSiteReply struct {
	Xi       float64 `json:"xi"`
	Lambda   float64 `json:"lambda"`
	LogBound float64 `json:"log_bound"`
	RVGAH    float64 `json:"rvga_h"`
	RVGAR    float64 `json:"rvga_r"`
}

func blrSite(_ context.Context, q *blrSiteRequest) (*blrSiteReply, error) {
	jj := blr.JaakkolaJordan.Solve(q.M, q.A, q.Y, 1)
	rvga := blr.ExactRVGA.Solve(q.M, q.A, q.Y, 1)
	return &blrSiteReply{
		Xi:       jj.Xi,
		Lambda:   blr.Lambda(jj.Xi),
		LogBound: jj.Evidence,
		RVGAH:    rvga.H,
		RVGAR:    rvga.R,
	}, nil
}
