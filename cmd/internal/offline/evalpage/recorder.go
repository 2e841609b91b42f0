// Package evalpage writes the page of hamlet eval --report: curves, calibration, alarms
// and sources of one run, as a file that needs no other.
//
//	recorder := evalpage.NewRecorder()
//	result, _, err := replay.Run(ctx, replay.Config{Observer: recorder, …}, events)
//	err = recorder.Write(dir, result, "hamlet eval mail.mbox", time.Now())
//
// # Memory
//
// A recorder takes some 2 MiB, however long the stream is. Log-odds are counted in bins of
// 2⁻¹⁰ nats, so curves may differ from exact ones by less than a line's width.
package evalpage

import (
	"math"

	"hamlet/algos/eval"
	"hamlet/cmd/internal/show/report"
	"hamlet/stream"
)

// A Recorder collects what the page shows. It is a replay.Observer.
type Recorder struct {
	ham, spam, wrong int
	bins             bins
	reliability      [len(reliabilityEdges) + 1]forecast
	windows          windows
	learning         []checkpoint
	next             int // events at the next checkpoint
	begin            int // n of the first event that was counted; 0 before it
	first            []firstEvent
	sources          map[string]*sourceCount
	others           sourceCount // of sources beyond mostSources
	alerts           []alert
	unlisted         int // alerts beyond mostAlerts
}

const (
	mostSources = 1024
	mostAlerts  = 500
	// Learning curves begin after firstCheckpoint events; fewer are too noisy.
	firstCheckpoint = 20
	checkpointRatio = 1.1
)

// reliabilityEdges are about evenly spaced in log-odds.
var reliabilityEdges = [...]float64{0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999}

// A forecast counts the events whose p lies between two edges.
type forecast struct {
	n, spam int
	p       float64 // sum
}

// A checkpoint is the state after n events.
type checkpoint struct {
	n                int // scored events, as on the axis
	wrong            float64
	wrongLo, wrongHi float64
	roca             float64 // NaN without one of the classes
	rocaLo, rocaHi   float64
}

type firstEvent struct {
	spam    bool
	logOdds float64
}

type sourceCount struct{ events, wrong int }

// An alert is a step of an incident, without what only the log needs.
type alert struct {
	event                               uint64
	kind, state, body, accused, reading string
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder {
	return &Recorder{bins: newBins(), windows: windows{width: firstCheckpoint}, next: firstCheckpoint,
		sources: map[string]*sourceCount{}}
}

// Scored counts one event, the n-th of the stream. logOdds is not NaN.
func (r *Recorder) Scored(n int, source string, spam bool, logOdds float64) {
	if r.begin == 0 {
		r.begin = n
	}
	wrong := logOdds >= 0 != spam
	if spam {
		r.spam++
	} else {
		r.ham++
	}
	if wrong {
		r.wrong++
	}
	r.bins.add(spam, logOdds)
	r.forecast(spam, 1/(1+math.Exp(-logOdds)))
	r.windows.add(n, wrong)
	if len(r.first) < eval.FirstEvents {
		r.first = append(r.first, firstEvent{spam, logOdds})
	}
	r.source(source, wrong)
	if seen := r.ham + r.spam; seen >= r.next {
		r.check(n)
		r.next = max(seen+1, int(float64(seen)*checkpointRatio))
	}
}

func (r *Recorder) forecast(spam bool, p float64) {
	k := 0
	for k < len(reliabilityEdges) && p >= reliabilityEdges[k] {
		k++
	}
	f := &r.reliability[k]
	f.n++
	f.p += p
	if spam {
		f.spam++
	}
}

func (r *Recorder) source(name string, wrong bool) {
	c := r.sources[name]
	switch {
	case c != nil:
	case len(r.sources) < mostSources:
		c = new(sourceCount)
		r.sources[name] = c
	default:
		c = &r.others
	}
	c.events++
	if wrong {
		c.wrong++
	}
}

// check adds a point to the learning curves.
func (r *Recorder) check(n int) {
	seen := float64(r.ham + r.spam)
	c := checkpoint{n: n, wrong: float64(r.wrong) / seen}
	c.wrongLo, c.wrongHi = report.Wilson(c.wrong, seen)
	c.roca, c.rocaLo, c.rocaHi = eval.ROCAInterval(r.bins.points(), z95)
	if last := len(r.learning) - 1; last >= 0 && r.learning[last].n == n {
		r.learning[last] = c
		return
	}
	r.learning = append(r.learning, c)
}

// z95 is the normal's 97.5 % quantile: intervals are of 95 %.
const z95 = 1.959963984540054

// Alerted keeps a step of an incident.
func (r *Recorder) Alerted(a *stream.Alert) {
	if len(r.alerts) == mostAlerts {
		r.unlisted++
		return
	}
	r.alerts = append(r.alerts, alert{a.Event, a.Kind, a.State, a.Body, a.Accused, a.Reading})
}

// bins count ham and spam by their log-odds: 2⁻¹⁰ nats wide, over ±64.
type bins [][2]uint32

const (
	binsPerNat = 1 << 10
	mostNats   = 64
)

func newBins() bins { return make(bins, 2*mostNats*binsPerNat+1) }

func (b bins) add(spam bool, logOdds float64) {
	at := math.Floor(min(max(logOdds, -mostNats), mostNats)*binsPerNat) + mostNats*binsPerNat
	class := 0
	if spam {
		class = 1
	}
	b[int(at)][class]++
}

// points are the bins that are not empty, in ascending order.
func (b bins) points() (all []eval.Point) {
	for i, n := range b {
		if n != [2]uint32{} {
			all = append(all, eval.Point{LogOdds: float64(i-mostNats*binsPerNat) / binsPerNat, Ham: float64(n[0]),
				Spam: float64(n[1])})
		}
	}
	return all
}

// windows count errors in parts of the stream. When there are too many, two become one.
type windows struct {
	width int
	all   []window
}

// A window ends after the scored event to.
type window struct{ to, events, wrong int }

const mostWindows = 60

func (w *windows) add(n int, wrong bool) {
	last := len(w.all) - 1
	if last < 0 || w.all[last].events == w.width {
		if len(w.all) == mostWindows {
			w.halve()
		}
		w.all = append(w.all, window{})
		last = len(w.all) - 1
	}
	at := &w.all[last]
	at.to = n
	at.events++
	if wrong {
		at.wrong++
	}
}

// halve joins neighbours. mostWindows is even.
func (w *windows) halve() {
	for i := range mostWindows / 2 {
		a, b := w.all[2*i], w.all[2*i+1]
		w.all[i] = window{b.to, a.events + b.events, a.wrong + b.wrong}
	}
	w.all = w.all[:mostWindows/2]
	w.width *= 2
}
