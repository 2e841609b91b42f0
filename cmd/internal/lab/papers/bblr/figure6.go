package bblr

import (
	"context"
	"fmt"
	"math"
	"time"

	"hamlet/algos/lab/crf"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// figure6 shows an instance of the joint model, and an image.
var figure6 = experiment.Experiment{
	Name: "bblr/figure-6", Title: "Figure 6: an instance of the joint model",
	Where: "section 5.2, equation 40, figure 6",
	Claim: "A page makes a Bayesian network of its own: a label Y for each face, with features X below it, a " +
		"likeness D for two faces of different pictures, and a constraint S for each picture. Equation 40 is the " +
		"joint distribution.",
	Cost: 3 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, report *experiment.Report) error {
		all, err := experiment.Steps(ctx, r, "instances", 1, func(ctx context.Context, _ int) (instances, error) {
			return drawInstances(ctx, r)
		})
		if err != nil {
			return err
		}
		in := all[0]
		report.AtMost("100 pages", "largest difference of a face's probability and the sum of (40) over all labels",
			experiment.Exact(in.Difference), "0.000000001")
		report.AtMost("100 pages", "joint labels with two faces of the person in a picture",
			experiment.Exact(float64(in.Violated)), "0")
		report.AtMost("100 pages", "labels with a lower energy than the joint ones",
			experiment.Exact(float64(in.Lower)), "0")
		report.Show("100 pages", "joint labels right, %", experiment.Exact(in.Right))
		report.Chart(in.pageChart())
		for _, m := range in.Images {
			report.Chart(m.chart())
		}
		report.Note("The figure itself is a drawing. The rows check that the network is the equation; the pictures " +
			"show a synthetic page and a synthetic image of 6 × 8 pixels with outliers (see table 13).")
		return nil
	},
}

// instances are what the figure shows.
type instances struct {
	Difference      float64
	Violated, Lower int
	Right           float64
	Page            []face
	Images          []labelledImage
}

// A face of the page: whether it is of the person, and P(+1).
type face struct {
	Picture                 int
	Truth, MEM, MEMJoint, P float64
}

// A labelledImage is the truth and the labels of one model.
type labelledImage struct {
	Name        string
	Truth, Made []float64
}

func drawInstances(ctx context.Context, r *experiment.Run) (in instances, err error) {
	random := r.Rand("pages", 0)
	draw := drawPage(outliers, far)
	var train []crf.Sample
	for range 400 {
		train = append(train, draw(random))
	}
	fitted, err := fitModels(ctx, train)
	if err != nil {
		return in, err
	}
	faces, right := 0, 0
	for range 100 {
		s := draw(random)
		y, p := fitted[bblr3].Predict(s)
		in.compare(&fitted[bblr3], &s, y, p)
		for i := range y {
			faces++
			if y[i] == s.Y[i] {
				right++
			}
		}
		if len(y) == page.Faces && in.Page == nil {
			in.Page = facesOf(&fitted, s, p)
		}
	}
	in.Right = 100 * float64(right) / float64(faces)
	return in, in.drawImages(ctx, r)
}

// compare sums equation 40 over all labels of a page.
func (in *instances) compare(m *crf.Model, s *crf.Sample, y []float64, p *crf.Marginals) {
	n := len(y)
	var f crf.Field
	m.FieldTo(&f, *s)
	least := s.Graph.Energy(&f, y)
	total, target := 0.0, make([]float64, n)
	labels := make([]float64, n)
	for code := range 1 << n {
		for i := range labels {
			labels[i] = float64(2*(code>>i&1) - 1)
		}
		e := s.Graph.Energy(&f, labels)
		if e < least-1e-9 {
			in.Lower++
		}
		weight := math.Exp(least - e)
		total += weight
		for i, v := range labels {
			if v > 0 {
				target[i] += weight
			}
		}
	}
	for i, v := range target {
		in.Difference = max(in.Difference, math.Abs(v/total-p.Site[i]))
	}
	for l, q := range s.Graph.Pairs() {
		if s.Exclusive[l] && y[q[0]] > 0 && y[q[1]] > 0 {
			in.Violated++
		}
	}
}

