// Package algotest tests the laws that every online classifier in algos obeys:
//
//	algotest.Run(t, algotest.Subject{
//		Dim:     8,
//		New:     func() algotest.Classifier { return blr.New(8) },
//		Restore: restore,
//		Exempt:  map[algotest.Law]string{algotest.FlippedLabels: "the prior prefers ham"},
//	})
//
// An exemption needs a reason. An exemption from a law that holds is an error.
package algotest

import (
	"math/rand/v2"
	"testing"
)

// A Classifier learns labelled vectors one at a time. Its inputs have the length
// Subject.Dim, its labels are ±1. Other inputs need an adapter in the caller's test.
type Classifier interface {
	// Prob returns the probability of label +1.
	Prob(x []float64) float64
	// Update learns one labelled vector.
	Update(x []float64, y float64)
	// AppendBinary appends all that later answers depend on.
	AppendBinary(dst []byte) ([]byte, error)
}

// A Subject is the classifier under test.
type Subject struct {
	Dim     int
	New     func() Classifier                  // a new classifier; all are equal
	Restore func(b []byte) (Classifier, error) // of the bytes that AppendBinary wrote
	Draw    func(r *rand.Rand, x []float64)    // fills an input; nil draws normals, with zeros and ±1 among them
	Near    float64                            // tolerance for rounding, in probability; 0 means 1e−9
	Exempt  map[Law]string                     // laws that do not apply, each with the reason
}

// A Law is the name of a law, which is also the name of its subtest.
type Law string

const (
	// Probability: Prob is in [0, 1] and never NaN, also for inputs scaled by 10⁶, 10⁻⁶
	// and 0.
	Probability Law = "probability"
	// InputUntouched: neither Prob nor Update changes or keeps x.
	InputUntouched Law = "input untouched"
	// ReadingIsPure: Prob changes no byte of the model.
	ReadingIsPure Law = "reading is pure"
	// Concurrent: Prob gives the same answers when several goroutines call it.
	Concurrent Law = "concurrent reading"
	// Deterministic: equal events make equal bytes.
	Deterministic Law = "deterministic"
	// Learns: after 300 events of a linear truth the log loss is at most 0.9·ln 2.
	Learns Law = "learns"
	// PermutedInputs: a model whose inputs are permuted gives the same
	// probabilities to rounding.
	PermutedInputs Law = "permuted inputs"
	// FlippedLabels: a model that learnt −y gives 1 − p to rounding. It holds
	// for a prior that is symmetric in the labels.
	FlippedLabels Law = "flipped labels"
	// Continues: a saved and restored model continues bit for bit as if it had never
	// stopped, at several points of the stream, also before the first event.
	Continues Law = "save, restore, continue"
	// RefusesDamage: Restore returns an error, and does not panic, for bytes cut
	// short anywhere or with one byte more.
	RefusesDamage Law = "refuses damaged bytes"
)

var laws = []struct {
	name Law
	hold func(s *Subject) error
}{
	{Probability, probability},
	{InputUntouched, inputUntouched},
	{ReadingIsPure, readingIsPure},
	{Concurrent, concurrent},
	{Deterministic, deterministic},
	{Learns, learns},
	{PermutedInputs, permutedInputs},
	{FlippedLabels, flippedLabels},
	{Continues, continues},
	{RefusesDamage, refusesDamage},
}

// Run tests every law on s, each in a subtest. It costs some 3,000 updates and as many
// predictions.
func Run(t *testing.T, s Subject) {
	if s.Draw == nil {
		s.Draw = drawNormal
	}
	if s.Near == 0 {
		s.Near = 1e-9
	}
	known := map[Law]bool{}
	for _, law := range laws {
		known[law.name] = true
		reason, exempt := s.Exempt[law.name]
		t.Run(string(law.name), func(t *testing.T) {
			err := law.hold(&s)
			switch {
			case !exempt && err != nil:
				t.Error(err)
			case exempt && reason == "":
				t.Error("exempt without a reason")
			case exempt && err == nil:
				t.Errorf("exempt (%s), but the law holds: drop the exemption", reason)
			case exempt:
				t.Logf("exempt: %s (%v)", reason, err)
			}
		})
	}
	for law := range s.Exempt {
		if !known[law] {
			t.Errorf("exempt from %q, which is no law", law)
		}
	}
}

func drawNormal(r *rand.Rand, x []float64) {
	for j := range x {
		switch r.IntN(6) {
		case 0:
			x[j] = 0
		case 1:
			x[j] = float64(2*r.IntN(2) - 1)
		default:
			x[j] = r.NormFloat64()
		}
	}
}
