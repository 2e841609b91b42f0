package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"hamlet/cmd/internal/chart"
	"hamlet/cmd/internal/console/feed"
	"hamlet/cmd/internal/models"
	"hamlet/cmd/internal/pinning"
)

// A shown is what the page shows.
type shown struct {
	State  state
	Rows   []row
	Quiet  string // why there is no log loss, as a sentence; empty: there is
	Since  time.Time
	Back   bool // there are versions to roll back to
	Events *chart.Chart
	Loss   *chart.Chart
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

// A state is the fragment about the model.
type state struct {
	Away  string // why Redis says nothing, as a sentence
	None  bool   // Redis keeps no version
	Model string

	Newest, Serves *pinning.Version // nil: it cannot be read
	Pinned         bool
	Lost           bool // the pinned version is lost
	Lag            int64
	LagAway        string          // why the lag is not known
	Answers        *models.Answers // another model that answers in its place; nil: none
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
	s.Answers, s.Pinned, s.Lost = kept.Answers, kept.Pinned != 0, kept.PinLost
	s.Newest, s.Serves = kept.Find(kept.Head), kept.Find(kept.Served)
	switch {
	case seen == nil:
		s.LagAway = "This console does not follow Kafka, so the lag is not known."
	case seen.Learnt.LagAway != "":
		s.LagAway = seen.Learnt.LagAway
	case !seen.Learnt.LagKnown:
		s.LagAway = "The lag is not known yet. Look again in a moment."
	default:
		s.Lag = seen.Learnt.Lag
	}
	return s, kept
}

// show answers GET /model.
func (p *pages) show(w http.ResponseWriter, r *http.Request) {
	data := &shown{}
	var kept pinning.Kept
	seen := p.look(r.Context())
	data.State, kept = p.state(r.Context(), seen)
	if len(kept.Versions) > 0 && data.State.Away == "" {
		_, err := kept.Rollback()
		data.Back = err == nil
		p.describe(data, &kept.History, seen)
	}
	p.site.Render(w, r, modelTemplates, http.StatusOK, "Model", data)
}

// describe adds the versions.
func (p *pages) describe(data *shown, kept *pinning.History, seen *feed.Snapshot) {
	now := p.site.Now()
	known := p.answers(seen)
	rows, loss := p.loss.get(now, p.Model, kept, known)
	for i := range kept.Versions {
		v := &kept.Versions[i]
		data.Rows = append(data.Rows, row{v, rows[v.Version].Own, rows[v.Version].Since})
	}
	data.Events, data.Loss, data.Since, data.Quiet = eventsChart(now, kept), loss, known.since, known.quiet
}

// sentence makes a sentence of an error.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
