package ensemble

import (
	"encoding/binary"
	"math"
	"testing"
)

// facts are what tests know of a kind that its entry in boosters does not say.
type facts struct {
	// readAs are the other kinds that accept its bytes, because theirs have one form.
	readAs []Kind

	// exceed changes the bytes to answers that float64 does not hold; nil where the
	// kind's own package bounds its numbers more narrowly.
	exceed func(b []byte)

	noEdge    bool // it finds no edge where each single cut divides both classes evenly
	cutsTwice bool // it learns such a design by two cuts, one below the other
}

// lastIsHuge makes the last leaf, score or α the largest float64.
func lastIsHuge(b []byte) {
	binary.LittleEndian.PutUint64(b[len(b)-8:], math.Float64bits(math.MaxFloat64))
}

// nothingSaturates makes BBLR's mixture weight 0.
func nothingSaturates(b []byte) { binary.LittleEndian.PutUint64(b[16+16:], 0) }

var factsByKind = map[Kind]facts{
	LogitTrees:   {readAs: []Kind{RealAdaBoost}, exceed: lastIsHuge, cutsTwice: true},
	RealAdaBoost: {readAs: []Kind{LogitTrees}, exceed: lastIsHuge, cutsTwice: true},
	POEBoostDS:   {noEdge: true},
	POEBoostCS:   {noEdge: true},
	AdaBoost:     {readAs: []Kind{LogitTrees, RealAdaBoost}, exceed: lastIsHuge, noEdge: true}, // stumps are trees
	BHBoost:      {exceed: lastIsHuge},
	VIBoost:      {exceed: lastIsHuge},
	BBLR:         {exceed: nothingSaturates},
}

func factsOf(t *testing.T, k Kind) facts {
	t.Helper()
	f, ok := factsByKind[k]
	if !ok {
		t.Fatalf("factsByKind says nothing about %s: add what is true of it", k)
	}
	return f
}
