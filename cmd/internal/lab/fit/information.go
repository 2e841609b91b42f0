package fit

import (
	"context"
	"math"

	"hamlet/algos/lab/information"
)

func init() { register("information", informationOf) }

// A request has either joint, or p and q.
type informationRequest struct {
	Joint [][]float64 `json:"joint" shape:"Y×X" in:"[0,1]" default:"null"`
	P     []float64   `json:"p" shape:"K" in:"[0,1]" default:"null"`
	Q     []float64   `json:"q" shape:"K" in:"[0,1]" default:"null"`
}

// Values are in bits, except the coefficient. Fields that do not apply are left out. kl
// is null if it is infinite.
type informationReply struct {
	HX                *float64  `json:"h_x,omitempty"`
	HY                *float64  `json:"h_y,omitempty"`
	HXY               *float64  `json:"h_xy,omitempty"`
	HXGivenY          *float64  `json:"h_x_given_y,omitempty"`
	HYGivenX          *float64  `json:"h_y_given_x,omitempty"`
	MutualInformation *float64  `json:"mutual_information,omitempty"`
	HP                *float64  `json:"h_p,omitempty"`
	HQ                *float64  `json:"h_q,omitempty"`
	KL                **float64 `json:"kl,omitempty"`
	Bhattacharyya     *float64  `json:"bhattacharyya,omitempty"`
}

func informationOf(_ context.Context, q *informationRequest) (*informationReply, error) {
	if q.Joint != nil {
		if q.P != nil || q.Q != nil {
			return nil, wrong("joint", "given with p or q: want one or the other")
		}
		return jointInformation(q.Joint)
	}
	var problems []error
	for _, d := range []struct {
		name string
		p    []float64
	}{{"p", q.P}, {"q", q.Q}} {
		if d.p == nil {
			problems = append(problems, wrong(d.name, "missing: want joint, or p and q"))
		} else if err := information.Check(d.p); err != nil {
			problems = append(problems, wrong(d.name, "%w", err))
		}
	}
	if err := joined(problems); err != nil {
		return nil, err
	}
	kl := new(float64)
	if *kl = information.Divergence(q.P, q.Q); math.IsInf(*kl, 1) {
		kl = nil
	}
	return &informationReply{
		HP: new(information.Entropy(q.P)), HQ: new(information.Entropy(q.Q)),
		KL: &kl, Bhattacharyya: new(information.Bhattacharyya(q.P, q.Q)),
	}, nil
}

func jointInformation(p [][]float64) (*informationReply, error) {
	j, err := information.NewJoint(p)
	if err != nil {
		return nil, wrong("joint", "%w", err)
	}
	return &informationReply{
		HX: new(j.EntropyX()), HY: new(j.EntropyY()), HXY: new(j.Entropy()),
		HXGivenY: new(j.EntropyXGivenY()), HYGivenX: new(j.EntropyYGivenX()),
		MutualInformation: new(j.MutualInformation()),
	}, nil
}
