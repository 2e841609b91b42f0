// Laboratory: access to every algorithm, for notebooks and cross-checks.

// Package fit is `hamlet-lab fit`. It reads JSON Lines, one request a line, and writes
// one reply a line:
//
//	{"algorithm": "blr.site", "m": 0.5, "a": 2, "y": 1}
//	{"xi": …, "lambda": …, …}
//
// A request that cannot be answered gets {"error": "…"}. The error names every
// field that is wrong. The other lines are still answered.
//
// # Adding an algorithm
//
// An algorithm is a request, a reply, a function from one to the other, and a line in the
// file's init that registers it. Nothing else changes. Kin share a file.
//
//	registerClassifier("adaboost", adaBoost)
//
//	type adaBoostRequest struct {
//		examples                 // x, y
//		weighted                 // weights
//		tested                   // x_test
//		Rounds int `json:"rounds" default:"50" in:"[1,∞)"`
//	}
//
//	func adaBoost(ctx context.Context, q *adaBoostRequest) (*adaBoostReply, Classifier, error) {
//		…
//	}
//
// With register the function returns no [Classifier], and the request has no
// x_test. The types and tags of a request say what it may hold:
//
//	float64, int, uint64, bool     an int may be written 50, 50.0 or 5e1
//	string                         one of the words of in; the first is the default
//	[]float64, []int, [][]float64  need a shape
//	*float64, *int                 nil if not given, with default:"null"
//
//	json:"name"       the field's name
//	default:"…"       its value in JSON if it is not given; with null the Go field
//	                  stays zero. A field without default must be given
//	in:"[0,1)"        the range of each of its numbers: an interval, or ±1
//	in:"approx|exact" the words of a string
//	shape:"N×D"       the sizes of a list. A letter is one size ≥ 1 in the whole
//	                  request, 2 is two, * is any size, also 0
//
// The function first checks what tags cannot express and returns wrong("cuts", "…").
// It passes ctx to calls that take long. It draws from the
// source of an embedded seeded struct. A panic is a bug.
//
// A reply is a struct of float64, int, bool, string, structs, and pointers and
// slices of them. A nil slice becomes [], a nil pointer null; ",omitempty" leaves
// both out. NaN and infinities are an error that names their place.
//
// # Sample weights
//
// Whatever learns from labelled rows embeds weighted. A weight of k is a row that stands
// there k times, and weights of 1 change no byte. Where only proportions count, equal
// weights change none. Some parts count rows, whatever their weights: the smoothing
// 1/(N·bins) of bhboost and 1/N of realadaboost, standardisation, quantile bins, default
// rounds, held-out rows, the coefficients of kernels, and the sites of blr.incremental,
// blr.merge and blr.unlearn, one for each row. TestWeights checks both.
//
// # Testing an algorithm
//
// Put small requests into testdata/<algorithm>.jsonl: every option once, degenerate
// data, some mistakes. Then make the replies and read them:
//
//	go test ./cmd/internal/lab/fit -run TestGolden/adaboost -update
//
// From these requests TestLaws checks that the order of fields and explicit defaults
// change no byte, and that errors name every mistake. Tests in <algorithm>_test.go show
// that the numbers are right.
//
// # Why there is a schema of our own
//
// encoding/json only splits the requests into tokens. Its struct decoding matches names
// in any case, uses the last of repeated names, takes null for every type, and stops at
// the first mistake. It does not know defaults, ranges and shapes; the schema does.
package fit
