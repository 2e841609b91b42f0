package now

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
	"hamlet/stream/servertest/loopback"
)

// Of 10,000 lines in each second about LinesPerSecond are decoded, and they stand for all.
// A lull ends that. So it is for messages of one line and of two hundred.
func TestSamplerBoundsItsWork(t *testing.T) {
	for _, length := range []int{1, 7, 200} {
		var s sampler
		now := time.Unix(1_800_000_000, 0)
		for second := range 5 {
			decoded, estimate, left := 0, 0, 10_000
			for left > 0 {
				at := now.Add(time.Duration(second)*time.Second + time.Duration(10_000-left)*time.Second/10_001)
				n := min(length, left)
				left -= n
				first, stride := s.plan(at, n)
				for i := first; i < n; i += stride {
					decoded++
					estimate += stride
				}
			}
			if most := 1.3 * LinesPerSecond; second > 0 && float64(decoded) > most || decoded > 4*LinesPerSecond || math.Abs(float64(estimate)-10_000) > 1000 {
				t.Errorf("messages of %d, second %d: decoded %d, which stand for %d", length, second, decoded, estimate)
			}
		}
		if s.oneOf(now.Add(4500*time.Millisecond)) != 10 || s.oneOf(now.Add(7*time.Second)) != 1 {
			t.Errorf("messages of %d: one of %d, and then %d", length, s.oneOf(now.Add(4500*time.Millisecond)), s.oneOf(now.Add(7*time.Second)))
		}
	}
}

// Names of doors come from those who ask: their number and length are bounded.
func TestCountsAreBounded(t *testing.T) {
	c, now := newCounts(), time.Now()
	for i := range 1000 {
		e := decision(i, stream.DecideHam, .1, fmt.Sprint(i, strings.Repeat("é", 100)))
		e.Time = now.Add(-time.Duration(i%3) * time.Minute)
		c.add(&e, now, 1)
	}
	for _, wrong := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		e := decision(0, stream.DecideSpam, .9, "clock")
		e.Time = now.Add(wrong)
		c.add(&e, now, 1)
	}
	var j Journal
	c.show(&j, now)
	if len(j.Doors) != mostDoors+1 || j.Hour.Total() != 1000 || len(c.minutes) != 3 {
		t.Errorf("%d doors, %v answers, %d minutes", len(j.Doors), j.Hour.Total(), len(c.minutes))
	}
	for _, d := range j.Doors {
		if utf8.RuneCountInString(d.Name) > doorLetters+3 {
			t.Errorf("a name of %d letters", utf8.RuneCountInString(d.Name))
		}
	}
}

// Labelled answers are the newest only, and only those of a day.
func TestMatchesAreBounded(t *testing.T) {
	j := newJournal("default")
	now := time.Now()
	for i := range mostMatches + 500 {
		e, l := decision(i, stream.DecideHam, .1, "nats"), label(i, stream.Ham)
		if i >= mostMatches {
			e.Time, l.Time = now.Add(-26*time.Hour), now.Add(-25*time.Hour)
		}
		j.add(&e, now, 1)
		j.add(&l, now, 1)
	}
	if got := j.matches.figures(now.Add(-day)).Labelled; len(j.matches.all) != mostMatches || len(j.matches.at) != mostMatches || got != mostMatches-500 {
		t.Errorf("%d are kept, %d known, %d shown", len(j.matches.all), len(j.matches.at), got)
	}
}

// Where labels or answers had to be forgotten, the figures say since when they are whole.
func TestLabelsSayWhatWasForgotten(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	for name, c := range map[string]struct{ decisions, labels, oldest int }{
		"nothing": {100, 100, -1}, "labels": {mostMatches + 500, mostMatches + 500, 499}, "answers": {Remembered + 500, 0, 500},
	} {
		j := newJournal("default")
		j.reset(now.Add(-2 * day))
		at := func(n int) time.Time { return now.Add(time.Duration(n-Remembered-1000) * time.Millisecond) }
		for i := range c.decisions {
			e, l := decision(i, stream.DecideHam, .1, "nats"), label(i, stream.Ham)
			e.Time, l.Time = at(i), at(i)
			j.add(&e, now, 1)
			if i < c.labels {
				j.add(&l, now, 1)
			}
		}
		want := now.Add(-day)
		if c.oldest >= 0 {
			want = at(c.oldest)
		}
		s := &Snapshot{At: now}
		if j.show(s); !s.Labels.Since.Equal(want) {
			t.Errorf("%s: since %v, want %v", name, s.Labels.Since, want)
		}
	}
}

