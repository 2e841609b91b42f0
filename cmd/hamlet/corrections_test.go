package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/service/example"
	"hamlet/stream"
)

// mailExamples returns the SpamAssassin mail in time order.
func mailExamples(tb *testing.B) (all []model.Example) {
	eachMail(tb, func(e *stream.Event) {
		ex, _, err := example.Of(e)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, ex)
	})
	return all
}

// correctionOf returns a correction of ex by its own source.
func correctionOf(ex *model.Example, id string, spam bool) model.Example {
	return model.Example{ID: id, Source: ex.Source, Action: model.Correct, Of: ex.Identity, OwnOnly: true, Spam: spam, Body: ex.Body}
}

func mustApply(tb testing.TB, m *model.Model, ex model.Example) model.Effect {
	tb.Helper()
	effect, err := m.Apply(&ex)
	if err != nil {
		tb.Fatal(err)
	}
	return effect
}

// BenchmarkDoubtful teaches the SpamAssassin mail but its last 1,000 messages. Of these it
// takes the 20 whose p is nearest to ½. Each is learnt with one label, then with the other and
// with the first again, by corrections and by plain labels, and once more after 3,000 other
// events, when the label can no longer be withdrawn. It reports how many p are on the side of
// the last label. algos/model/MEASURED.md has its table.
//
//	go test -run - -bench Doubtful -benchtime 1x ./cmd/hamlet
func BenchmarkDoubtful(b *testing.B) {
	all := mailExamples(b)
	taught, rest := all[:len(all)-1000], all[len(all)-1000:]
	m, err := model.New(model.Config{})
	if err != nil {
		b.Fatal(err)
	}
	for _, ex := range taught {
		mustApply(b, m, ex)
	}
	stored, err := m.AppendBinary(nil)
	if err != nil {
		b.Fatal(err)
	}
	p := m.NewPredictor()
	doubt := func(ex *model.Example) float64 {
		prediction, err := p.Predict(&ex.Body)
		if err != nil {
			b.Fatal(err)
		}
		return math.Abs(prediction.LogOdds)
	}
	slices.SortStableFunc(rest, func(x, y model.Example) int { return cmp.Compare(doubt(&x), doubt(&y)) })
	for _, way := range []string{"corrections", "plain labels", "corrections after 3,000 events"} {
		b.Run(way, func(b *testing.B) {
			for range b.N {
				right, worst := [3]int{}, [3]float64{}
				for step := range worst {
					worst[step] = math.Inf(1)
				}
				for k := range rest[:20] {
					m, err := model.Restore(stored)
					if err != nil {
						b.Fatal(err)
					}
					ex := rest[k]
					for step, spam := range []bool{ex.Spam, !ex.Spam, ex.Spam} {
						next := ex
						next.ID, next.Spam = fmt.Sprint(ex.ID, "/", step), spam
						if step > 0 && way != "plain labels" {
							if way != "corrections" && step == 1 {
								for i, other := range taught[:3000] {
									other.ID, other.Identity = fmt.Sprint("again ", i), ""
									mustApply(b, m, other)
								}
							}
							next = correctionOf(&ex, next.ID, spam)
						}
						mustApply(b, m, next)
						prediction, err := m.NewPredictor().Predict(&ex.Body)
						if err != nil {
							b.Fatal(err)
						}
						z := prediction.LogOdds
						if !spam {
							z = -z
						}
						if z > 0 {
							right[step]++
						}
						worst[step] = min(worst[step], z)
					}
				}
				b.Logf("%s: right %v of 20, worst log-odds of the label %.2f", way, right, worst)
				b.ReportMetric(float64(right[1]), "right-then")
				b.ReportMetric(float64(right[2]), "right-again")
			}
		})
	}
}

// BenchmarkLateCorrections gives every twentieth label wrongly, and corrects it after some
// further events. It reports the log loss of the whole stream. algos/model/MEASURED.md has
// its table.
//
//	go test -run - -bench LateCorrections -benchtime 1x ./cmd/hamlet
func BenchmarkLateCorrections(b *testing.B) {
	streams := map[string]func(*testing.B) []model.Example{
		"SpamAssassin": mailExamples,
		"synthetic": func(tb *testing.B) (all []model.Example) {
			items, err := synthetic.Items(synthetic.Config{Seed: 1}, 60_000, source.FlipConfig{})
			if err != nil {
				tb.Fatal(err)
			}
			for item, err := range items {
				if err != nil {
					tb.Fatal(err)
				}
				ex, _, err := example.Of(&item.Event)
				if err != nil {
					tb.Fatal(err)
				}
				all = append(all, ex)
			}
			return all
		},
	}
	for _, name := range []string{"SpamAssassin", "synthetic"} {
		all := streams[name](b)
		for _, way := range []struct {
			name     string
			distance int // 0: no label is wrong; −1: none is corrected
			action   model.Action
		}{
			{"right at once", 0, model.Learn}, {"never corrected", -1, model.Learn},
			{"corrected after 1", 1, model.Correct}, {"100", 100, model.Correct}, {"2000", 2000, model.Correct}, {"50000", 50_000, model.Correct},
			{"plain label after 1", 1, model.Learn}, {"plain 100", 100, model.Learn}, {"plain 2000", 2000, model.Learn}, {"plain 50000", 50_000, model.Learn},
		} {
			if way.distance >= len(all) {
				continue
			}
			b.Run(name+"/"+way.name, func(b *testing.B) {
				const offsets = 5
				var loss, roca float64
				for offset := range offsets {
					m, err := model.New(model.Config{})
					if err != nil {
						b.Fatal(err)
					}
					metrics := eval.New()
					wrong := func(i int) bool { return i%20 == 4*offset+1 }
					for i := range all {
						ex := all[i]
						if wrong(i) && way.distance != 0 {
							ex.Spam = !ex.Spam
						}
						metrics.Add(all[i].Spam, mustApply(b, m, ex).Prediction.LogOdds)
						if k := i - way.distance; way.distance > 0 && k >= 0 && wrong(k) {
							again := all[k]
							again.ID += "/again"
							if way.action == model.Correct {
								again = correctionOf(&all[k], again.ID, all[k].Spam)
							}
							mustApply(b, m, again)
						}
					}
					s := metrics.Summary()
					loss, roca = loss+float64(s.LogLoss)/offsets, roca+float64(s.ROCA)/offsets
				}
				b.ReportMetric(loss, "log-loss")
				b.ReportMetric(roca, "1-ROCA%")
			})
		}
	}
}
