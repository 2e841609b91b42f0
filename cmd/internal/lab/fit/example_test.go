package fit_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"hamlet/cmd/internal/lab/fit"
	"hamlet/cmd/internal/process/cli"
)

// Real AdaBoost over stumps and over logistic regressions, with sample weights.
func ExampleCommand_weights() {
	requests := `{"algorithm": "realadaboost", "x": [[1], [2], [3], [4]], "y": [-1, 1, -1, 1], "weights": [1, 1, 2, 1], "rounds": 1}
{"algorithm": "realadaboost", "x": [[1], [2], [3], [4]], "y": [-1, 1, -1, 1], "weights": [1, 1, 2, 1], "rounds": 1, "learner": "logistic"}
`
	err := new(fit.Command).Run(context.Background(), cli.IO{In: strings.NewReader(requests), Out: os.Stdout})
	fmt.Println(err)
	// Output:
	// {"rounds":[{"feature":0,"threshold":3.5,"left":-0.31799438335999836,"right":0.29389333245105953,"z":0.860509031939896,"train_error":0.2}],"f":[-0.31799438335999836,-0.31799438335999836,-0.31799438335999836,0.29389333245105953]}
	// {"rounds":[{"feature":0,"weight":0.13416407864998742,"bias":-0.1,"mean_p":0.5139236026598353,"z":0.9747664177679196,"train_error":0.2}],"f":[-0.14,-0.08000000000000002,-0.019999999999999997,0.04000000000000002]}
	// <nil>
}

// Replies come in the order of the lines. A bad line does not affect the others.
func ExampleCommand() {
	requests := `{"algorithm": "blr.predict", "w": [2, 1], "v": [[1, 0], [0, 1]], "x_test": [[1, 0]]}
{"algorithm": "blr.unlearn", "x": [[1, 2], [1]], "y": [1, 0], "forget": []}

{"algorithm": "game", "a": [[1, -1], [-1, 1]]}
`
	err := new(fit.Command).Run(context.Background(), cli.IO{In: strings.NewReader(requests), Out: os.Stdout})
	fmt.Println(err)
	// Output:
	// {"bound_plus":[0.8156044568827434],"bound_minus":[0.152472009581121],"normalised":[0.8425000350044017],"probit":[0.8448456150189875],"exact":[0.8445374814698765],"interval_lo":[0.5100076671411242],"interval_hi":[0.9812928289136418],"p_test":[0.8445374814698765]}
	// {"error":"x: row 1 has 1 entries, row 0 has 2; y[1]: 0 is no label; 1 and -1 are"}
	// {"value":0,"p":[0.5,0.5],"q":[0.5,0.5]}
	// 1 of 3 requests could not be answered; their replies say why
}
