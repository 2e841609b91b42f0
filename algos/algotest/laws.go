package algotest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// A stream of labelled vectors with a linear truth, the same for the same seed.
type stream struct {
	draw func(r *rand.Rand, x []float64)
	r    *rand.Rand
	w    []float64
}

func (s *Subject) stream(seed uint64) *stream {
	st := &stream{draw: s.Draw, r: rand.New(rand.NewPCG(seed, 77)), w: make([]float64, s.Dim)}
	for j := range st.w {
		st.w[j] = 3 * st.r.NormFloat64()
	}
	return st
}

func (st *stream) next() (x []float64, y float64) {
	x = make([]float64, len(st.w))
	st.draw(st.r, x)
	z := 0.5 * st.r.NormFloat64()
	for j := range x {
		z += st.w[j] * x[j]
	}
	return x, math.Copysign(1, z)
}

// train returns a model that has learnt n events of the stream.
func (s *Subject) train(st *stream, n int) Classifier {
	c := s.New()
	for range n {
		c.Update(st.next())
	}
	return c
}

func (s *Subject) far(got, want float64) bool { return !(math.Abs(got-want) <= s.Near) }

func probability(s *Subject) error {
	st := s.stream(1)
	c := s.New()
	check := func(n int, x []float64) error {
		if p := c.Prob(x); !(p >= 0 && p <= 1) {
			return fmt.Errorf("after %d events Prob(%v) = %v", n, x, p)
		}
		return nil
	}
	for n := range 300 {
		x, y := st.next()
		scaled := slices.Clone(x)
		for _, scale := range []float64{1, 0, 1e6, 1e-6} {
			for j := range x {
				scaled[j] = x[j] * scale
			}
			if err := check(n, scaled); err != nil {
				return err
			}
		}
		c.Update(x, y)
	}
	// Learning the extremes must not spoil the answers either.
	for n := range 60 {
		x, y := st.next()
		for j := range x {
			x[j] *= []float64{1e6, 1e-6, 0}[n%3]
		}
		c.Update(x, y)
		x, _ = st.next()
		if err := check(300+n, x); err != nil {
			return err
		}
	}
	return nil
}

func inputUntouched(s *Subject) error {
	st := s.stream(2)
	c, reused := s.New(), s.New()
	shared := make([]float64, s.Dim)
	for n := range 100 {
		x, y := st.next()
		was := slices.Clone(x)
		c.Prob(x)
		c.Update(x, y)
		if !slices.Equal(x, was) {
			return fmt.Errorf("event %d: x was %v and is now %v", n, was, x)
		}
		// A model that refers to x would see it change.
		copy(shared, was)
		reused.Prob(shared)
		reused.Update(shared, y)
		clear(shared)
	}
	return sameBytes("a model fed through one reused slice", c, reused)
}

func readingIsPure(s *Subject) error {
	st := s.stream(3)
	quiet, asked := s.New(), s.New()
	for range 100 {
		x, y := st.next()
		probe, _ := st.next()
		asked.Prob(probe)
		asked.Prob(x)
		quiet.Update(x, y)
		asked.Update(x, y)
	}
	return sameBytes("a model that was asked in between", quiet, asked)
}

