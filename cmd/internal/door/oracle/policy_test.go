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
		if !a.Add(r.Float64() < rate) {
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
	for range 500 {
		a.Add(false)
	}
	if a.State() != Trusted || a.Rate() != 0 {
		t.Fatalf("%s at a rate of %v", a.State(), a.Rate())
	}
	var states []State
	n := 0
	for ; n < window && a.State() != Stopped; n++ {
		if a.Add(n%5 < 2 || n%2 == 0) {
			states = append(states, a.State())
		}
	}
	if fmt.Sprint(states) != "[trial stopped]" || n > 80 {
		t.Errorf("after %d comparisons: %v", n, states)
	}
	for range 500 {
		if a.Add(false) {
			t.Fatal("a stopped machine comes back")
		}
	}
	if a.total != 500+n {
		t.Errorf("%d comparisons are counted", a.total)
	}
}

// Before it is trusted it is asked about labelled mail, and nothing else; later about doubtful mail.
func TestPolicy(t *testing.T) {
	p := Policy{}
	if p.Asks(true) || p.Asks(false) {
		t.Error("a machine on trial is asked about mail that passes")
	}
	for n := 0; p.State() == Trial && n < 50; n++ {
		ask, changed := p.Labelled(fmt.Sprint(n), true, false)
		if !ask || changed {
			t.Fatal("a machine on trial is not asked about labelled mail")
		}
		p.Add(false)
	}
	if !p.Asks(true) || p.Asks(false) {
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
	for n := range mostAnswers + 10 {
		p.Answered(fmt.Sprint("many", n), true)
	}
	if len(p.answers) > mostAnswers || len(p.order) > mostAnswers {
		t.Errorf("%d answers are kept", len(p.answers))
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
