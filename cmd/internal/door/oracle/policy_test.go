package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// judge runs machines that are wrong in a share of their answers, and returns in how many comparisons they
// were trusted and stopped at first; 0: never.
func judge(rate float64, seed uint64, comparisons int) (trusted, stopped int) {
	r := rand.New(rand.NewPCG(seed, 7))
	a := Account{}
	for n := range comparisons {
		if !a.Add(r.Float64() < rate, false) {
			continue
		}
		if a.State() == Trusted && trusted == 0 {
			trusted = n + 1
		}
		if a.State() == Stopped {
			return trusted, n + 1
		}
	}
	return trusted, 0
}

// A machine that is wrong in a tenth is trusted, and one that is wrong in two fifths is stopped, mostly without
// having taught. MEASURED.md has the figures.
func TestAccount(t *testing.T) {
	const seeds, comparisons = 400, 400
	for _, c := range []struct {
		rate                           float64
		leastTrusted, mostTrusted      int
		leastStopped, mostStopped, med int
	}{
		{.05, seeds, seeds, 0, 0, 15},
		{.1, seeds, seeds, 0, 0, 35},
		{.4, 0, seeds / 50, seeds * 99 / 100, seeds, 75},
		{.5, 0, seeds / 100, seeds, seeds, 30},
	} {
		trusted, stopped, soon := 0, 0, 0
		for seed := range uint64(seeds) {
			on, off := judge(c.rate, seed, comparisons)
			if on > 0 {
				trusted++
			}
			if off > 0 {
				stopped++
			}
			if first := max(on, off); first > 0 && first <= c.med {
				soon++
			}
		}
		if trusted < c.leastTrusted || trusted > c.mostTrusted || stopped < c.leastStopped || stopped > c.mostStopped {
			t.Errorf("wrong in %v: %d trusted, %d stopped of %d; want %+v", c.rate, trusted, stopped, seeds, c)
		}
		if soon < seeds/2 {
			t.Errorf("wrong in %v: %d of %d are decided after %d comparisons", c.rate, soon, seeds, c.med)
		}
	}
}

// A machine that becomes bad is on trial again, and then stopped for good.
func TestAGoodMachineBecomesBad(t *testing.T) {
	a := Account{}
	for n := range 500 {
		a.Add(false, n%3 == 0)
	}
	if a.State() != Trusted || a.Rate() != 0 {
		t.Fatalf("%s at a rate of %v", a.State(), a.Rate())
	}
	var states []State
	n := 0
	for ; n < window && a.State() != Stopped; n++ {
		if a.Add(n%5 < 2 || n%2 == 0, true) {
			states = append(states, a.State())
		}
	}
	if fmt.Sprint(states) != "[trial stopped]" || n > 80 {
		t.Errorf("after %d comparisons: %v", n, states)
	}
	for range 500 {
		if a.Add(false, true) {
			t.Fatal("a stopped machine comes back")
		}
	}
	if a.total != 500+n {
		t.Errorf("%d comparisons are counted", a.total)
	}
}

// A machine that is right about easy mail and wrong about doubtful mail does not teach. One message in
// three is doubtful.
func TestDoubtfulMailDecides(t *testing.T) {
	const seeds, comparisons = 200, 600
	for _, c := range []struct {
		easy, doubtful            float64
		leastTrusted, mostTrusted int // of seeds, after the last comparison
		leastStopped, mostStopped int
	}{
		{.05, .5, 0, 0, seeds, seeds},
		{.02, .9, 0, 0, seeds, seeds},
		{.3, .05, seeds * 98 / 100, seeds, 0, 2},
		{.1, .1, seeds * 95 / 100, seeds, 0, 0},
	} {
		trusted, stopped := 0, 0
		for seed := range uint64(seeds) {
			r := rand.New(rand.NewPCG(seed, 9))
			a := Account{}
			for n := range comparisons {
				doubtful, rate := n%3 == 0, c.easy
				if doubtful {
					rate = c.doubtful
				}
				a.Add(r.Float64() < rate, doubtful)
			}
			switch a.State() {
			case Trusted:
				trusted++
			case Stopped:
				stopped++
			}
		}
		if trusted < c.leastTrusted || trusted > c.mostTrusted || stopped < c.leastStopped || stopped > c.mostStopped {
			t.Errorf("%+v: %d trusted, %d stopped", c, trusted, stopped)
		}
	}
}