// While the journal is away, the counts stay those of the hour before.
func TestCountsStayWhileTheJournalIsAway(t *testing.T) {
	j, now := newJournal("default"), time.Now()
	e := decision(1, stream.DecideHam, .1, "nats")
	e.Time = now
	j.add(&e, now, 1)
	j.away, j.lost = natsAway, now.Add(time.Second)
	s := &Snapshot{At: now.Add(3 * time.Hour)}
	if j.show(s); s.Journal.Hour.Ham != 1 || s.Journal.LastMinute != 1 || !s.Journal.Read.Equal(j.lost) {
		t.Errorf("after three hours: %+v", s.Journal)
	}
	j.begin(false, false)
	if j.show(s); s.Journal.Hour.Ham != 0 || !s.Journal.Read.Equal(s.At) {
		t.Errorf("it is back: %+v", s.Journal)
	}
}

// A past that is too long is read in part, and the snapshot says since when until that is an hour.
func TestACutPast(t *testing.T) {
	j, now := newJournal("default"), time.Now()
	j.begin(true, true)
	e := decision(1, stream.DecideHam, .1, "nats")
	e.Time = now.Add(-10 * time.Minute)
	j.add(&e, now, 1)
	for after, want := range map[time.Duration]bool{0: true, 40 * time.Minute: true, 51 * time.Minute: false} {
		s := &Snapshot{At: now.Add(after)}
		j.show(s)
		if s.Journal.Cut != want || want && !s.Journal.Since.Equal(e.Time) || !s.Labels.Since.Equal(e.Time) || !s.Journal.Reading {
			t.Errorf("after %v: cut %v since %v", after, s.Journal.Cut, s.Journal.Since)
		}
	}
	j.begin(false, false)
	s := &Snapshot{At: now}
	if j.show(s); s.Journal.Reading || s.Journal.Hour.Ham != 1 {
		t.Errorf("after a pause: %+v", s.Journal)
	}
}

// Nobody looks: nothing is asked. A look later goes on where it ended, and knows what came
// meanwhile.
func TestNobodyLooks(t *testing.T) {
	t.Parallel()
	conn := startNATS(t)
	var asked atomic.Int64
	f := New(Config{Model: "default", NATS: conn, Bounds: func(context.Context) (stream.Bounds, error) {
		asked.Add(1)
		return stream.Bounds{}, nil
	}})
	f.pace = pace{linger: 200 * time.Millisecond, first: usual.first, poll: 10 * time.Millisecond, kafka: 10 * time.Millisecond, retry: 10 * time.Millisecond, missing: 10 * time.Millisecond}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	appendTo(t, conn, "1", false, decision(1, stream.DecideSpam, .99, "milter"))
	await(t, f, "the first line", func(s *Snapshot) bool { return s.Journal.Hour.Total() == 1 && asked.Load() > 0 })
	idle := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		select {
		case <-f.fresh:
			return false
		default:
			return true
		}
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for patient := patience(t); !idle(); {
		select {
		case <-tick.C:
		case <-patient.Done():
			t.Fatal("it works without a look")
		}
	}
	before := asked.Load()
	appendTo(t, conn, "2", false, decision(2, stream.DecideHam, .01, "milter"))
	if asked.Load() != before {
		t.Error("it asks without a look")
	}
	await(t, f, "a look after a while", func(s *Snapshot) bool { return s.Journal.Hour == (Counts{Spam: 1, Ham: 1}) })
}

// NATS goes away and comes back. What was counted stays, and is not counted twice.
func TestNATSGoesAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addr := loopback.Hold(t)
	server, err := embedded.StartNATS(embedded.NATSOptions{Dir: dir, Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(nats.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	f := follow(t, Config{Model: "default", NATS: conn, Alarms: openAt(conn)})
	appendTo(t, conn, "1", false, decision(1, stream.DecideSpam, .99, "milter"))
	await(t, f, "the first line", func(s *Snapshot) bool { return s.Journal.Hour.Total() == 1 })
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	s := await(t, f, "it is away", func(s *Snapshot) bool { return s.Journal.Away == natsAway && s.Alarms.Away == natsAway })
	if s.Journal.Hour.Total() != 1 {
		t.Errorf("it forgot: %+v", s.Journal.Hour)
	}
	if server, err = embedded.StartNATS(embedded.NATSOptions{Dir: dir, Addr: addr}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	await(t, f, "it is back", func(s *Snapshot) bool { return s.Journal.Away == "" && s.Alarms.Away == "" })
	appendTo(t, conn, "2", false, decision(2, stream.DecideHam, .01, "milter"))
	s = await(t, f, "the second line", func(s *Snapshot) bool { return s.Journal.Hour.Total() > 1 })
	if s.Journal.Hour != (Counts{Spam: 1, Ham: 1}) {
		t.Errorf("%+v", s.Journal.Hour)
	}
}
