package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hamlet/cmd/internal/chart"
	"hamlet/cmd/internal/console/feed"
	"hamlet/cmd/internal/models"
	"hamlet/cmd/internal/pinning"
)

// mostPartitions is how many partitions the page lists.
const mostPartitions = 100

// A shown is what the page shows.
type shown struct {
	State   state
	At      *pinning.Partition // whose versions are listed; nil: there is none
	Rows    []row
	Quiet   string // why there is no log loss, as a sentence; empty: there is
	Since   time.Time
	Several bool // the model has several partitions
	Back    bool // there are versions to roll back to
	Events  *chart.Chart
	Loss    *chart.Chart
}

// A row is a version.
type row struct {
	V          *pinning.Version
	Own, Since quality
}

// Badges are the words that say what the version is.
func (r row) Badges() []string {
	if marks := r.V.Marks(); marks != "" {
		return strings.Split(marks, ", ")
	}
	return nil
}

// First and Second report whether the version is chosen to be compared.
func (s *shown) First(r row) bool  { return len(s.Rows) > 1 && r.V == s.Rows[1].V }
func (s *shown) Second(r row) bool { return r.V == s.Rows[0].V }

// A state is the fragment about all partitions.
type state struct {
	Away  string // why Redis says nothing, as a sentence
	None  bool   // Redis keeps no version
	Model string

	Parts   []part
	More    int // partitions that are not listed
	Events  uint64
	Bytes   int64 // of the newest versions
	Saved   time.Time
	Pinned  int // how many partitions are
	Lag     int64
	LagAway string
	Lost    bool            // a pinned version is lost
	Answers *models.Answers // another model that answers in its place; nil: none
	All     int
}

// A part is a line about a partition.
type part struct {
	*pinning.Partition
	Head, Serves *pinning.Version // nil: it cannot be read
	Lag          int64
	LagKnown     bool
}

// look returns what the feed has seen; nil without a feed.
func (p *pages) look(ctx context.Context) *feed.Snapshot {
	if p.Look == nil {
		return nil
	}
	return p.Look(ctx)
}

// state asks Redis what there is. The lag is as it was seen.
func (p *pages) state(ctx context.Context, seen *feed.Snapshot) (s state, kept pinning.Kept) {
	s.Model = p.Model
	kept, err := p.kept.get(ctx)
	none := &pinning.NoneError{}
	switch {
	case errors.As(err, &none):
		s.None = true
		return s, kept
	case errors.Is(err, errNoRedis):
		s.Away = sentence(err)
		return s, kept
	case err != nil:
		s.Away = sentence(fmt.Errorf("redis does not say which versions there are: %w", err))
		return s, kept
	}
	s.Answers = kept.Answers
	lags := s.lags(seen)
	for i := range kept.Partitions {
		at := part{Partition: &kept.Partitions[i]}
		at.Head, at.Serves = at.Find(at.Partition.Head), at.Find(at.Served)
		if at.Head != nil {
			s.Events += at.Head.Events
			s.Bytes += at.Head.Bytes
			if s.Saved.IsZero() || at.Head.Saved.Before(s.Saved) {
				s.Saved = at.Head.Saved
			}
		}
		if at.Lag, at.LagKnown = lags[at.Partition.Partition]; at.LagKnown {
			s.Lag += at.Lag
		}
		if at.Pinned != 0 {
			s.Pinned++
		}
		s.Lost = s.Lost || at.PinLost
		s.Parts = append(s.Parts, at)
	}
	s.All = len(s.Parts)
	s.More = max(0, s.All-mostPartitions)
	s.Parts = s.Parts[:s.All-s.More]
	return s, kept
}

// lags returns how many records each partition's newest version has not learnt. Where that is
// not known, it says so in s.
func (s *state) lags(seen *feed.Snapshot) map[int]int64 {
	if seen == nil {
		s.LagAway = "This console does not follow Kafka, so the lag is not known."
		return nil
	}
	m := seen.Models
	if s.LagAway = m.LagAway; s.LagAway == "" && !m.LagKnown {
		s.LagAway = "The lag is not known yet. Look again in a moment."
	}
	lags := map[int]int64{}
	for _, at := range m.Partitions {
		if s.LagAway == "" && at.LagKnown {
			lags[at.Partition] = at.Lag
		}
	}
	if s.LagAway == "" {
		s.Lag = m.BareLag // of partitions that have no version yet
	}
	return lags
}

// show answers GET /model.
func (p *pages) show(w http.ResponseWriter, r *http.Request) {
	data := &shown{}
	var kept pinning.Kept
	seen := p.look(r.Context())
	data.State, kept = p.state(r.Context(), seen)
	if len(kept.Partitions) > 0 && data.State.Away == "" {
		data.Several = len(kept.Partitions) > 1
		_, err := kept.Rollback()
		data.Back = err == nil
		data.At = &kept.Partitions[0]
		if number := r.URL.Query().Get("partition"); number != "" {
			if data.At = partitionOf(kept, number); data.At == nil {
				p.site.Fail(w, r, http.StatusNotFound, "The model has no partition of this number.")
				return
			}
		}
		p.describe(data, seen)
	}
	p.site.Render(w, r, modelTemplates, http.StatusOK, "Model", data)
}

// describe adds the versions of a partition.
func (p *pages) describe(data *shown, seen *feed.Snapshot) {
	now := p.site.Now()
	known := p.answers(seen)
	rows, loss := p.loss.get(now, p.Model, data.At, !data.Several, known)
	for i := range data.At.Versions {
		v := &data.At.Versions[i]
		data.Rows = append(data.Rows, row{v, rows[v.Version].Own, rows[v.Version].Since})
	}
	data.Events, data.Loss, data.Since, data.Quiet = eventsChart(now, data.At), loss, known.since, known.quiet
}

// partitionOf returns the partition of that number, or nil.
func partitionOf(kept pinning.Kept, number string) *pinning.Partition {
	n, err := strconv.Atoi(number)
	for i := range kept.Partitions {
		if err == nil && kept.Partitions[i].Partition == n {
			return &kept.Partitions[i]
		}
	}
	return nil
}

// sentence makes a sentence of an error.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
