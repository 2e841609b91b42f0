package bench

import (
	"context"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/drift"
	"hamlet/algos/lab/detect"
)

// A watcher takes an event, counted from 1. It reports whether it raises the alarm.
type watcher func(count int, wrong bool, loss float64) (raises bool)

// A peer is a detector of change from the literature. A higher threshold means fewer
// alarms and longer delays.
type peer struct {
	name, on  string
	parameter string // meaning of the threshold
	low, high float64
	watch     func(threshold float64) (watcher, error)
}

// ADWIN takes numbers from 0 to 1: losses are clipped like those of Page–Hinkley,
// at 3 nats.
const clippedLoss = 3

var peers = []peer{
	{
		name: "DDM", on: "error", parameter: "drift level, standard deviations", low: 0.5, high: 500,
		watch: func(threshold float64) (watcher, error) {
			d, err := detect.NewDDM(detect.DDMConfig{Drift: threshold, Warning: min(2, threshold)})
			return func(_ int, wrong bool, _ float64) bool {
				raises := d.Observe(wrong) == detect.OutOfControl
				if raises {
					d.Reset()
				}
				return raises
			}, err
		},
	},
	{
		name: "ADWIN", on: "error", parameter: "log₁₀ 1/δ", low: 0.01, high: 290,
		watch: func(threshold float64) (watcher, error) {
			a, err := detect.NewADWIN(detect.ADWINConfig{Delta: math.Pow(10, -threshold)})
			return func(_ int, wrong bool, _ float64) bool {
				return a.Observe(oneIf(wrong)).Rise > 0
			}, err
		},
	},
	{
		name: "ADWIN", on: "log loss", parameter: "log₁₀ 1/δ", low: 0.01, high: 290,
		watch: func(threshold float64) (watcher, error) {
			a, err := detect.NewADWIN(detect.ADWINConfig{Delta: math.Pow(10, -threshold)})
			return func(_ int, _ bool, loss float64) bool {
				return a.Observe(min(loss, clippedLoss)/clippedLoss).Rise > 0
			}, err
		},
	},
	{
		name: "Page–Hinkley", on: "error", parameter: "λ, errors", low: 0.5, high: 5_000,
		watch: func(threshold float64) (watcher, error) {
			p, err := drift.NewPageHinkley(drift.PageHinkleyConfig{Threshold: threshold})
			return func(count int, wrong bool, _ float64) bool {
				return p.Observe(uint64(count), oneIf(wrong)) && p.Status().Raised
			}, err
		},
	},
	{
		name: "Page–Hinkley", on: "log loss", parameter: "λ, nats", low: 0.5, high: 5_000,
		watch: func(threshold float64) (watcher, error) {
			p, err := drift.NewPageHinkley(drift.PageHinkleyConfig{Threshold: threshold, Clip: clippedLoss})
			return func(count int, _ bool, loss float64) bool {
				return p.Observe(uint64(count), loss) && p.Status().Raised
			}, err
		},
	},
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Alarms within together events count as one. DDM and ADWIN may repeat an alarm.
const together = 500

// raises replays a peer over a series and returns the events at which it raises an
// alarm.
func (p *peer) raises(s *series, threshold float64) ([]int, error) {
	watch, err := p.watch(threshold)
	if err != nil {
		return nil, fmt.Errorf("%s at %v: %w", p.name, threshold, err)
	}
	var at []int
	for i := range s.loss {
		if watch(i+1, s.wrong[i], s.loss[i]) {
			at = append(at, i+1)
		}
	}
	return at, nil
}

// alarmsAfter counts the alarms after event learnt, up to event end. Alarms within
// together events of one that was counted do not count.
func alarmsAfter(raises []int, learnt, end int) (n int) {
	open := learnt // raises up to this event do not count
	for _, at := range raises {
		if at > open && at <= end {
			n++
			open = at + together - 1
		}
	}
	return n
}

// replay returns the raises over each of the streams.
func (p *peer) replay(ctx context.Context, streams []*series, threshold float64) ([][]int, error) {
	all := make([][]int, len(streams))
	err := eachOf(ctx, len(streams), func(_ context.Context, i int) (err error) {
		all[i], err = p.raises(streams[i], threshold)
		return err
	})
	return all, err
}

// alarms counts the false alarms over clean streams, without those of the first learnt
// events.
func (p *peer) alarms(ctx context.Context, clean []*series, learnt int, threshold float64) (n int, err error) {
	all, err := p.replay(ctx, clean, threshold)
	for i := range all {
		n += alarmsAfter(all[i], learnt, len(clean[i].loss))
	}
	return n, err
}

// tuneSteps is how often the last step of √2 is halved: to a precision of 0.1 %.
const tuneSteps = 9

// tune returns the lowest threshold with at most target false alarms, there and at all
// thresholds tried above it, and their number. It tries from the highest down, because
// false alarms are not monotonic: a DDM that alarms while the model learns resets itself
// and may be quiet later. If even the highest gives more alarms, tune returns it.
func (p *peer) tune(ctx context.Context, clean []*series, learnt,
	target int) (threshold float64, alarms int, err error) {
	threshold = p.high
	if alarms, err = p.alarms(ctx, clean, learnt, threshold); err != nil || alarms > target {
		return threshold, alarms, err
	}
	loud := 0.0 // a lower threshold that gives more alarms
	try := func(t float64) error {
		n, err := p.alarms(ctx, clean, learnt, t)
		if n > target {
			loud = t
		} else {
			threshold, alarms = t, n
		}
		return err
	}
	for t := p.high / math.Sqrt2; loud == 0 && t >= p.low; t /= math.Sqrt2 {
		if err := try(t); err != nil {
			return 0, 0, err
		}
	}
	for range tuneSteps {
		if loud == 0 {
			break // the lowest threshold meets the target
		}
		if err := try(math.Sqrt(loud * threshold)); err != nil {
			return 0, 0, err
		}
	}
	return threshold, alarms, nil
}

// firstAfter returns the first raise after an event, or 0.
func firstAfter(raises []int, at int) int {
	i, _ := slices.BinarySearch(raises, at+1)
	if i == len(raises) {
		return 0
	}
	return raises[i]
}
