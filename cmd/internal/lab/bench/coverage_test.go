package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"hamlet/algos/blr"
	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
)

// coverage runs `hamlet-lab bench coverage`.
func coverage(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var c Command
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	err = settings.Run(t.Context(), "bench", "", &c, append([]string{"coverage"}, args...), stdio)
	return out.String(), err
}

// Whatever the number of processors, one seed gives one result. The interval as learnt
// covers about 90 %, the served one, of 1.22 times the width, more.
func TestCoverage(t *testing.T) {
	args := []string{"--dim", "3,8", "--events", "100,400", "--repetitions", "120", "--questions", "40", "--seed", "5",
		"--json"}
	first, err := coverage(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	second, err := coverage(t, args...)
	if err != nil || second != first {
		t.Errorf("with one processor: %v\n%s\nwith all:\n%s", err, second, first)
	}
	var got coverageResult
	if err := json.Unmarshal([]byte(first), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != 2*2*groupings*regions {
		t.Fatalf("%d rows", len(got.Rows))
	}
	shares := 0.0
	for _, r := range got.Rows {
		if r.Region != regionNames[anyP] {
			shares += float64(r.Share)
		} else if r.Share != 1 {
			t.Errorf("%+v: all answers are not all", r)
		}
		if !(r.Served.Value > r.Plain.Value) {
			t.Errorf("%+v: the served interval covers no more", r)
		}
		// An exact belief covers 90 % by the answer's p. R-VGA's is a little too sure.
		if e := 4 * float64(r.Plain.Error); r.By == groupingNames[byAnswer] &&
			!(float64(r.Plain.Value) > 0.83-e && float64(r.Plain.Value) < 0.9+e) {
			t.Errorf("%+v: as learnt, want 83 to 90 %%", r)
		}
	}
	if want := 2.0 * 2 * groupings; math.Abs(shares-want) > 1e-9 {
		t.Errorf("the regions' shares add up to %v, want %v", shares, want)
	}
	table, err := coverage(t, "--dim", "2", "--events", "20", "--repetitions", "3", "--questions", "2")
	if err != nil || strings.Count(table, "\n") != 8 || !strings.Contains(table, "answer") ||
		!strings.Contains(table, "truth") {
		t.Errorf("%v\n%s", err, table)
	}
}

// A belief that is exact, because it is the prior and nothing was learnt, covers 90 % in
// every region of the answer's p, and the served interval Φ's share of ±1.645·√1.5.
func TestCoverageOfTheExactBelief(t *testing.T) {
	s, err := newKnown(1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	var counts tallies
	for range 40_000 {
		s.weights[0] = s.random.NormFloat64() // another truth for each answer
		s.ask(&counts)
	}
	all := counts[byAnswer][anyP]
	for _, c := range []struct {
		name string
		hits int
		want float64
	}{{"learnt", all.plain, 0.9}, {"served", all.served, math.Erf(model.Z90 * math.Sqrt(1.5) / math.Sqrt2)}} {
		share := float64(c.hits) / float64(all.n)
		if sd := math.Sqrt(c.want * (1 - c.want) / float64(all.n)); math.Abs(share-c.want) > 4*sd {
			t.Errorf("%s: %v of %d, want %v ± %v", c.name, share, all.n, c.want, sd)
		}
	}
	if counts[byAnswer][middle] != all { // E[σ(z)] of z ~ N(0, a) is ½
		t.Errorf("answers outside the middle: %+v", counts[byAnswer])
	}
	if truth := counts[byTruth]; truth[below].plain > 0 && truth[below].n+truth[middle].n+truth[above].n != all.n {
		t.Errorf("regions of the truth: %+v", truth)
	}
}

// What ask counts by log-odds is what the intervals of probabilities hold.
func TestCoverageIsOfTheServedInterval(t *testing.T) {
	s, err := newKnown(4, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		s.learn()
	}
	for i := range 2000 {
		var c tallies
		s.ask(&c)
		z := 0.0
		for j, w := range s.weights {
			z += w * s.x[j]
		}
		m, a := s.head.Moments(s.x)
		p := sigmoid(z)
		lo, hi := model.Expect(m, 1.5*a).Interval(model.Z90)
		narrowLo, narrowHi := sigmoid(m-model.Z90*math.Sqrt(a)), sigmoid(m+model.Z90*math.Sqrt(a))
		got := c[byTruth][anyP]
		if held, plain := lo <= p && p <= hi, narrowLo <= p && p <= narrowHi; got.n != 1 || (got.served == 1) != held ||
			(got.plain == 1) != plain {
			t.Fatalf("answer %d: %+v, z = %v of N(%v, %v)", i, got, z, m, a)
		}
		answer := blr.Predictive(m, 1.5*a)
		want := middle
		if q := sigmoid(answer); q < 0.05 {
			want = below
		} else if q > 0.95 {
			want = above
		}
		if c[byAnswer][want].n != 1 {
			t.Fatalf("answer %d with p = %v is counted in %+v", i, sigmoid(answer), c[byAnswer])
		}
	}
}

// The standard error of a share over clusters: with clusters of one it is the binomial
// one, and it is the spread of many repetitions of itself.
func TestShareOf(t *testing.T) {
	got := shareOf([]int{1, 0, 1, 1}, []int{1, 1, 1, 1})
	if math.Abs(float64(got.Value)-0.75) > 1e-15 || math.Abs(float64(got.Error)-math.Sqrt(0.75*0.25/4)) > 1e-15 {
		t.Errorf("%+v, want .75 ± %v", got, math.Sqrt(0.75*0.25/4))
	}
	if got := shareOf([]int{0, 0}, []int{0, 0}); got.Value.Defined() || got.Error.Defined() {
		t.Errorf("of nothing: %+v", got)
	}
	r := rand.New(rand.NewPCG(4, 4))
	const times, clusters = 2000, 60
	var mean, square, said float64
	for range times {
		h, n := make([]int, clusters), make([]int, clusters)
		for i := range n {
			n[i] = 5 + r.IntN(20)
			p := 0.8 + 0.2*r.Float64() // of the cluster
			for range n[i] {
				if r.Float64() < p {
					h[i]++
				}
			}
		}
		s := shareOf(h, n)
		mean += float64(s.Value) / times
		square += float64(s.Value) * float64(s.Value) / times
		said += float64(s.Error) / times
	}
	// A standard deviation from 2,000 draws has an error of 1.6 %; three of those, and the
	// bias of 1/60.
	if sd := math.Sqrt(square - mean*mean); math.Abs(said/sd-1) > 0.065 {
		t.Errorf("standard error %v, the spread is %v", said, sd)
	}
}

func TestCoverageUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--dim", "0"}, {"--dim", "2,1025"}, {"--events", "100,100"}, {"--events", "0"}, {"--repetitions", "0"},
		{"--questions", "-1"},
	} {
		var usage *cli.UsageError
		if _, err := coverage(t, args...); !errors.As(err, &usage) {
			t.Errorf("%v: %v, want wrong usage", args, err)
		}
	}
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
