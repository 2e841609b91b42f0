package main

import (
	"bytes"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
)

// hamlet pipe answers on standard output, and says by its status if a request was refused.
func TestPipe(t *testing.T) {
	for requests, want := range map[string]int{
		`{"op":"new","config":{"table_bits":8}}` + "\n" + `{"op":"score","events":[{"text":"a"}]}`: cli.StatusOK,
		`{"op":"new"}` + "\n" + `{"op":"forget"}`:                                                  cli.StatusFailed,
	} {
		var out, errs bytes.Buffer
		err := run(t.Context(), []string{"pipe"}, cli.IO{In: strings.NewReader(requests), Out: &out, Err: &errs})
		if cli.Status(err) != want || strings.Count(out.String(), "\n") != 2 || errs.Len() > 0 {
			t.Errorf("%s: %v, stdout %s, stderr %s; want status %d", requests, err, out.String(), errs.String(), want)
		}
	}
}
