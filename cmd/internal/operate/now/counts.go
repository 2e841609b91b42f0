package now

import (
	"maps"
	"math"
	"slices"
	"time"

	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
)

// counts are the answers of the last hour, by minute and door.
type counts struct {
	minutes map[int64]map[string]*doorMinute // by minutes since 1970, and by door; some 61 minutes
	seen    map[string]int64                 // of each door, the newest minute; at most mostDoors
	seconds [64]second                       // by seconds since 1970, modulo
}

// A doorMinute is one door in one minute.
type doorMinute struct {
	Counts
	took [took]float32 // answers by the milliseconds that they took
}

type second struct {
	at int64
	n  float64
}

// Bucket i of took holds from shortest·wider^i milliseconds on. The last one is 100 seconds.
const (
	took     = 90
	shortest = 0.01
	wider    = 1.2
)

func newCounts() *counts {
	return &counts{minutes: map[int64]map[string]*doorMinute{}, seen: map[string]int64{}}
}

// add counts a decision that stands for weight decisions. Times of the future are wrong
// clocks: a minute of them is accepted.
func (c *counts) add(e *stream.JournalEntry, now time.Time, weight float64) {
	if e.Time.After(now.Add(time.Minute)) || e.Time.Before(now.Add(-61*time.Minute)) {
		return
	}
	minute := e.Time.Unix() / 60
	doors := c.minutes[minute]
	if doors == nil {
		c.forget(now.Unix()/60 - 61)
		doors = map[string]*doorMinute{}
		c.minutes[minute] = doors
	}
	name := c.door(e.Door, minute)
	d := doors[name]
	if d == nil {
		d = &doorMinute{}
		doors[name] = d
	}
	d.add(e.Verdict, weight)
	d.took[bucket(e.MS)] += float32(weight)
	s := &c.seconds[e.Time.Unix()%int64(len(c.seconds))]
	if at := e.Time.Unix(); s.at < at {
		*s = second{at: at}
	}
	if s.at == e.Time.Unix() {
		s.n += weight
	}
}

func (c *counts) forget(least int64) {
	maps.DeleteFunc(c.minutes, func(minute int64, _ map[string]*doorMinute) bool { return minute < least })
	maps.DeleteFunc(c.seen, func(_ string, minute int64) bool { return minute < least })
}

// door returns the name that a door is counted by.
func (c *counts) door(name string, minute int64) string {
	name = page.Clip(name, doorLetters)
	newest, known := c.seen[name]
	if !known && len(c.seen) >= mostDoors {
		return Others
	}
	c.seen[name] = max(newest, minute)
	return name
}

func bucket(ms float64) int {
	if !(ms > shortest) {
		return 0
	}
	return min(took-1, int(math.Log(ms/shortest)/math.Log(wider)))
}

func (c *counts) show(j *Journal, now time.Time) {
	last := now.Unix() / 60
	doors := map[string]*doorMinute{}
	j.Minutes = make([]Minute, 60)
	for i := range j.Minutes {
		at := last - int64(len(j.Minutes)-1-i)
		m := Minute{Start: time.Unix(60*at, 0).UTC()}
		for name, d := range c.minutes[at] {
			m.sum(d.Counts)
			all := doors[name]
			if all == nil {
				all = &doorMinute{}
				doors[name] = all
			}
			all.sum(d.Counts)
			for k, n := range d.took {
				all.took[k] += n
			}
		}
		j.Hour.sum(m.Counts)
		j.Minutes[i] = m
	}
	for _, name := range slices.Sorted(maps.Keys(doors)) {
		d := doors[name]
		j.Doors = append(j.Doors, Door{Name: name, Counts: d.Counts, Half: d.quantile(0.5), NineTenths: d.quantile(0.9)})
	}
	for _, s := range c.seconds {
		if age := now.Unix() - s.at; age >= 0 && age < 60 {
			j.LastMinute += s.n
		}
	}
}

// quantile returns the milliseconds that a fraction q of the answers took at most.
func (d *doorMinute) quantile(q float64) float64 {
	want, sum := q*d.Total(), 0.0
	for i, n := range d.took {
		if sum += float64(n); sum >= want && sum > 0 {
			return shortest * math.Pow(wider, float64(i)+0.5)
		}
	}
	return math.NaN()
}
