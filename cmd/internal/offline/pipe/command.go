package pipe

import (
	"context"
	"fmt"
	"strings"

	"hamlet/cmd/internal/process/cli"
)

// Command is `hamlet pipe`. It has no flags.
type Command struct{}

// Help is what kong prints below the usage.
func (Command) Help() string {
	var table strings.Builder
	for _, o := range operations {
		fmt.Fprintf(&table, "  %-8s %-24s %s\n", o.name, strings.Join(o.fields, ", "), o.replies)
	}
	return `Holds one model in memory. Reads JSON Lines on standard input, one request a line, ` +
		`and writes one reply a line, in order. A request that cannot be answered gets {"error": "…"} and changes nothing. ` +
		`The others are still answered, and the exit status is 1.

Examples:

  echo '{"op": "new"}
  {"op": "learn", "events": [{"label": "spam", "text": "You won a prize"}]}
  {"op": "explain", "events": [{"text": "a prize"}]}' | hamlet pipe

Requests, their fields (? may be left out) and replies:

` + table.String() + `
Events are those of the wire, as hamlet eval reads them in JSON Lines; "mail" is in base64, ` +
		`and so are a model's "bytes". ` +
		`Events to learn may also say "action": relearn, unlearn, correct. ` +
		`The config has the keys that hamlet eval --keys lists. An interval is the 90 % one, or that of "level".

deploy/python has a package for Python.`
}

// Run answers the requests on stdin. The error is a *[jsonlines.FailedError] if any reply is
// an error.
func (*Command) Run(ctx context.Context, stdio cli.IO) error {
	return Serve(ctx, stdio.In, stdio.Out, func(err error) { fmt.Fprintf(stdio.Err, "hamlet pipe: %v\n", err) })
}
