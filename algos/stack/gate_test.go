package stack

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/internal/codec"
)

// A judged is an event as a gate sees it.
type judged struct {
	Answers
	y, φ float64
}

// contests returns n events. The stack is better, then worse, then better, for long times,
// and some labels surprise both by far.
func contests(n int, seed uint64) []judged {
	r := rand.New(rand.NewPCG(seed, 9))
	all := make([]judged, n)
	for i := range all {
		y := math.Copysign(1, r.NormFloat64())
		better := math.Sin(float64(i) / 200)
		a := Answers{Head: y*2 + r.NormFloat64(), Stack: y*(2+better) + r.NormFloat64()}
		switch r.IntN(40) {
		case 0:
			a.Head = -30 * y
		case 1:
			a.Stack = -30 * y
		}
		all[i] = judged{a, y, 1 - r.Float64()*r.Float64()}
	}
	return all
}

// loss is the log loss of log-odds z for the label y, in nats.
func loss(y, z float64) float64 { return math.Log1p(math.Exp(-y * z)) }

// Formula (2): D is the sum over all events since it was ±4, or over all, each term faded by
// γ for each later event, to 1e−9: 4,000 steps of rounding a number up to 4 are off by less
// than 4,000·4·2⁻⁵³.
// The gate is what the drawing makes of the D of the events before.
func TestGateSumsWhatItSays(t *testing.T) {
	events := contests(4000, 1)
	var g Gate
	open, moves, served, since := false, 0, uint64(0), uint64(0)
	bound, from, bounded := 0.0, 0, 0 // D when it was last at ±4, the events since, how often
	for i, e := range events {
		if g.Open != open {
			t.Fatalf("event %d: open is %v before it, want %v", i+1, g.Open, open)
		}
		if open {
			served++
		}
		g.observe(e.Answers, e.y, e.φ, uint64(i+1))
		lead := bound
		for j, o := range events[from : i+1] {
			d := math.Max(-0.5, math.Min(0.5, loss(o.y, o.Head)-loss(o.y, o.Stack)))
			lead += math.Pow(0.9995, float64(i-from-j)) * o.φ * d
		}
		lead += bound * (math.Pow(0.9995, float64(i-from+1)) - 1)
		if math.Abs(lead) > 4 {
			bound, from = math.Copysign(4, lead), i+1
			lead, bounded = bound, bounded+1
		}
		if !(math.Abs(g.Lead-lead) <= 1e-9) {
			t.Fatalf("event %d: lead %v, want %v", i+1, g.Lead, lead)
		}
		if was := open; lead > 2 || lead < 0 {
			if open = lead > 2; open != was {
				moves, since = moves+1, uint64(i+1)
			}
		}
		if g.Served != served || g.Since != since {
			t.Fatalf("event %d: %+v, want served %d, since %d", i+1, g, served, since)
		}
	}
	if moves < 4 || bounded < 4 {
		t.Errorf("the gate has moved %d times and was bounded %d times: nothing shows that it does", moves, bounded)
	}
}

// What is served loses at most 4.5 nats to the head over events in a row, and 3 from an
// opening on, in the loss that the gate counts, whatever the events are. Here they favour
// the one or the other for random times.
func TestGateBoundsItsLoss(t *testing.T) {
	closest, steepest, opened := 0.0, 0.0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		var g Gate
		sinceOpening, sincePeak, worst, fall, openings := 0.0, 0.0, 0.0, 0.0, 0
		mood := 0.5
		for i := range uint64(4000) {
			if r.IntN(100) == 0 {
				mood = r.Float64()
			}
			e := judged{Answers{5 * r.NormFloat64(), 5 * r.NormFloat64()}, 1, r.Float64()}
			if behind := e.Stack < e.Head; behind != (r.Float64() < mood) {
				e.Head, e.Stack = e.Stack, e.Head
			}
			was := g
			g.observe(e.Answers, e.y, e.φ, i+1)
			d := e.φ * math.Max(-0.5, math.Min(0.5, loss(e.y, e.Head)-loss(e.y, e.Stack)))
			if was.Open {
				sinceOpening, sincePeak = sinceOpening-d, max(0, sincePeak-d)
				worst, fall = max(worst, sinceOpening), max(fall, sincePeak)
			}
			if g.Open && !was.Open {
				sinceOpening, sincePeak, openings = 0, 0, openings+1
			}
		}
		if worst > 3+1e-9 || fall > 4.5+1e-9 {
			t.Errorf("seed %d: %v nats lost since an opening, want at most 3; %v in a row, want at most 4.5", seed, worst, fall)
		}
		closest, steepest, opened = max(closest, worst), max(steepest, fall), opened+openings
	}
	if opened < 200 || closest < 2 || steepest < 3.5 {
		t.Errorf("%d openings, %v nats lost since one, %v in a row: nothing comes near the bounds", opened, closest, steepest)
	}
}

