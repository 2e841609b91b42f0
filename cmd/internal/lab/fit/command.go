package fit

import (
	"context"
	"strings"

	"hamlet/cmd/internal/process/cli"
)

// Command is `hamlet-lab fit`. It has no flags.
type Command struct{}

// Help is what kong prints below the usage.
func (Command) Help() string {
	return `Reads JSON Lines on standard input, one request a line, and writes one reply a line, in order. A request that cannot be answered gets {"error": "…"}. The others are still answered, and the exit status is 1.

Examples:

  echo '{"algorithm": "blr.site", "m": 0.5, "a": 2, "y": 1}' | hamlet-lab fit
  hamlet-lab fit < requests.jsonl > replies.jsonl
  echo '{"algorithm": "blr.incremental", "x": [[1, 2], [1, -1]], "y": [1, -1], "x_test": [[1, 0]]}' | hamlet-lab fit | jq .p_test

Every request names its algorithm, one of these:

  ` + strings.Join(names(), "\n  ") + `

and may carry "seed" (default 1). Matrices are arrays of rows, labels are 1 and -1, indices count from 0. What learns from labelled rows and classifies also accepts "x_test", rows to answer with "p_test", and "weights", a sample weight for each row of "x". A request with nothing but the algorithm names the fields that it needs:

  echo '{"algorithm": "blr.site"}' | hamlet-lab fit`
}

// Run answers the requests on stdin. The error is a *[jsonlines.FailedError] if any reply is an
// error.
func (*Command) Run(ctx context.Context, stdio cli.IO) error {
	return Serve(ctx, stdio.In, stdio.Out)
}