// facesOf returns the probabilities of a page's faces.
func facesOf(fitted *[models]crf.Model, s crf.Sample, p *crf.Marginals) []face {
	var f crf.Field
	fitted[mem].FieldTo(&f, s)
	_, other := fitted[mem].Predict(s)
	faces := make([]face, len(s.Y))
	for i, y := range s.Y {
		faces[i] = face{Picture: i, Truth: (1 + y) / 2, MEM: math.Exp(-f.Site[i][1]), MEMJoint: other.Site[i],
			P: p.Site[i]}
	}
	for l, q := range s.Graph.Pairs() { // pairs go from a lower to a higher face
		if s.Exclusive[l] {
			faces[q[1]].Picture = min(faces[q[1]].Picture, faces[q[0]].Picture)
		}
	}
	return faces
}

// drawImages learns from 60 images and labels one more.
func (in *instances) drawImages(ctx context.Context, r *experiment.Run) error {
	random := r.Rand("images", 0)
	draw := drawImage(outliers, far)
	var train []crf.Sample
	for range 60 {
		train = append(train, draw(random))
	}
	fitted, err := fitModels(ctx, train)
	if err != nil {
		return err
	}
	s := draw(random)
	alone := make([]float64, len(s.Y))
	for i, x := range s.X {
		alone[i] = fitted[mem].Label(x)
	}
	joint, _ := fitted[mem].Predict(s)
	smooth, _ := fitted[bblr3].Predict(s)
	in.Images = []labelledImage{{"MEM alone", s.Y, alone}, {"MEM, joint", s.Y, joint}, {"BBLR3, joint", s.Y, smooth}}
	return nil
}

func (in *instances) pageChart() chart.Chart {
	truth := chart.Series{Name: "of the person (1) or not (0)", Kind: chart.Points, Reference: true}
	alone := chart.Series{Name: "MEM alone", Kind: chart.Points}
	joint := chart.Series{Name: "MEM, joint", Kind: chart.Points}
	smooth := chart.Series{Name: "BBLR3, joint", Kind: chart.Points}
	var names []string
	pictures := map[int]int{}
	for i, f := range in.Page {
		if _, ok := pictures[f.Picture]; !ok {
			pictures[f.Picture] = len(pictures) + 1
		}
		names = append(names, fmt.Sprintf("%d: %d", i+1, pictures[f.Picture]))
		truth.Y, alone.Y = append(truth.Y, f.Truth), append(alone.Y, f.MEM)
		joint.Y, smooth.Y = append(joint.Y, f.MEMJoint), append(smooth.Y, f.P)
	}
	low, high := 0.0, 1.0
	return chart.Chart{
		Title: "A page of seven faces", Caption: "Each face and the picture that it is in. No picture has two faces " +
			"of the person.",
		X:      chart.Axis{Label: "face: picture", Categories: names},
		Y:      chart.Axis{Label: "probability of the person", Min: &low, Max: &high},
		Series: []chart.Series{truth, alone, joint, smooth},
	}
}

func (m *labelledImage) chart() chart.Chart {
	inside := chart.Series{Name: "shape, found", Kind: chart.Points}
	missed := chart.Series{Name: "shape, missed", Kind: chart.Points}
	alarm := chart.Series{Name: "background, taken for shape", Kind: chart.Points}
	wrong := 0
	for i, y := range m.Truth {
		s := &inside
		switch {
		case y < 0 && m.Made[i] < 0:
			continue
		case y < 0:
			s = &alarm
		case m.Made[i] < 0:
			s = &missed
		}
		if y != m.Made[i] {
			wrong++
		}
		s.X, s.Y = append(s.X, float64(i/scene.Rows+1)), append(s.Y, float64(i%scene.Rows+1))
	}
	low, right, top := 0.0, float64(scene.Columns+1), float64(scene.Rows+1)
	return chart.Chart{
		Title: "An image: " + m.Name, Caption: fmt.Sprintf("%d of %d pixels are wrong.", wrong, len(m.Truth)),
		X: chart.Axis{Label: "column", Min: &low, Max: &right}, Y: chart.Axis{Label: "row", Min: &low, Max: &top},
		Series: []chart.Series{inside, missed, alarm},
	}
}
