package pipe_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"hamlet/cmd/internal/offline/pipe"
)

// Replies come in the order of the lines. A wrong one does not affect the others.
func ExampleServe() {
	requests := `{"op": "new", "config": {"table_bits": 8, "text_experts": ["lean"]}, "verbose": true}
{"op": "load", "bytes": ""}
{"op": "learn", "events": []}
`
	err := pipe.Serve(context.Background(), strings.NewReader(requests), os.Stdout, nil)
	fmt.Println(err)
	// Output:
	// {"error":"new: there is no field \"verbose\""}
	// {"error":"load: bytes: restore model from 0 bytes: these are not a model's bytes"}
	// {"error":"learn: there is no model yet: new or load comes first"}
	// 3 of 3 requests could not be answered; their replies say why
}
