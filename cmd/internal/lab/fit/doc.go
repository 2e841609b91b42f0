// Package fit is `hamlet fit`: every algorithm behind one door. It reads JSON
// Lines, one request a line, and writes one reply a line.
//
//	{"algorithm": "blr.site", "m": 0.5, "a": 2, "y": 1}
//	{"xi": …, "lambda": …, …}
//
// A request that cannot be answered gets {"error": "…"}, which names the field
// that is to blame and tells all problems at once; the lines behind it are still
// answered.
//
// # What the door does for every algorithm
//
// It reads lines of any length up to 256 MiB, refuses what is not JSON, a name
// it does not know (case counts), a name given twice or missing, a value of
// another type (null too), numbers beyond float64 or outside their range, lists
// that are empty or do not fit one another, matrices with rows of different
// length. It fills in defaults, accepts seed everywhere, answers x_test for all
// classifiers, and prints numbers in the shortest form that reads back to the
// same float64, in the order of the reply's fields. The order of a request's
// fields changes nothing, not even an error. NaN and infinities are never
// printed: an answer with one becomes an error.
//
// # Adding a row
//
// A row is one file, named for its algorithm: a request, a reply, a function
// between them, a line that registers it. Nothing else needs to know.
//
//	func init() { registerClassifier("adaboost", adaBoost) }
//
//	type adaBoostRequest struct {
//		examples                 // x, y
//		tested                   // x_test
//		Rounds int `json:"rounds" default:"50" in:"[1,∞)"`
//	}
//
//	type adaBoostReply struct {
//		Rounds []adaBoostRound `json:"rounds"`
//		F      []float64       `json:"f"`
//	}
//
//	func adaBoost(ctx context.Context, q *adaBoostRequest) (*adaBoostReply, Classifier, error) {
//		…
//	}
//
// With register instead of registerClassifier the function returns no
// [Classifier] and the request has no x_test. The request says all in its types
// and tags:
//
//	float64, int, uint64, bool     int takes 50, 50.0 and 5e1
//	string                         one of the words of in, the first by default
//	[]float64, []int, [][]float64  what shape says
//	*float64, *int                 nil if not given, with default:"null"
//
//	json:"name"       the field's name; names of embedded structs stand in their place
//	default:"…"       in JSON, what it is if not given; null leaves the Go field zero.
//	                  A field without default must be given
//	in:"[0,1)"        the range of each number in it: an interval, ends may be ∞, or ±1
//	in:"approx|exact" the words of a string
//	shape:"N×D"       the sizes of a list, a vector's as in shape:"N". A letter is one
//	                  size ≥ 1 in all fields of the request, 2 is two, * any, also none
//
// What tags cannot say, the function checks itself, before it works, and
// returns wrong("cuts", "%d is not below …", …), which names the field. What
// depends on other fields, like a default of D, is a pointer with default:"null".
// It passes ctx to what takes long, and takes randomness from the source of an
// embedded seeded struct. It may panic only for a bug. Requests are its own to
// change and keep.
//
// A reply is a struct of float64, int, bool, string, structs, pointers and slices
// of them. A nil slice is printed as []; a nil pointer as null, which only a field
// that documents it may be; with ",omitempty" both are left out. rowsOf turns a
// gonum matrix into rows. Where the contract leaves something open, the row's
// file says what was chosen.
//
// # Testing a row
//
// Put requests that the row answers, a line each, into testdata/<algorithm>.jsonl
// (small ones, every option once, and what is degenerate; some with an error for
// an answer), then make the replies with
//
//	go test ./cmd/internal/lab/fit -run TestGolden/adaboost -update
//
// and read them: testdata/<algorithm>.golden is a promise. That is all. From these
// lines TestLaws derives, for every row alike, that permuted fields, explicit
// defaults and repetition change no byte, that x_test is answered, and that every
// way in which a field can be missing, misspelt, doubled, of a wrong type, out of
// its range or of a wrong shape is refused with its name. A row without these
// files fails the tests. Whether the numbers are right is the business of a test
// in <algorithm>_test.go, which asks reply for them:
//
//	r := reply[adaBoostReply](t, `{"algorithm": "adaboost", "x": …}`)
package fit
