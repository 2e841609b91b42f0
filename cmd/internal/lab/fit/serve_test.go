package fit

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/jsonlines"
)

// A sumRequest is a request to an algorithm for these tests.
type sumRequest struct {
	examples
	tested
	seeded
	Scale  *float64  `json:"scale" default:"null" in:"(0,∞)"`
	Mode   string    `json:"mode" in:"plain|signed|3"`
	Pair   []float64 `json:"pair" default:"[0.5,0.5]" shape:"2" in:"[0,1)"`
	Drop   []int     `json:"drop" default:"[]" shape:"*" in:"[0,∞)"`
	Rounds int       `json:"rounds" default:"50" in:"[1,100]"`
	Fail   string    `json:"fail" in:"no|error|panic|wait|inf"`
}

type sumReply struct {
	Sum    float64   `json:"sum"`
	Rows   []float64 `json:"rows"`
	Nil    []int     `json:"nil"`
	Null   *float64  `json:"null"`
	Absent *float64  `json:"absent,omitempty"`
	Mode   string    `json:"mode"`
	Rounds int       `json:"rounds"`
}

func sum(ctx context.Context, q *sumRequest) (*sumReply, Classifier, error) {
	switch q.Fail {
	case "error":
		return nil, nil, wrong("fail", "as asked")
	case "panic":
		panic("as asked")
	case "wait":
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	r := &sumReply{Mode: q.Mode, Rounds: q.Rounds}
	for _, row := range q.X {
		s := 0.0
		for _, v := range row {
			s += v
		}
		r.Rows = append(r.Rows, s)
		r.Sum += s
	}
	if q.Fail == "inf" {
		r.Rows[0] /= r.Rows[0] - r.Rows[0]
	}
	return r, classifierFunc(func(x []float64) float64 { return x[0] }), nil
}

// withSum adds the algorithm "sum" for one test.
func withSum(t testing.TB) {
	before := algorithms
	algorithms = map[string]*algorithm{}
	for name, a := range before {
		algorithms[name] = a
	}
	registerClassifier("sum", sum)
	t.Cleanup(func() { algorithms = before })
}

const sumLine = `{"algorithm":"sum","x":[[1,2],[3,4.5]],"y":[1,-1]}`
const sumText = `{"sum":10.5,"rows":[3,7.5],"nil":[],"null":null,"mode":"plain","rounds":50}`

func serve(t *testing.T, in string) ([]string, error) {
	t.Helper()
	var out bytes.Buffer
	err := new(Command).Run(t.Context(), cli.IO{In: strings.NewReader(in), Out: &out})
	if out.Len() == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), err
}

func TestServeAnswersEveryLineInOrder(t *testing.T) {
	withSum(t)
	in := "\ufeff" + sumLine + "\n\n  \t \r\n" + `{"algorithm":"none"}` + "\r\n" + "what?\n" +
		strings.Replace(sumLine, `"y"`, `"fail":"panic","y"`, 1) + "\n" +
		strings.Replace(sumLine, `"y"`, `"fail":"inf","y"`, 1) + "\n" +
		strings.Replace(sumLine, `"y"`, `"x_test":[[0.25,1]],"rounds":7,"y"`, 1) // no end of line
	got, err := serve(t, in)
	want := []string{sumText, "algorithm", "not JSON", "bug", "rows[0]",
		strings.TrimSuffix(strings.Replace(sumText, "50", "7", 1), "}") + `,"p_test":[0.25]}`}
	if len(got) != len(want) {
		t.Fatalf("got %d replies %q, want %d", len(got), got, len(want))
	}
	for i := range want {
		if strings.HasPrefix(want[i], "{") && got[i] != want[i] ||
			!strings.HasPrefix(want[i], "{") && !(strings.HasPrefix(got[i], `{"error":"`) && strings.Contains(got[i], want[i])) {
			t.Errorf("reply %d is %s, want %s", i, got[i], want[i])
		}
	}
	var failed *jsonlines.FailedError
	if !errors.As(err, &failed) || *failed != (jsonlines.FailedError{Failed: 4, Requests: 6}) {
		t.Errorf("error %v, want 4 of 6", err)
	}
	if cli.Status(err) != cli.StatusFailed {
		t.Errorf("exit status %d, want 1", cli.Status(err))
	}
}

func TestServeWithoutFaults(t *testing.T) {
	withSum(t)
	for _, in := range []string{"", "\n\n", "\ufeff", sumLine, sumLine + "\n"} {
		if _, err := serve(t, in); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// A matrix of a million numbers, some 20 MB.
func TestServeLargeMatrix(t *testing.T) {
	withSum(t)
	x := make([][]float64, 2000)
	y := make([]float64, len(x))
	for i := range x {
		y[i] = 1
		x[i] = make([]float64, 500)
		for j := range x[i] {
			x[i][j] = 1 / float64(i+j+3)
		}
	}
	text := requestLine(t, "sum", "x", x, "y", y)
	r := reply[sumReply](t, text)
	want := 0.0
	for i, row := range x {
		s := 0.0
		for _, v := range row {
			s += v
		}
		want += s
		if r.Rows[i] != s {
			t.Fatalf("row %d sums to %v, want %v", i, r.Rows[i], s)
		}
	}
	if r.Sum != want {
		t.Errorf("sum %v, want %v", r.Sum, want)
	}
}

func TestHelpNamesTheAlgorithms(t *testing.T) {
	help := Command{}.Help()
	for _, name := range names() {
		if !strings.Contains(help, "\n  "+name+"\n") {
			t.Errorf("the help does not name %s", name)
		}
	}
}
