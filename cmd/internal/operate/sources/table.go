package sources

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hamlet/algos/model"
	"hamlet/algos/trust"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/report"
)

// A Table is what `hamlet sources --json` prints.
type Table struct {
	Model      string   `json:"model"`
	Partitions [1]Saved `json:"partitions"` // a list: programs read it as one
	Known      int      `json:"known"`      // sources, also those that a limit left out
	Sources    []Source `json:"sources"`    // most labels first
}

// Saved returns which model was read.
func (t *Table) Saved() Saved { return t.Partitions[0] }

// labels returns how many labels all sources have given.
func (t *Table) labels() (n uint64) {
	for i := range t.Sources {
		n += t.Sources[i].Labels
	}
	return n
}

// A Saved is the saved model that was read.
type Saved struct {
	Partition int       `json:"partition"` // always 0
	Events    uint64    `json:"events"`
	Saved     time.Time `json:"saved"`
}

// A Source joins what a model knows of one source of labels from several kinds of bodies.
type Source struct {
	Source string `json:"source"` // ends in "…" if only its first 64 bytes are known
	Role   string `json:"role"`
	Labels uint64 `json:"labels"`
	FlipRate
	Weight float64   `json:"weight"`
	Late   bool      `json:"late"`
	New    bool      `json:"new"`
	Parts  []PerBody `json:"parts"` // by body

	Cut bool `json:"-"` // only the beginning of its name is known
}

// A FlipRate has its 90 % interval.
type FlipRate struct {
	Rate float64 `json:"flip_rate"`
	Lo   float64 `json:"lo"`
	Hi   float64 `json:"hi"`
}

// A PerBody is what a model knows of a source from one kind of body.
type PerBody struct {
	Partition int    `json:"partition"`      // always 0
	Body      string `json:"body,omitempty"` // text or vector; empty: the source has a role, and no label
	Role      string `json:"role"`
	Labels    uint64 `json:"labels"`
	FlipRate
	Weight  float64 `json:"weight"`
	Late    bool    `json:"late"`
	New     bool    `json:"new"`
	Accused uint64  `json:"accused,omitempty"` // the model's event of the last accusation
}

// newTable returns what a saved model knows.
func newTable(name string, saved time.Time, m *model.Model) *Table {
	t := &Table{Model: name, Partitions: [1]Saved{{Events: m.Events(), Saved: saved}}, Sources: []Source{}}
	byKey := map[uint64]*Source{}
	for _, s := range m.Sources() {
		known := byKey[s.Key]
		if known == nil {
			known = &Source{Role: s.Role.String()}
			byKey[s.Key] = known
		}
		if known.Source == "" || !s.Cut {
			known.Source, known.Cut = s.ShownName(), s.Cut
		}
		known.Parts = append(known.Parts, PerBody{
			Body: s.Body, Role: s.Role.String(), Labels: s.Labels, FlipRate: FlipRate{s.Rate, s.Lo, s.Hi},
			Weight: s.Weight, Late: s.Late, New: s.Newcomer, Accused: s.Accused,
		})
	}
	for _, s := range byKey {
		s.join()
		t.Sources = append(t.Sources, *s)
	}
	slices.SortFunc(t.Sources, func(a, b Source) int {
		return cmp.Or(cmp.Compare(b.Labels, a.Labels), cmp.Compare(a.Source, b.Source))
	})
	t.Known = len(t.Sources)
	return t
}

// join sums the labels of all kinds of bodies. Rate and weight are means by labels, and the
// width of the interval is that of a mean of independent rates.
func (s *Source) join() {
	s.Late, s.New = true, true
	var rate, weight, square, labels float64
	for i := range s.Parts {
		p := &s.Parts[i]
		s.Labels += p.Labels
		n := float64(p.Labels)
		half := n * max(p.Hi-p.Rate, p.Rate-p.Lo) // the other side may be cut at 0 or 1
		labels, rate, weight, square = labels+n, rate+n*p.Rate, weight+n*p.Weight, square+half*half
		s.Late, s.New = s.Late && p.Late, s.New && p.New
	}
	if labels == 0 {
		s.Late, s.New, s.Hi = false, false, 1
		return
	}
	s.Rate, s.Weight = rate/labels, weight/labels
	half := math.Sqrt(square) / labels
	s.Lo, s.Hi = max(0, s.Rate-half), min(1, s.Rate+half)
}

// cut keeps the n sources with most labels, and those that have a role.
func (t *Table) cut(n int) {
	var kept []Source
	for i, s := range t.Sources {
		if i < n || s.Role != trust.Ordinary.String() {
			kept = append(kept, s)
		}
	}
	t.Sources = kept
}

func (t *Table) print(w io.Writer) error {
	tab := report.NewTable("source", "role", "labels", "flip rate, 90 %", "weight", "", "accused")
	for i := range t.Sources {
		s := &t.Sources[i]
		rate, weight := "–", "–"
		if s.Labels > 0 {
			rate, weight = fmt.Sprintf("%.3f  %.3f–%.3f", s.Rate, s.Lo, s.Hi), fmt.Sprintf("%.2f", s.Weight)
		}
		tab.Add(s.Source, s.Role, s.Labels, rate, weight, s.Remarks(), s.AccusedAt())
	}
	text := tab.String()
	if left := t.Known - len(t.Sources); left > 0 {
		text += fmt.Sprintf("and %d with fewer labels: --limit 0 shows all\n", left)
	}
	return cli.Print(w, text+fmt.Sprintf("%d events, saved %s\n", t.Saved().Events, cli.Stamp(t.Saved().Saved)))
}

// Remarks says whether the source is late or new: see the help of `hamlet sources`.
func (s *Source) Remarks() string {
	var all []string
	if s.Late {
		all = append(all, "late")
	}
	if s.New {
		all = append(all, "new")
	}
	return strings.Join(all, ", ")
}

// AccusedAt says at which events the source was last accused.
func (s *Source) AccusedAt() string {
	var all []string
	for _, p := range s.Parts {
		if p.Accused > 0 {
			all = append(all, "event "+strconv.FormatUint(p.Accused, 10))
		}
	}
	return cmp.Or(strings.Join(all, "; "), "–")
}
