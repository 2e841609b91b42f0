package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// A plan holds the sizes of the measurement.
type plan struct {
	events, seeds int
	seed          uint64
	resamples     int
	length        int // of a clean stream
	learnt        int // first events of a stream, whose alarms do not count
	faultAt       int // events before a fault
	horizon       int // events after it in which an alarm counts
}

// Clean streams are short, because a model learns a data set by heart after a while.
// Alarms before event learntBy do not count: the model has not learnt enough.
const (
	cleanLength = 20_000
	learntBy    = 1_500
	faultBegins = 5_000
	faultLasts  = 2_000
)

// A recording holds the series that detectors are replayed over.
type recording struct {
	clean  []*series
	faulty [][]*series // by trial, then by seed
	trials []trial     // of the faulty streams
}

// A trial is one fault in one population.
type trial struct {
	set        int // index of the population
	population string
	fault      *fault
}

// record runs the models over the clean streams, then over the faults. Each population
// gives the same number of clean events. Concurrency does not affect the results.
func (p *plan) record(ctx context.Context, populations []*population, show *phases) (*recording, error) {
	rec := new(recording)
	each := p.events / len(populations)
	streams := (each + p.length - 1) / p.length
	length := each / streams
	rec.clean = make([]*series, len(populations)*streams)
	var done atomic.Int64
	stop := show.begin(fmt.Sprintf("%d clean streams of %d events", len(rec.clean), length),
		len(rec.clean)*length, &done)
	err := eachOf(ctx, len(rec.clean), func(ctx context.Context, i int) (err error) {
		// far from the seeds of the faults
		rec.clean[i], err = populations[i%len(populations)].clean(ctx, p.seed+1<<20+uint64(i/len(populations)),
			length, &done)
		return err
	})
	stop()
	if err != nil {
		return nil, err
	}
	done.Store(0)
	expected := len(populations) * p.seeds * (p.faultAt + len(faults)*p.horizon)
	stop = show.begin(fmt.Sprintf("%d streams for each of %d faults", p.seeds, len(faults)), expected, &done)
	all := make([][]*series, len(populations)*p.seeds)
	err = eachOf(ctx, len(all), func(ctx context.Context, i int) (err error) {
		all[i], err = populations[i/p.seeds].faulty(ctx, p.seed+uint64(i%p.seeds), p.faultAt, p.horizon, &done)
		return err
	})
	stop()
	if err != nil {
		return nil, err
	}
	for i, w := range populations {
		for k := range faults {
			var streams []*series
			for _, of := range all[i*p.seeds : (i+1)*p.seeds] {
				if of[k] != nil {
					streams = append(streams, of[k])
				}
			}
			if len(streams) > 0 {
				rec.trials = append(rec.trials, trial{i, w.name, &faults[k]})
				rec.faulty = append(rec.faulty, streams)
			}
		}
	}
	return rec, nil
}

// measure records the streams, tunes the peers and compares.
func (p *plan) measure(ctx context.Context, populations []*population, curves bool,
	show *phases) (*alarmResult, error) {
	start := time.Now()
	rec, err := p.record(ctx, populations, show)
	if err != nil {
		return nil, err
	}
	out := &alarmResult{plan: *p, trials: rec.trials}
	for _, w := range populations {
		out.populations = append(out.populations, w.name)
	}
	for _, s := range rec.clean {
		out.clean += len(s.loss)
		out.counted += max(0, len(s.loss)-p.learnt)
	}
	out.before = len(populations) * p.seeds * max(0, p.faultAt-p.learnt)
	out.streams = len(rec.clean)

	everyEvent := func(s *series) []int {
		all := make([]int, len(s.loss))
		for i := range all {
			all[i] = i + 1
		}
		return all
	}
	always := p.judge(rec, detector{name: "always"}, everyEvent)
	always.falseAlarms, always.beforehand = out.counted, out.before
	never := p.judge(rec, detector{name: "never"}, func(*series) []int { return nil })
	out.detectors = append(out.detectors, always, never)

	var ours []detector
	for i := range ownDetectors {
		d := detector{name: ownDetectors[i].name, on: "hamlet", own: true, names: i == ownNamed}
		ours = append(ours, p.judge(rec, d, func(s *series) []int { return s.own(i) }))
	}
	out.target = ours[ownSuspected].falseAlarms

	var done atomic.Int64
	stop := show.begin("tuning and replaying the others", len(peers), &done)
	defer stop()
	for i := range peers {
		d, err := p.replayPeer(ctx, rec, &peers[i], out.target, curves)
		if err != nil {
			return nil, err
		}
		out.detectors = append(out.detectors, d)
		done.Add(1)
	}
	out.detectors = append(out.detectors, ours...)
	out.took = time.Since(start)
	return out, nil
}

// replayPeer tunes a peer and replays it over every fault, with curves also at other
// thresholds.
func (p *plan) replayPeer(ctx context.Context, rec *recording, peer *peer, target int, curves bool) (detector, error) {
	threshold, _, err := peer.tune(ctx, rec.clean, p.learnt, target)
	if err != nil {
		return detector{}, err
	}
	at := func(threshold float64) (detector, error) {
		raises := map[*series][]int{}
		for _, streams := range append([][]*series{rec.clean}, rec.faulty...) {
			all, err := peer.replay(ctx, streams, threshold)
			if err != nil {
				return detector{}, err
			}
			for i, s := range streams {
				raises[s] = all[i]
			}
		}
		d := detector{name: peer.name, on: peer.on, parameter: peer.parameter, threshold: threshold}
		return p.judge(rec, d, func(s *series) []int { return raises[s] }), nil
	}
	d, err := at(threshold)
	if err != nil || !curves {
		return d, err
	}
	for k := -curveBelow; k <= curveAbove; k++ {
		threshold := d.threshold * math.Pow(2, float64(k)/4)
		if k == 0 || threshold < peer.low || threshold > peer.high {
			continue
		}
		other, err := at(threshold)
		if err != nil {
			return d, err
		}
		d.others = append(d.others, other)
	}
	return d, nil
}

// A curve has this many thresholds, 2^¼ apart, below and above the tuned one.
const curveBelow, curveAbove = 11, 4

// judge counts a detector's false alarms and its delays.
func (p *plan) judge(rec *recording, d detector, raises func(*series) []int) detector {
	for _, s := range rec.clean {
		d.falseAlarms += alarmsAfter(raises(s), p.learnt, len(s.loss))
	}
	counted := map[int]bool{}
	for k, t := range rec.trials {
		var f finding
		for _, s := range rec.faulty[k] {
			at := raises(s)
			if !counted[t.set] { // before the fault, all trials of a seed have the same events
				d.beforehand += alarmsAfter(at, p.learnt, p.faultAt)
			}
			delay := math.Inf(1)
			if n := firstAfter(at, p.faultAt); n > 0 && n <= p.faultAt+p.horizon {
				delay = float64(n - p.faultAt)
				f.raised++
			}
			f.delays = append(f.delays, delay)
			if kind, ok := s.firstName(p.faultAt, p.faultAt+p.horizon); ok && slices.Contains(t.fault.names, kind) {
				f.right++
			}
		}
		counted[t.set] = true
		f.delay = median(f.delays, p.resamples, p.seed)
		d.findings = append(d.findings, f)
	}
	return d
}