// Neither answer can be so wrong that one event decides, and none is a NaN.
func TestGateOnExtremes(t *testing.T) {
	inf := math.Inf(1)
	for _, a := range []Answers{{0, 800}, {-800, 800}, {-inf, inf}, {inf, inf}, {-inf, -inf}, {math.NaN(), 0}, {0, math.NaN()}} {
		for _, y := range []float64{1, -1} {
			var g Gate
			g.observe(a, y, 1, 1)
			if !(math.Abs(g.Lead) <= clipLead) || g.Open {
				t.Errorf("%+v, label %v: %+v", a, y, g)
			}
		}
	}
	var g Gate
	for i := range uint64(100) {
		g.observe(Answers{0, 800}, 1, 1, i+1)
	}
	if g.Lead != mostLead {
		t.Errorf("after an endless lead D is %v, want %v", g.Lead, mostLead)
	}
}

func gateBytes(g *Gate) []byte {
	w := codec.NewWriter(nil)
	g.write(w)
	b, err := w.Finish()
	if err != nil {
		panic(err)
	}
	return b
}

// Every gate that a stream makes is read again.
func TestGateReads(t *testing.T) {
	var g Gate
	for i, e := range contests(4000, 2) {
		g.observe(e.Answers, e.y, e.φ, uint64(i+1))
		r := codec.NewReader(gateBytes(&g), nil)
		var again Gate
		again.read(r)
		again.check(r, uint64(i+1), true)
		if err := r.Close(); err != nil || again != g {
			t.Fatalf("event %d: %+v is read as %+v, %v", i+1, g, again, err)
		}
	}
}

func TestGateRefuses(t *testing.T) {
	const events = 100
	for name, c := range map[string]struct {
		g     Gate
		ready bool
		bad   bool
	}{
		"before the first event":           {Gate{}, false, false},
		"never moved":                      {Gate{Lead: -3}, true, false},
		"open":                             {Gate{true, 0.5, 60, 40}, true, false},
		"open twice":                       {Gate{true, 0.5, 60, 70}, true, false},
		"closed again":                     {Gate{false, -0.1, 60, 20}, true, false},
		"moved before it could":            {Gate{Lead: 1}, false, true},
		"a lead that is not a number":      {Gate{Lead: math.NaN()}, true, true},
		"a lead beyond the largest":        {Gate{Lead: -4.1}, true, true},
		"closed with a lead that opens":    {Gate{Lead: 2.1}, true, true},
		"open with a lead that closes":     {Gate{true, -0.1, 60, 40}, true, true},
		"moved in the future":              {Gate{true, 1, 101, 40}, true, true},
		"open since ever":                  {Gate{true, 1, 0, 100}, true, true},
		"served although it never opened":  {Gate{false, 1, 0, 1}, true, true},
		"closed again, and nothing served": {Gate{false, 1, 60, 0}, true, true},
		"open, and not all served":         {Gate{true, 1, 60, 39}, true, true},
		"more served than there were":      {Gate{true, 1, 60, 101}, true, true},
		"served while it was closed":       {Gate{false, 1, 60, 61}, true, true},
	} {
		r := codec.NewReader(gateBytes(&c.g), nil)
		var g Gate
		g.read(r)
		g.check(r, events, c.ready)
		if err := r.Close(); (err != nil) != c.bad {
			t.Errorf("%s: %+v: error %v", name, c.g, err)
		}
	}
	b := gateBytes(&Gate{})
	b[8] = 2
	r := codec.NewReader(b, nil)
	new(Gate).read(r)
	if r.Close() == nil {
		t.Error("a state that is neither open nor closed: no error")
	}
}

// What is read without an error is written again as it was, and goes on as a gate does.
func FuzzGate(f *testing.F) {
	f.Add(gateBytes(&Gate{}), uint64(0), false)
	f.Add(gateBytes(&Gate{true, 0.5, 60, 70}), uint64(100), true)
	f.Add(gateBytes(&Gate{false, -0.5, 60, 20}), uint64(100), true)
	f.Add(binary.LittleEndian.AppendUint64(nil, 1), uint64(1), true)
	f.Fuzz(func(t *testing.T, b []byte, events uint64, ready bool) {
		r := codec.NewReader(b, nil)
		var g Gate
		g.read(r)
		g.check(r, events, ready)
		if r.Close() != nil {
			return
		}
		if again := gateBytes(&g); !bytes.Equal(again, b) {
			t.Fatalf("%x is written as %x", b, again)
		}
		if events > 1<<53 {
			return
		}
		for i, e := range contests(20, events) {
			g.observe(e.Answers, e.y, e.φ, events+uint64(i)+1)
			var again Gate
			r := codec.NewReader(gateBytes(&g), nil)
			again.read(r)
			again.check(r, events+uint64(i)+1, true)
			if err := r.Close(); err != nil {
				t.Fatalf("%x after %d events, and %d more: %v", b, events, i+1, err)
			}
		}
	})
}
