package fit_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"hamlet/cmd/internal/lab/fit"
)

// Replies come in the order of the lines. A bad line does not affect the others.
func ExampleServe() {
	requests := `{"algorithm": "blr.predict", "w": [2, 1], "v": [[1, 0], [0, 1]], "x_test": [[1, 0]]}
{"algorithm": "blr.unlearn", "x": [[1, 2], [1]], "y": [1, 0], "forget": []}

{"algorithm": "game", "a": [[1, -1], [-1, 1]]}
`
	err := fit.Serve(context.Background(), strings.NewReader(requests), os.Stdout)
	fmt.Println(err)
	// Output:
	// {"bound_plus":[0.8156044568827434],"bound_minus":[0.152472009581121],"normalised":[0.8425000350044017],"probit":[0.8448456150189875],"exact":[0.8445374814698765],"interval_lo":[0.5100076671411242],"interval_hi":[0.9812928289136418],"p_test":[0.8445374814698765]}
	// {"error":"x: row 1 has 1 entries, row 0 has 2; y[1]: 0 is no label; 1 and -1 are"}
	// {"value":0,"p":[0.5,0.5],"q":[0.5,0.5]}
	// 1 of 3 requests could not be answered; their replies say why
}
