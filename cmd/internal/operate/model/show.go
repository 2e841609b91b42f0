package model

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"hamlet/algos/drift"
	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/report"
	"hamlet/cmd/internal/web/page"
)

type show struct {
	Models []string `arg:"" optional:"" name:"model" help:"MODEL, MODEL@VERSION or FILE."`
}

// Help is what kong prints below the flags.
func (show) Help() string {
	return `Examples:

  hamlet model show                   the model that --model names
  hamlet model show spam clean        several
  hamlet model show spam@1208         an earlier version
  hamlet model show ./saved           a file of backup or of eval --save

The settings are those that are not the defaults; --json has all. Sources are the five with
most labels: hamlet sources shows all of them. Judged ham is ham whose label was asked
for, and the probability from which on mail may be called spam so that at most .1, .2, .5
or 1 % of the ham is lost; also of the five tenants with most, by a hash of the name. A name of a–z, 0–9 and - is a model in
the store, anything else a file.`
}

// mostListed is how many sources of a sub-model are shown.
const mostListed = 5

// A shown is a model: an element of what --json prints.
type shown struct {
	Name      string `json:"name"`      // as it was given
	Partition int    `json:"partition"` // always 0
	Side
	Kept      []int64         `json:"kept,omitempty"`   // versions in the store, newest first
	Lost      []int64         `json:"lost,omitempty"`   // versions beside them: the log has lost what they learnt
	Served    int64           `json:"served,omitempty"` // the version that answers
	Pinned    int64           `json:"pinned,omitempty"`
	Answers   *Answers        `json:"answers,omitempty"` // another model that answers in its place
	Unlearnt  uint64          `json:"unlearnt"`
	LeftOut   uint64          `json:"left_out"`
	Bytes     int             `json:"bytes"`
	Windows   int             `json:"window_bytes"` // of these: windows of ensembles and alarms
	Config    json.RawMessage `json:"config"`
	Sources   []Source        `json:"sources"` // with most labels
	Known     int             `json:"known_sources"`
	Judged    []Judged        `json:"judged_ham,omitempty"` // of all, and of the tenants with most
	Tenants   int             `json:"judged_tenants,omitempty"`
	Diagnosis string          `json:"diagnosis"`
	Incidents []shownIncident `json:"incidents"` // open

	settings []string // that are not the defaults
}

type shownIncident struct {
	Body     string `json:"body"`
	Kind     string `json:"kind"`
	Incident uint64 `json:"incident"`
	Source   string `json:"source,omitempty"` // who is accused
	Since    uint64 `json:"since"`            // the event of its last step
}

func (c *show) run(ctx context.Context, s *session) error {
	if len(c.Models) == 0 {
		c.Models = []string{s.Model}
	}
	var all []shown
	for _, name := range c.Models {
		l, err := s.decoded(ctx, name)
		if err != nil {
			return err
		}
		one := describe(name, l)
		if one.Version != 0 {
			if err := s.describeVersions(ctx, name, &one); err != nil {
				return err
			}
		}
		all = append(all, one)
	}
	if s.JSON {
		return s.json(struct {
			Models []shown `json:"models"`
		}{all})
	}
	text := ""
	for i := range all {
		if i > 0 {
			text += "\n"
		}
		text += all[i].text(time.Now())
	}
	return s.print(text)
}

func describe(name string, l *loaded) shown {
	m := l.model
	one := shown{
		Name: name, Side: l.side(), Unlearnt: m.Unlearnt(), LeftOut: m.LeftOut(), Bytes: len(l.Model),
		Windows: m.WindowBytes(),
		Config:  m.Config().JSON(), Incidents: []shownIncident{},
	}
	for _, difference := range Changes(defaults(), m.Config()) {
		one.settings = append(one.settings, fmt.Sprintf("%s = %s", difference.Key, shorten(difference.B)))
	}
	one.Sources = sources(m)
	one.Known = len(one.Sources)
	one.Sources = one.Sources[:min(mostListed, one.Known)]
	one.Judged, one.Tenants = judgedHam(m, mostListed)
	if d := m.Diagnosis(); d != drift.Nothing {
		one.Diagnosis = d.String()
	}
	for _, i := range m.Incidents() {
		one.Incidents = append(one.Incidents,
			shownIncident{Body: i.Body, Kind: i.Kind, Incident: i.Incident, Source: i.Source, Since: i.Since})
	}
	return one
}