// Easy mail does not end a trial that doubtful mail caused.
func TestEasyMailDoesNotBringTrustBack(t *testing.T) {
	a := Account{}
	for range window {
		a.Add(false, false)
	}
	for n := range least {
		if a.State() != Trusted {
			t.Fatalf("%d doubtful messages decide", n)
		}
		a.Add(n%2 == 0, true)
	}
	if a.State() != Trial {
		t.Fatalf("half wrong about doubtful mail, it is %s", a.State())
	}
	for range 3 * window {
		if a.Add(false, false) {
			t.Fatalf("easy mail has it %s", a.State())
		}
	}
	for n := 0; a.State() == Trial; n++ {
		if n > window {
			t.Fatal("doubtful mail does not bring it back")
		}
		a.Add(false, true)
	}
	if a.State() != Trusted {
		t.Errorf("it is %s", a.State())
	}
}

// One message counts once, and an answer that the model cannot withdraw any more does not count.
func TestAMessageCountsOnce(t *testing.T) {
	p := Policy{}
	p.Compare("a", false, true)
	p.Done("unknown")
	for range 50 {
		for _, key := range []string{"a", "unknown"} {
			if ask, _ := p.Labelled(key, true, true); ask || !p.Knows(key) {
				t.Fatalf("%s: it is asked twice", key)
			}
		}
	}
	p.Answered("b", true)
	p.Answered("c", true)
	p.Labelled("b", true, true)
	p.Labelled("b", true, true)
	if p.total != 2 {
		t.Errorf("%d comparisons", p.total)
	}
	for range mostWaiting + 1 {
		p.Learnt()
	}
	if p.Labelled("c", false, true); p.total != 2 {
		t.Error("an answer counts that the model cannot withdraw")
	}
}

// Before it is trusted it is asked about labelled mail, and nothing else; later about doubtful mail.
func TestPolicy(t *testing.T) {
	p := Policy{}
	if p.Asks("a", true) || p.Asks("a", false) {
		t.Error("a machine on trial is asked about mail that passes")
	}
	for n := 0; p.State() == Trial && n < 50; n++ {
		ask, changed := p.Labelled(fmt.Sprint(n), true, false)
		if !ask || changed {
			t.Fatal("a machine on trial is not asked about labelled mail")
		}
		p.Compare(fmt.Sprint(n), false, false)
	}
	if !p.Asks("a", true) || p.Asks("a", false) {
		t.Errorf("a machine that is %s is asked otherwise", p.State())
	}
	p.Answered("right", true)
	p.Answered("wrong", true)
	total := p.total
	for key, spam := range map[string]bool{"right": true, "wrong": false} {
		if ask, _ := p.Labelled(key, spam, true); ask {
			t.Errorf("%s: it is asked twice", key)
		}
	}
	if p.total != total+2 || p.wrong != 1 {
		t.Errorf("%d comparisons more, %d wrong", p.total-total, p.wrong)
	}
	if ask, _ := p.Labelled("certain", true, false); ask {
		t.Error("a trusted machine is asked about mail that was not doubtful")
	}
	if ask, _ := p.Labelled("unasked", true, true); !ask {
		t.Error("a trusted machine is not asked about doubtful mail that was labelled before")
	}
	for n := range mostAsked + 10 {
		p.Answered(fmt.Sprint("many", n), true)
	}
	if len(p.asked) > mostAsked || len(p.order) > mostAsked {
		t.Errorf("%d answers are kept", len(p.asked))
	}
}

func TestDoubtful(t *testing.T) {
	for _, c := range []struct {
		p, lo, hi float64
		want      bool
	}{
		{.5, .1, .9, true}, {.04, .001, .6, false}, {.96, .4, .999, false}, {.5, .49, .51, false},
		{math.NaN(), 0, 1, false}, {.7, .2, .95, true},
	} {
		if got := Doubtful(c.p, c.lo, c.hi); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// The newest messages stay, and what is taken is gone.
func TestShelf(t *testing.T) {
	s := shelf{most: 4 * (10 + overhead)}
	for n := range 999 {
		s.put(&passed{id: fmt.Sprint(n), message: make([]byte, 10)})
		if n%3 == 0 && s.take(fmt.Sprint(n)) == nil {
			t.Fatalf("%d is not there", n)
		}
	}
	if len(s.all) != 4 || s.bytes != s.most || len(s.order) > 100 || s.take("996") != nil || s.take("1") != nil ||
		s.take("998") == nil {
		t.Errorf("%d messages of %d bytes, %d in order", len(s.all), s.bytes, len(s.order))
	}
	s.put(&passed{id: "large", message: make([]byte, 10_000)})
	if s.take("large") != nil {
		t.Error("a message that does not fit is kept")
	}
}
