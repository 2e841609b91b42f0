package drift_test

import (
	"fmt"
	"math/rand/v2"

	"hamlet/algos/drift"
)

// Two inputs that the label decides, until from event 3,001 on one label ham in
// four is called spam. φ and ε stand for those of a head that forgets.
func Example() {
	watch, err := drift.NewLabelNoise(drift.LabelNoiseConfig{Dim: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := rand.New(rand.NewPCG(1, 2))
	var result drift.Result
	for count := uint64(1); count <= 4_000; count++ {
		e := drift.Event{Label: -1, Prob: .99, FlipRate: .001, ID: fmt.Sprint("m", count), Source: "desk"}
		if r.IntN(2) == 0 {
			e.Label = 1
		}
		e.X = []float64{2*e.Label + r.NormFloat64(), r.NormFloat64()}
		if count > 3_000 {
			e.FlipRate = .1
			if e.Label < 0 && r.IntN(4) == 0 {
				e.Label, e.Prob, e.Source = 1, .02, "feed"
			}
		}

		watch.Observe(e)
		if count%drift.Rhythm != 0 {
			continue
		}
		if _, ok := watch.Pending(); ok {
			watch.Finish(result) // a learner waits for it here
		}
		if watch.Check(count) {
			report := watch.Report()
			fmt.Printf("labels went bad, within 200 events: %v\n", count <= 3_200)
			fmt.Printf("worst source %s; more ham called spam: %v\n", report.Sources[0].Source, report.HamCalledSpam.Rate > report.SpamCalledHam.Rate)
		}
		if job, ok := watch.Start(count); ok {
			result = job.Run() // a learner runs it in the background
		}
	}
	// Output:
	// labels went bad, within 200 events: true
	// worst source feed; more ham called spam: true
}
