package drift

import (
	"math/rand/v2"
	"testing"

	"hamlet/algos/blr"
)

// The alarm's cost per event at 60 inputs, with its SNRs, at both rhythms,
// beside the head A on the same inputs, in one run: at most 15 µs at the default
// rhythm, mostly the SNRs'. Size is what it costs in a checkpoint.
func BenchmarkNoiseWatch(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	all := readSpambase(b)
	xs, ys := make([][]float64, 2_000), make([]float64, 2_000)
	for i := range xs {
		it := all[r.IntN(len(all))]
		xs[i] = append([]float64(nil), it.x...)
		for len(xs[i]) < 60 {
			xs[i] = append(xs[i], r.NormFloat64())
		}
		ys[i] = it.label
	}
	var head float64
	b.Run("head", func(b *testing.B) {
		h := newHead(59, 0)
		x := make([]float64, 60)
		i := 0
		for b.Loop() {
			for j, v := range xs[i] {
				x[j] = min(v, 3)
			}
			h.Update(x, ys[i], 1)
			i = (i + 1) % len(xs)
		}
		head = float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	})
	for _, c := range []struct {
		name string
		ε    float64
	}{{"every=250", .001}, {"every=50", .1}} {
		b.Run(c.name, func(b *testing.B) {
			n := mustNew(NewLabelNoise(LabelNoiseConfig{Dim: 60}))
			b.ReportAllocs()
			count := uint64(0)
			for b.Loop() {
				i := int(count) % len(xs)
				count++
				n.Observe(Event{X: xs[i], Label: ys[i], Prob: .99, FlipRate: c.ε, ID: "an id of twenty byte", Source: "feed"})
				if count%Rhythm != 0 {
					continue
				}
				if job, ok := n.Pending(); ok {
					n.Finish(job.Run())
				}
				n.Check(count)
				n.Start(count)
			}
			per := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(per/head, "×head")
			b.ReportMetric(float64(n.Size()), "bytes")
		})
	}
	b.Run("credulous-head", func(b *testing.B) {
		h := newHead(59, blr.HalfLife(CredulousMemory))
		x := make([]float64, 60)
		i := 0
		for b.Loop() {
			for j, v := range xs[i] {
				x[j] = min(v, 3)
			}
			blr.Moderate(h.Moments(x))
			h.Update(x, ys[i], 1)
			i = (i + 1) % len(xs)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/head, "×head")
	})
	for _, c := range []struct {
		name  string
		share float64
	}{{"incidents/quiet", 0}, {"incidents/flips", .1}} {
		b.Run(c.name, func(b *testing.B) {
			n, a := new(Incidents), newActor(1)
			var evidence []Evidence
			for i := range 10_000 {
				share := 0.0
				if i > 1_000 && i%2_000 < 500 {
					share = c.share
				}
				evidence = append(evidence, a.next(share, .05))
			}
			count := uint64(0)
			for b.Loop() {
				n.Observe(nil, count+1, &evidence[count%uint64(len(evidence))])
				count++
			}
		})
	}
	b.Run("covariate", func(b *testing.B) {
		c := mustNew(NewCovariate(CovariateConfig{}))
		for b.Loop() {
			c.Observe(1, 2.5)
		}
	})
	b.Run("page-hinkley", func(b *testing.B) {
		p := mustNew(NewPageHinkley(PageHinkleyConfig{}))
		for b.Loop() {
			p.Observe(1, .1)
		}
	})
}

// False alarms in 1,000,000 clean events, 100,000 from each of ten parts of
// spambase resampled with replacement, per 100,000 events:
//
//	go test -run - -bench FalseAlarms -benchtime 1x ./algos/drift
func BenchmarkFalseAlarms(b *testing.B) {
	all := readSpambase(b)
	for b.Loop() {
		raised := map[string]int{}
		for seed := range uint64(10) {
			r := newRig(57)
			src := rand.New(rand.NewPCG(seed, 7))
			for range 100_000 {
				r.event(all[src.IntN(len(all))])
			}
			for _, c := range r.changes {
				if c.raised {
					raised[c.alarm]++
				}
			}
		}
		for _, alarm := range alarmNames {
			b.ReportMetric(float64(raised[alarm])/10, alarm+"/100,000")
		}
	}
}

// False alarms of the covariate alarm alone in 10,000,000 drawn leverages, and of
// Page–Hinkley in 10,000,000 losses drawn from a model that does not change:
//
//	go test -run - -bench DrawnStreams -benchtime 1x ./algos/drift
func BenchmarkDrawnStreams(b *testing.B) {
	const events = 10_000_000
	for _, l := range leverages {
		b.Run("covariate/"+l.name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(covariateAlarms(l.draw, 0, events))/events*1e5, "alarms/100,000")
			}
		})
	}
	stream := spambaseStream(b, 0, none)
	r := newRig(57)
	var losses []float64
	for _, it := range stream {
		before := r.losses
		r.event(it)
		if r.count > 2_000 {
			losses = append(losses, r.losses-before)
		}
	}
	for _, λ := range []float64{24, 28, 32} {
		b.Run(map[float64]string{24: "concept/threshold=24", 28: "concept/threshold=28", 32: "concept/threshold=32"}[λ], func(b *testing.B) {
			for b.Loop() {
				p := mustNew(NewPageHinkley(PageHinkleyConfig{Threshold: λ}))
				src := rand.New(rand.NewPCG(1, 1))
				n := 0
				for i := range uint64(events) {
					if p.Observe(i+1, losses[src.IntN(len(losses))]) && p.raised {
						n++
					}
				}
				b.ReportMetric(float64(n)/events*1e5, "alarms/100,000")
			}
		})
	}
}