func concurrent(s *Subject) error {
	st := s.stream(4)
	c := s.train(st, 200)
	var xs [32][]float64
	var want [32]float64
	for i := range xs {
		xs[i], _ = st.next()
		want[i] = c.Prob(xs[i])
	}
	errs := make(chan error, 4)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 4 * len(xs) {
				i = (i + 7*g) % len(xs)
				if got := c.Prob(xs[i]); got != want[i] {
					errs <- fmt.Errorf("asked beside others p = %v, alone %v", got, want[i])
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

func deterministic(s *Subject) error {
	return sameBytes("a second model of the same events", s.train(s.stream(5), 200), s.train(s.stream(5), 200))
}

func learns(s *Subject) error {
	st := s.stream(6)
	c := s.train(st, 300)
	loss := 0.0
	const n = 300
	for range n {
		x, y := st.next()
		p := c.Prob(x)
		if y < 0 {
			p = 1 - p
		}
		loss -= math.Log(max(p, 1e-6)) / n
		c.Update(x, y)
	}
	if loss > 0.9*math.Ln2 {
		return fmt.Errorf("log loss after 300 events of a linear truth %.3f nats, a coin has %.3f", loss, math.Ln2)
	}
	return nil
}

func permutedInputs(s *Subject) error {
	st := s.stream(7)
	perm := st.r.Perm(s.Dim)
	a, b := s.New(), s.New()
	permuted := make([]float64, s.Dim)
	for n := range 300 {
		x, y := st.next()
		for j, k := range perm {
			permuted[j] = x[k]
		}
		if p, q := a.Prob(x), b.Prob(permuted); s.far(q, p) {
			return fmt.Errorf("after %d events p = %v, with inputs permuted %v; x = %v", n, p, q, x)
		}
		a.Update(x, y)
		b.Update(permuted, y)
	}
	return nil
}

func flippedLabels(s *Subject) error {
	st := s.stream(8)
	a, b := s.New(), s.New()
	for n := range 300 {
		x, y := st.next()
		if p, q := a.Prob(x), b.Prob(x); s.far(1-q, p) {
			return fmt.Errorf("after %d events p = %v, with labels flipped %v; x = %v", n, p, q, x)
		}
		a.Update(x, y)
		b.Update(x, -y)
	}
	return nil
}

func continues(s *Subject) error {
	for _, stop := range []int{0, 1, 63, 200} {
		st := s.stream(9)
		c := s.train(st, stop)
		saved, err := c.AppendBinary(nil)
		if err != nil {
			return fmt.Errorf("save after %d events: %w", stop, err)
		}
		prefix := []byte("before")
		if appended, err := c.AppendBinary(prefix); err != nil || !bytes.Equal(appended, append(prefix, saved...)) {
			return fmt.Errorf("save after %d events does not append to what dst holds (error %v)", stop, err)
		}
		given := bytes.Clone(saved)
		restored, err := s.Restore(given)
		if err != nil {
			return fmt.Errorf("restore after %d events: %w", stop, err)
		}
		clear(given) // nothing may refer to it
		if err := sameBytes("a restored model", c, restored); err != nil {
			return err
		}
		for n := range 150 {
			x, y := st.next()
			if p, q := c.Prob(x), restored.Prob(x); p != q {
				return fmt.Errorf("stopped after %d events, %d later: p = %v, without the stop %v", stop, n, q, p)
			}
			c.Update(x, y)
			restored.Update(x, y)
		}
		if err := sameBytes(fmt.Sprintf("a model restored after %d events that went on", stop), c, restored); err != nil {
			return err
		}
	}
	return nil
}

func refusesDamage(s *Subject) error {
	good, err := s.train(s.stream(10), 50).AppendBinary(nil)
	if err != nil {
		return fmt.Errorf("save: %w", err)
	}
	cuts := []int{0, 1, 2, 3, 4, 7, 8, 15, 16, len(good) / 2, len(good) - 8, len(good) - 1}
	for _, n := range cuts {
		if n < 0 || n >= len(good) {
			continue
		}
		if _, err := s.Restore(good[:n:n]); err == nil {
			return fmt.Errorf("the first %d of %d bytes were restored without an error", n, len(good))
		}
	}
	if _, err := s.Restore(append(bytes.Clone(good), 0)); err == nil {
		return fmt.Errorf("%d bytes and one more were restored without an error", len(good))
	}
	return nil
}

// sameBytes compares what two models would save.
func sameBytes(what string, want, got Classifier) error {
	a, err := want.AppendBinary(nil)
	if err != nil {
		return fmt.Errorf("save: %w", err)
	}
	b, err := got.AppendBinary(nil)
	if err != nil {
		return fmt.Errorf("save: %w", err)
	}
	if len(a) != len(b) {
		return fmt.Errorf("%s has %d bytes, want %d", what, len(b), len(a))
	}
	for i := range a {
		if a[i] != b[i] {
			return fmt.Errorf("%s differs from byte %d of %d on", what, i, len(a))
		}
	}
	return nil
}
