package fit

import (
	"math"
	"testing"
)

// Rows are Y and columns X: the table of the boosting slides, page 26, has
// H(X) = 7/4 and H(Y) = 2. It is dyadic, and the replies are exact.
func TestInformationOrientation(t *testing.T) {
	r := reply[informationReply](t, `{"algorithm": "information", "joint": [[0.125, 0.0625, 0.03125, 0.03125],
		[0.0625, 0.125, 0.03125, 0.03125], [0.0625, 0.0625, 0.0625, 0.0625], [0.25, 0, 0, 0]]}`)
	for _, c := range []struct {
		name string
		got  *float64
		want float64
	}{
		{"h_x", r.HX, 7. / 4}, {"h_y", r.HY, 2}, {"h_xy", r.HXY, 27. / 8}, {"h_x_given_y", r.HXGivenY, 11. / 8},
		{"h_y_given_x", r.HYGivenX, 13. / 8}, {"mutual_information", r.MutualInformation, 3. / 8},
	} {
		if *c.got != c.want {
			t.Errorf("%s = %v bits, want %v", c.name, *c.got, c.want)
		}
	}
}

// The plain sums in base 2.
func TestInformationOfTwo(t *testing.T) {
	p, q := []float64{0.1, 0.2, 0.7}, []float64{0.3, 0.3, 0.4}
	r := reply[informationReply](t, requestLine(t, "information", "p", p, "q", q))
	var hp, hq, kl, bc float64
	for i := range p {
		hp -= p[i] * math.Log2(p[i])
		hq -= q[i] * math.Log2(q[i])
		kl += p[i] * math.Log2(p[i]/q[i])
		bc += math.Sqrt(p[i] * q[i])
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"h_p", *r.HP, hp}, {"h_q", *r.HQ, hq}, {"kl", **r.KL, kl}, {"bhattacharyya", *r.Bhattacharyya, bc}} {
		if !(math.Abs(c.got-c.want) <= 1e-15) {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}
