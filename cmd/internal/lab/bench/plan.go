package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"hamlet/cmd/internal/show/report"
)

// A plan holds the sizes of the measurement.
type plan struct {
	Seeds   int    `json:"seeds"` // streams for each fault
	Seed    uint64 `json:"seed"`
	Horizon int    `json:"horizon"` // events after a fault in which an alarm counts

	events    int // of clean streams
	resamples int
	length    int // of a clean stream
	learnt    int // first events of a stream, whose alarms do not count
	faultAt   int // events before a fault
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
	sets   int         // populations
}

// A trial is one fault in one population.
type trial struct {
	set        int // index of the population
	population string
	fault      *fault
}

// collect runs the models over the clean streams, then over the faults. Each population
// gives the same number of clean events. Concurrency does not affect the results.
func (p *plan) collect(ctx context.Context, populations []*population, show *phases) (*recording, error) {
	rec := &recording{sets: len(populations)}
	each := p.events / len(populations)
	streams := (each + p.length - 1) / p.length
	length := each / streams
	rec.clean = make([]*series, len(populations)*streams)
	var done atomic.Int64
	stop := show.begin(fmt.Sprintf("%d clean streams of %d events", len(rec.clean), length),
		len(rec.clean)*length, &done)
	err := eachOf(ctx, len(rec.clean), func(ctx context.Context, i int) (err error) {
		// far from the seeds of the faults
		rec.clean[i], err = populations[i%len(populations)].clean(ctx, p.Seed+1<<20+uint64(i/len(populations)),
			length, &done)
		return err
	})
	stop()
	if err != nil {
		return nil, err
	}
	done.Store(0)
	expected := len(populations) * p.Seeds * (p.faultAt + len(faults)*p.Horizon)
	stop = show.begin(fmt.Sprintf("%d streams for each of %d faults", p.Seeds, len(faults)), expected, &done)
	all := make([][]*series, len(populations)*p.Seeds)
	err = eachOf(ctx, len(all), func(ctx context.Context, i int) (err error) {
		all[i], err = populations[i/p.Seeds].faulty(ctx, p.Seed+uint64(i%p.Seeds), p.faultAt, p.Horizon, &done)
		return err
	})
	stop()
	if err != nil {
		return nil, err
	}
	for i, w := range populations {
		for k := range faults {
			var streams []*series
			for _, of := range all[i*p.Seeds : (i+1)*p.Seeds] {
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
	rec, err := p.collect(ctx, populations, show)
	if err != nil {
		return nil, err
	}
	out := &alarmResult{plan: *p, FaultAt: p.faultAt + 1, trials: rec.trials, streams: len(rec.clean)}
	for _, w := range populations {
		out.Sets = append(out.Sets, w.name)
	}
	for _, s := range rec.clean {
		out.CleanEvents += len(s.loss)
	}
	out.Counted, out.Before = p.counted(rec)

	everyEvent := func(s *series) []int {
		all := make([]int, len(s.loss))
		for i := range all {
			all[i] = i + 1
		}
		return all
	}
	always := p.judge(rec, detector{Name: "always"}, everyEvent)
	always.FalseAlarms, always.Beforehand = out.Counted, out.Before
	always.Rate, always.BeforeRate = rate(out.Counted, out.Counted), rate(out.Before, out.Before)
	never := p.judge(rec, detector{Name: "never"}, func(*series) []int { return nil })
	out.Detectors = append(out.Detectors, always, never)

	var ours []detector
	for i := range ownDetectors {
		d := detector{Name: ownDetectors[i].name, On: "hamlet", own: true, names: i == ownNamed}
		ours = append(ours, p.judge(rec, d, func(s *series) []int { return s.own(i) }))
	}
	out.target = ours[ownSuspected].FalseAlarms

	var done atomic.Int64
	stop := show.begin("tuning and replaying the others", len(peers), &done)
	defer stop()
	for i := range peers {
		d, err := p.replayPeer(ctx, rec, &peers[i], out.target, curves)
		if err != nil {
			return nil, err
		}
		out.Detectors = append(out.Detectors, d)
		done.Add(1)
	}
	out.Detectors = append(out.Detectors, ours...)
	out.Seconds = time.Since(start).Seconds()
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
		d := detector{Name: peer.name, On: peer.on, Parameter: peer.parameter, Threshold: threshold}
		return p.judge(rec, d, func(s *series) []int { return raises[s] }), nil
	}
	d, err := at(threshold)
	if err != nil || !curves {
		return d, err
	}
	for k := -curveBelow; k <= curveAbove; k++ {
		threshold := d.Threshold * math.Pow(2, float64(k)/4)
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

// counted returns the events on which false alarms count: of clean streams, and of the others before
// their faults. There, all trials of a seed have the same events.
func (p *plan) counted(rec *recording) (clean, before int) {
	for _, s := range rec.clean {
		clean += max(0, len(s.loss)-p.learnt)
	}
	return clean, rec.sets * p.Seeds * max(0, p.faultAt-p.learnt)
}

// judge counts a detector's false alarms and its delays.
func (p *plan) judge(rec *recording, d detector, raises func(*series) []int) detector {
	for _, s := range rec.clean {
		d.FalseAlarms += alarmsAfter(raises(s), p.learnt, len(s.loss))
	}
	seen := map[int]bool{} // sets whose events before the faults are counted
	for k, t := range rec.trials {
		f := finding{Set: t.population, Fault: t.fault.name, Of: len(rec.faulty[k])}
		var delays []float64 // by seed; +Inf: not raised
		right := 0
		for _, s := range rec.faulty[k] {
			at := raises(s)
			if !seen[t.set] {
				d.Beforehand += alarmsAfter(at, p.learnt, p.faultAt)
			}
			delay := math.Inf(1)
			if n := firstAfter(at, p.faultAt); n > 0 && n <= p.faultAt+p.Horizon {
				delay = float64(n - p.faultAt)
				f.Raised++
			}
			delays = append(delays, delay)
			if kind, ok := s.firstName(p.faultAt, p.faultAt+p.Horizon); ok && slices.Contains(t.fault.names, kind) {
				right++
			}
		}
		seen[t.set] = true
		if d.names && len(t.fault.names) > 0 {
			f.Right = &right
		}
		share := float64(f.Raised) / float64(f.Of)
		lo, hi := report.Wilson(share, float64(f.Of))
		f.Share, f.Delay = interval{share, lo, hi}, median(delays, p.resamples, p.Seed)
		d.Faults = append(d.Faults, f)
	}
	clean, before := p.counted(rec)
	d.Rate, d.BeforeRate = rate(d.FalseAlarms, clean), rate(d.Beforehand, before)
	return d
}