// sources lists the sources of a model, those with most labels first.
func sources(m *model.Model) []Source {
	all := []Source{}
	for _, source := range m.Sources() {
		all = append(all, Source{Source: source.ShownName(), Body: source.Body, Role: source.Role.String(),
			Labels: source.Labels,
			Rate:   source.Rate, Lo: source.Lo, Hi: source.Hi, Weight: source.Weight})
	}
	slices.SortFunc(all, func(a, b Source) int {
		return cmp.Or(cmp.Compare(b.Labels, a.Labels), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Body, b.Body))
	})
	return all
}

// describeVersions adds what Redis keeps beside the version that is shown.
func (s *session) describeVersions(ctx context.Context, name string, one *shown) error {
	model, _, err := Refer(name)
	if err != nil {
		return err
	}
	store, err := s.store(ctx, model)
	if err != nil {
		return err
	}
	k, err := Read(ctx, store, model)
	if err != nil {
		return err
	}
	for _, v := range k.Versions {
		if v.Lost {
			one.Lost = append(one.Lost, v.Version)
		} else {
			one.Kept = append(one.Kept, v.Version)
		}
	}
	one.Served, one.Pinned, one.Answers = k.Served, k.Pinned, k.Answers
	return nil
}

func (one *shown) text(now time.Time) string {
	table := report.NewTable()
	line := func(name, format string, values ...any) { table.Add("  "+name, fmt.Sprintf(format, values...)) }
	if one.Version != 0 {
		pinned := ""
		if one.Pinned != 0 {
			pinned = fmt.Sprintf(", pinned %d", one.Pinned)
		}
		line("version", "%d, answers come from %d%s", one.Version, one.Served, pinned)
		if a := one.Answers; a != nil {
			line("promoted", "model %s, which answers in its place since %s", a.Model, cli.Stamp(a.Since))
		}
		line("kept", "%s", join(one.Kept))
		if len(one.Lost) > 0 {
			line("lost", "%s, which learnt what the log has lost", join(one.Lost))
		}
	}
	line("saved", "%s, %s ago", cli.Stamp(one.Saved), age(one.Saved, now))
	spam := 0.0
	if one.Events > 0 {
		spam = 100 * float64(one.Spam) / float64(one.Events)
	}
	line("events", "%d, %.1f %% spam, %d withdrawn or without effect, %d left out",
		one.Events, spam, one.Unlearnt, one.LeftOut)
	line("position", "%d", one.Position)
	line("size", "%s, of which windows of events %s", cli.Megabytes(int64(one.Bytes)), cli.Megabytes(int64(one.Windows)))
	line("numerics", "%s", one.Numerics)
	line("sha256", "%s", one.SHA256)
	for i, setting := range one.settings {
		line(first(i, "settings"), "%s", setting)
	}
	if len(one.settings) == 0 {
		line("settings", "the defaults")
	}
	for i, source := range one.Sources {
		line(first(i, "sources"), "%s: %s", source.Source, source.standing())
	}
	if left := one.Known - len(one.Sources); left > 0 {
		line("", "and %d more", left)
	}
	for i := range one.Judged {
		line(first(i, "judged ham"), "%s", one.Judged[i].text())
	}
	if left := one.Tenants - (len(one.Judged) - 1); left > 0 && len(one.Judged) > 0 {
		line("", "and %d more tenants", left)
	}
	for i, incident := range one.Incidents {
		accused := ""
		if incident.Source != "" {
			accused = ", source " + incident.Source
		}
		line(first(i, "alarms"), "%s of %s%s, since event %d", incident.Kind, incident.Body, accused, incident.Since)
	}
	if len(one.Incidents) == 0 {
		line("alarms", "none")
	}
	return one.Name + "\n" + table.String()
}

// standing says how far a source is believed.
func (s *Source) standing() string {
	if s.Labels == 0 {
		return s.Role + ", no labels"
	}
	return fmt.Sprintf("%s, %d labels of %s, flip rate %.3f (%.3f–%.3f), weight %.2f",
		s.Role, s.Labels, s.Body, s.Rate, s.Lo, s.Hi, s.Weight)
}

// first is the name of a line of several, for the first of them.
func first(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

func join(numbers []int64) string {
	all := make([]string, len(numbers))
	for i, n := range numbers {
		all[i] = fmt.Sprint(n)
	}
	return strings.Join(all, ", ")
}

func shorten(value string) string {
	return cmp.Or(page.Clip(value, 100), "none")
}
