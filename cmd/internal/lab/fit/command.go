package fit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/jsonlines"
)

// Command is `hamlet-lab fit`. It has no flags.
type Command struct{}

// Help is what kong prints below the usage.
func (Command) Help() string {
	return `Reads JSON Lines on standard input, one request a line, and writes one reply a line, in order. ` +
		`A request that cannot be answered gets {"error": "…"}. The others are still answered, and the ` +
		`exit status is 1.

Examples:

  echo '{"algorithm": "blr.site", "m": 0.5, "a": 2, "y": 1}' | hamlet-lab fit
  hamlet-lab fit < requests.jsonl > replies.jsonl
  echo '{"algorithm": "blr.incremental", "x": [[1, 2], [1, -1]], "y": [1, -1], ` +
		`"x_test": [[1, 0]]}' | hamlet-lab fit | jq .p_test

Every request names its algorithm, one of these:

  ` + strings.Join(names(), "\n  ") + `

and may carry "seed" (default 1). Matrices are arrays of rows, labels are 1 and -1, indices count from 0. ` +
		`What learns from labelled rows and classifies also accepts "x_test", rows to answer with "p_test", ` +
		`and "weights", a sample weight for each row of "x". A request with nothing but the algorithm names ` +
		`the fields that it needs:

  echo '{"algorithm": "blr.site"}' | hamlet-lab fit`
}

// Run answers the requests on stdin. The error is a *[jsonlines.FailedError] if any reply is an
// error.
func (*Command) Run(ctx context.Context, stdio cli.IO) error {
	return jsonlines.Serve(ctx, stdio.In, stdio.Out, answer)
}

// algorithms holds every algorithm by name. Only init functions write it.
var algorithms = map[string]*algorithm{}

// An algorithm answers requests of one kind.
type algorithm struct {
	name    string
	request *schema
	solve   func(ctx context.Context, given []member) (reply []byte, err error)
}

// A Classifier predicts labels. An algorithm returns one with its reply, for x_test.
type Classifier interface {
	Prob(x []float64) float64 // P(y = +1 | x); x has as many entries as a training row
}

// A classifierFunc implements Classifier by a function.
type classifierFunc func(x []float64) float64

// Prob returns f(x).
func (f classifierFunc) Prob(x []float64) float64 { return f(x) }

// register adds an algorithm that maps a request Q to a reply R, both structs by the
// rules of the package doc. solve owns the request; its errors about fields come from
// wrong.
func register[Q, R any](name string, solve func(ctx context.Context, q *Q) (*R, error)) {
	add(newAlgorithm(name, func(ctx context.Context, q *Q) ([]byte, error) {
		r, err := solve(ctx, q)
		if err != nil {
			return nil, err
		}
		return appendReply(nil, r)
	}))
}

// registerClassifier is like register, for an algorithm that can classify. Q embeds
// tested. With x_test the reply ends with p_test, a probability for each row.
func registerClassifier[Q, R any, P interface {
	*Q
	testRows() [][]float64
}](name string, fit func(ctx context.Context, q *Q) (*R, Classifier, error)) {
	add(newAlgorithm(name, func(ctx context.Context, q *Q) ([]byte, error) {
		rows := P(q).testRows()
		r, c, err := fit(ctx, q)
		if err != nil {
			return nil, err
		}
		reply, err := appendReply(nil, r)
		if err != nil || rows == nil {
			return reply, err
		}
		p := struct {
			PTest []float64 `json:"p_test"`
		}{make([]float64, len(rows))}
		for i, x := range rows {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			p.PTest[i] = c.Prob(x)
		}
		return appendMembers(reply, &p)
	}))
}

func newAlgorithm[Q any](name string, solve func(ctx context.Context, q *Q) ([]byte, error)) *algorithm {
	a := &algorithm{name: name, request: newSchema(name, reflect.TypeFor[Q]())}
	a.solve = func(ctx context.Context, given []member) ([]byte, error) {
		q := new(Q)
		if err := a.request.decode(reflect.ValueOf(q).Elem(), given); err != nil {
			return nil, err
		}
		return solve(ctx, q)
	}
	return a
}

func add(a *algorithm) {
	if algorithms[a.name] != nil {
		panic("fit: two algorithms are called " + a.name)
	}
	algorithms[a.name] = a
}

// names returns the names of all algorithms in order.
func names() []string { return slices.Sorted(maps.Keys(algorithms)) }

// answer returns the reply to one request, without a newline. The error names the field.
func answer(ctx context.Context, text []byte) ([]byte, error) {
	given, err := members(text)
	if err != nil {
		return nil, err
	}
	var name *member
	for i := range given {
		if given[i].name == "algorithm" {
			if name != nil {
				return nil, wrong("algorithm", "given twice")
			}
			name = &given[i]
		}
	}
	if name == nil {
		return nil, wrong("algorithm", "missing; known are %s", strings.Join(names(), ", "))
	}
	value := parse(name.value)
	s, ok := value.(string)
	if !ok {
		return nil, wrong("algorithm", "a string is wanted, not %s", describe(value))
	}
	a := algorithms[s]
	if a == nil {
		return nil, wrong("algorithm", "%q is unknown; known are %s", clip(s), strings.Join(names(), ", "))
	}
	return a.solve(ctx, given)
}

// wrong returns an error about a field of the request.
func wrong(field, format string, args ...any) error {
	return fmt.Errorf("%s: %w", field, fmt.Errorf(format, args...))
}

// maxProblems bounds the problems that a reply lists.
const maxProblems = 10

// joined returns one error with all problems on one line, or nil.
func joined(problems []error) error {
	switch n := len(problems); {
	case n == 0:
		return nil
	case n > maxProblems:
		problems = append(problems[:maxProblems:maxProblems], fmt.Errorf("and %d more problems", n-maxProblems))
	}
	texts := make([]string, len(problems))
	for i, err := range problems {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}
