package incidents

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"hamlet/algos/drift"
	algos "hamlet/algos/model"
	"hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/operate/sources"
	"hamlet/cmd/internal/service/alert"
	"hamlet/cmd/internal/show/chart"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
	"hamlet/stream"
)

// A view is what the page of an incident shows.
type view struct {
	row
	Problems []string
	Sentence string // of the last step that names something
	Number   uint64 // the model's event that opened it
	Life     []step
	Evidence *chart.Chart
	Past     *chart.Chart
	NoPast   string // why there is no Past
	Rulings  []ruling
	Report   *labelReport
	Now      *facts
	Alarms   []algos.Alarm // of Now, of the incident's kind of body
	Before   before
	Blamed   string // of whom a withdrawal can be planned; "": nobody
	Withdraw string
}

// A step is a transition.
type step struct {
	*stream.Alert
	Sentence string
}

// A labelReport is the newest label report of the incident.
type labelReport struct {
	*stream.LabelReport
	Event   uint64
	Sources []rate
	Classes []class
}

// A rate is a source in a label report, and where to go from it.
type rate struct {
	stream.SourceRate
	Link, Withdraw string
}

type class struct {
	Name string
	stream.FlipRate
}

// before is the version that can be pinned.
type before struct {
	Problem string // why there is none
	Version *model.Version
	Link    string // to the page that pins it
	Pinned  bool   // a version is pinned already
}

func (p *pages) one(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	all, acknowledged, problems := p.incidents(r.Context())
	i := find(all, id)
	if i == nil {
		what := "There is no such incident. NATS keeps alerts for 90 days."
		if len(problems) > 0 {
			what = problems[0]
		}
		p.site.Fail(w, r, http.StatusNotFound, what)
		return
	}
	v := view{row: newRow(i, acknowledged), Number: i.First().Incident, Problems: slices.Clone(problems)}
	for k := range i.Alerts {
		a := &i.Alerts[k]
		v.Life = append(v.Life, step{a, page.Visible(alert.Sentence(a))})
		if a.State == stream.AlertSuspected || a.State == stream.AlertRaised {
			v.Sentence = v.Life[k].Sentence
		}
		if a.Labels != nil {
			v.Report = newReport(a, id)
		}
	}
	var now *facts
	if i.Last().Partition == 0 { // hamlet 0.1.0 had a model for each partition
		saved, err := p.saved.Get(r.Context())
		if err != nil && !errors.Is(err, state.ErrNone) {
			v.Problems = append(v.Problems, page.Doing("The saved model cannot be read", err))
		}
		if saved != nil {
			now = saved.Facts
		}
	}
	v.Now = now
	if now != nil && i.Open() {
		for _, a := range now.Alarms {
			if a.Body == i.Last().Body {
				v.Alarms = append(v.Alarms, a)
			}
		}
	}
	v.Evidence, v.Past, v.Rulings = evidence(i, now), noisePast(i, now), rulings(i, now)
	if v.Past == nil {
		v.NoPast = "The saved model keeps no levels of the label-noise alarm from the time of this incident."
	}
	v.Before = p.before(r.Context(), i)
	if last := i.Last(); last.Accused != "" && last.Accused != drift.Newcomers {
		v.Blamed, v.Withdraw = last.Accused, sources.WithdrawURL(last.Accused, id)
	}
	p.site.Render(w, r, oneTemplates, http.StatusOK, "Incident "+id, &v)
}

func newReport(a *stream.Alert, id string) *labelReport {
	r := &labelReport{LabelReport: a.Labels, Event: a.Event, Classes: []class{
		{"ham that is called spam", a.Labels.HamCalledSpam}, {"spam that is called ham", a.Labels.SpamCalledHam},
	}}
	for _, s := range a.Labels.Sources {
		r.Sources = append(r.Sources, rate{s, sources.URL(s.Source), sources.WithdrawURL(s.Source, id)})
	}
	return r
}

// askVersions bounds the question which versions are kept.
const askVersions = 5 * time.Second

// before returns the newest version that was saved before the incident and had not learnt the
// event which opened it. Counts alone tell nothing: a model that is learnt again counts from 0 again.
func (p *pages) before(ctx context.Context, i *Incident) (b before) {
	ctx, cancel := context.WithTimeout(ctx, askVersions)
	defer cancel()
	kept, err := model.Read(ctx, p.Store, p.site.Model)
	if err != nil {
		b.Problem = page.Doing("Which versions are kept cannot be read", err)
		return b
	}
	b.Pinned = kept.Pinned != 0
	first := i.First()
	for n := range kept.Versions { // the newest first
		v := &kept.Versions[n]
		if v.Events < first.Incident && v.Saved.Before(first.Time) && !v.Replaced && first.Partition == 0 {
			b.Version = v
			b.Link = "/model/change?" +
				url.Values{"do": {"pin"}, "version": {strconv.FormatInt(v.Version, 10)}, "incident": {first.IncidentID()}}.Encode()
			return b
		}
	}
	b.Problem = "The store keeps no version from before this incident. A learner keeps the last three, " +
		"and the first of each of thirty days."
	return b
}
