package model_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/algos/feature"
	"hamlet/algos/model"
)

// kinds are bodies of the usual sizes: a mail with 1.6 kB of header and 2.5 kB of
// text, a text message, a vector of 57 dense numbers, one of 100 hashed names.
func kinds() map[string]struct {
	cfg  model.Config
	body func(i int) model.Body
} {
	words := func(i, n int) []byte {
		var s strings.Builder
		for k := range n {
			fmt.Fprintf(&s, "word%d of%d, ", (i*k*k+k)%977, i%31)
		}
		return []byte(s.String())
	}
	var columns []string
	for j := range 57 {
		columns = append(columns, fmt.Sprintf("c%02d", j))
	}
	type kind = struct {
		cfg  model.Config
		body func(i int) model.Body
	}
	return map[string]kind{
		"mail": {body: func(i int) model.Body {
			return model.Body{Message: &feature.Message{
				Head: words(i, 110), Subject: words(i, 4), Body: words(i, 170), BodyBytes: 3000, Parts: 1}}
		}},
		"sms": {body: func(i int) model.Body {
			return model.Body{Message: &feature.Message{Body: words(i, 6), BodyBytes: 80}}
		}},
		"dense57": {cfg: model.Config{Dense: columns}, body: func(i int) model.Body {
			var b model.Body
			for j, name := range columns {
				b.Vector = append(b.Vector, feature.Number{Name: name, Value: float64((i*j*7 + i) % 23)})
			}
			return b
		}},
		"hashed100": {body: func(i int) model.Body {
			var b model.Body
			for j := range 100 {
				b.Vector = append(b.Vector, feature.Number{Name: fmt.Sprintf("n%03d%d", j, i%50), Value: 1})
			}
			return b
		}},
	}
}

func trained(b *testing.B, cfg model.Config, body func(i int) model.Body) (*model.Model, []model.Example) {
	m := newModel(b, cfg)
	events := make([]model.Example, 500)
	for i := range events {
		events[i] = model.Example{ID: fmt.Sprint(i), Spam: i%2 == 0, Body: body(i)}
	}
	apply(b, m, events)
	return m, events
}

func BenchmarkApply(b *testing.B) {
	for _, name := range []string{"mail", "sms", "dense57", "hashed100"} {
		b.Run(name, func(b *testing.B) {
			kind := kinds()[name]
			kind.cfg.DuplicateWindow = 400
			m, events := trained(b, kind.cfg, kind.body)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if effect, err := m.Apply(&events[i%500]); err != nil || effect.Duplicate {
					b.Fatal(effect, err)
				}
			}
		})
	}
}

// BenchmarkApplyRead is BenchmarkApply of mail that was read ahead: what is left for the one
// goroutine that applies events. Compare the two in one run.
func BenchmarkApplyRead(b *testing.B) {
	kind := kinds()["mail"]
	kind.cfg.DuplicateWindow = 400
	m, events := trained(b, kind.cfg, kind.body)
	readings, r := make([]model.Extract, len(events)), m.NewExtractor()
	for i := range events {
		r.Read(&readings[i], &events[i].Body)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if effect, err := m.Apply(&events[i%500]); err != nil || effect.Duplicate {
			b.Fatal(effect, err)
		}
	}
}

// BenchmarkBesideNone learns spambase four times over with the default ensemble and without
// one, 500 events of each in turns. "beside-none" is the median, over the 500s after the first
// 5,000 events, of the events a second with the ensemble by those without.
//
//	go test -run - -bench BesideNone -benchtime 3x ./algos/model
func BenchmarkBesideNone(b *testing.B) {
	once, columns := spambaseEvents(b)
	var events []model.Example
	for pass := range 4 {
		r := rand.New(rand.NewPCG(1, uint64(pass)))
		for _, i := range r.Perm(len(once)) {
			ex := once[i]
			ex.ID = fmt.Sprintf("%d-%d", pass, i)
			events = append(events, ex)
		}
	}
	const turn = 500
	var ratios, with []float64
	for b.Loop() {
		ensemble := newModel(b, model.Config{Dense: columns})
		none := newModel(b, model.Config{Dense: columns, VectorEnsembles: []string{}, LabelTrust: model.TrustAll})
		for at := 0; at+turn <= len(events); at += turn {
			var spent [2]float64
			for k, m := range []*model.Model{none, ensemble} {
				start := time.Now()
				for i := at; i < at+turn; i++ {
					if _, err := m.Apply(&events[i]); err != nil {
						b.Fatal(err)
					}
				}
				spent[k] = float64(time.Since(start).Nanoseconds()) / 1e3 / turn
			}
			if at >= 5000 {
				ratios, with = append(ratios, spent[0]/spent[1]), append(with, spent[1])
			}
		}
	}
	slices.Sort(ratios)
	slices.Sort(with)
	b.ReportMetric(ratios[len(ratios)/2], "beside-none")
	b.ReportMetric(with[len(with)/2], "µs/event-with")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRead reads mail ahead.
func BenchmarkRead(b *testing.B) {
	kind := kinds()["mail"]
	m, events := trained(b, kind.cfg, kind.body)
	r, reading := m.NewExtractor(), new(model.Extract)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Read(reading, &events[i%500].Body)
	}
}

func BenchmarkPredict(b *testing.B) {
	for _, name := range []string{"mail", "sms", "dense57", "hashed100"} {
		b.Run(name, func(b *testing.B) {
			m, events := trained(b, kinds()[name].cfg, kinds()[name].body)
			p := m.NewPredictor()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := p.Predict(&events[i%500].Body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSave measures what a save needs. "copy" is how long learning stands still: a copy, and own tables again.
func BenchmarkSave(b *testing.B) {
	m, events := trained(b, model.Config{}, kinds()["mail"].body)
	dst := bytesOf(b, m)
	b.SetBytes(int64(len(dst)))
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dst, _ = m.AppendBinary(dst[:0])
		}
	})
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.WriteTo(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			c, err := m.Copy()
			if err != nil {
				b.Fatal(err)
			}
			ex := events[0]
			ex.ID = fmt.Sprint("copy ", i)
			if _, err := m.Apply(&ex); err != nil {
				b.Fatal(err)
			}
			m.Reclaim(c, true)
		}
	})
	b.Run("restore", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := model.Restore(dst); err != nil {
				b.Fatal(err)
			}
		}
	})
}
