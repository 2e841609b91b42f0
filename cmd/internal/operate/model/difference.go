package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"hamlet/algos/model"
)

// A Difference is how two models differ.
type Difference struct {
	Partition int            `json:"partition"` // always 0
	Same      bool           `json:"same"`      // equal bytes
	A         Side           `json:"a"`
	B         Side           `json:"b"`
	Settings  []Setting      `json:"settings"`
	Weights   []WeightChange `json:"weights"` // those that differ most
	Tables    []TableChange  `json:"tables"`
	Stacks    []StackChange  `json:"ensembles"`
	Sources   []SourceChange `json:"sources"` // those that differ most
	More      int            `json:"more_sources"`
}

// A WeightChange is an input of a head whose weights differ.
type WeightChange struct {
	Body  string  `json:"body"`
	Input string  `json:"input"`
	A     float64 `json:"a"`
	B     float64 `json:"b"`
	SD    float64 `json:"sd"` // (b−a)/√(Va+Vb)
}

// A TableChange is a table of experts of which the models use other parts: the fraction of
// its slots. A model that has not got it has null.
type TableChange struct {
	Body    string   `json:"body"`
	Experts []string `json:"experts"`
	A       *float64 `json:"a"`
	B       *float64 `json:"b"`
}

// A StackChange is a member of a stack whose weights differ. A model that has not built it
// has null.
type StackChange struct {
	Body   string   `json:"body"`
	Member string   `json:"member"` // head, second head, or the kind of an ensemble
	A      *float64 `json:"a"`
	B      *float64 `json:"b"`
}

// A SourceChange is a source whose standing differs. A model that does not know it has null.
type SourceChange struct {
	Source string  `json:"source"`
	Body   string  `json:"body"`
	A      *Source `json:"a"`
	B      *Source `json:"b"`
}

// Compare compares two models. It lists at most limit weights and sources; 0 means all.
func Compare(a, b *Facts, limit int) Difference {
	d := Difference{Same: a.SHA256 == b.SHA256, A: a.Side, B: b.Side,
		Settings: Changes(a.Config, b.Config), Weights: weightChanges(a.Weights, b.Weights),
		Tables: tableChanges(a.Tables, b.Tables), Stacks: stackChanges(a.Stacks,
			b.Stacks), Sources: sourceChanges(a.Sources, b.Sources)}
	if limit > 0 {
		d.Weights = d.Weights[:min(limit, len(d.Weights))]
		d.More = max(0, len(d.Sources)-limit)
		d.Sources = d.Sources[:min(limit, len(d.Sources))]
	}
	return d
}

// InputName names the input of a weight: a product has the input's name and its number.
func InputName(w *model.Weight) string {
	if w.Product == 0 {
		return w.Name
	}
	return fmt.Sprintf("%s × %d", w.Name, w.Product)
}

// weightChanges lists the inputs that both models have and whose weights differ, the largest
// difference first.
func weightChanges(a, b []model.Weight) []WeightChange {
	type input struct {
		body, name string
		product    int
	}
	key := func(w *model.Weight) input { return input{w.Body, w.Name, w.Product} }
	others := map[input]*model.Weight{}
	for i := range b {
		others[key(&b[i])] = &b[i]
	}
	all := []WeightChange{}
	for i := range a {
		x := &a[i]
		y := others[key(x)]
		if y == nil || x.Mean == y.Mean && x.SD == y.SD {
			continue
		}
		change := WeightChange{Body: x.Body, Input: InputName(x), A: x.Mean, B: y.Mean}
		if doubt := math.Hypot(x.SD, y.SD); doubt > 0 {
			change.SD = (y.Mean - x.Mean) / doubt
		}
		all = append(all, change)
	}
	slices.SortStableFunc(all, func(p, q WeightChange) int { return cmp.Compare(math.Abs(q.SD), math.Abs(p.SD)) })
	return all
}

// tableChanges lists the tables of a, then those that b alone has.
func tableChanges(a, b []model.TableUse) []TableChange {
	all := []TableChange{}
	add := func(t *model.TableUse) *TableChange {
		at := slices.IndexFunc(all,
			func(c TableChange) bool { return c.Body == t.Body && slices.Equal(c.Experts, t.Experts) })
		if at < 0 {
			at = len(all)
			all = append(all, TableChange{Body: t.Body, Experts: t.Experts})
		}
		return &all[at]
	}
	for i := range a {
		add(&a[i]).A = share(&a[i])
	}
	for i := range b {
		add(&b[i]).B = share(&b[i])
	}
	return slices.DeleteFunc(all, func(c TableChange) bool { return c.A != nil && c.B != nil && *c.A == *c.B })
}

func share(t *model.TableUse) *float64 {
	used := t.Share()
	return &used
}

// stackChanges lists the members of a's stacks, then those that b's alone have.
func stackChanges(a, b []model.StackState) []StackChange {
	all := []StackChange{}
	add := func(body string, member *model.StackMember) *StackChange {
		at := slices.IndexFunc(all, func(c StackChange) bool { return c.Body == body && c.Member == member.Name })
		if at < 0 {
			at = len(all)
			all = append(all, StackChange{Body: body, Member: member.Name})
		}
		return &all[at]
	}
	each := func(stacks []model.StackState, take func(c *StackChange, weight *float64)) {
		for _, s := range stacks {
			for i := range s.Members {
				if c := add(s.Body, &s.Members[i]); s.Members[i].Built {
					take(c, &s.Members[i].Mean)
				}
			}
		}
	}
	each(a, func(c *StackChange, weight *float64) { c.A = weight })
	each(b, func(c *StackChange, weight *float64) { c.B = weight })
	return slices.DeleteFunc(all, func(c StackChange) bool {
		return c.A == nil && c.B == nil || c.A != nil && c.B != nil && *c.A == *c.B
	})
}

// least is by how much the weights or the flip rates of a source must differ.
const least = 0.01

// sourceChanges lists the sources whose standing differs, by the difference of their weights.
func sourceChanges(a, b []Source) []SourceChange {
	type key struct{ source, body string }
	index := func(in []Source) map[key]*Source {
		at := map[key]*Source{}
		for i := range in {
			at[key{in[i].Source, in[i].Body}] = &in[i]
		}
		return at
	}
	inA, inB := index(a), index(b)
	all := []SourceChange{}
	for i := range a {
		x := &a[i]
		y := inB[key{x.Source, x.Body}]
		if y == nil || x.Role != y.Role || math.Abs(x.Weight-y.Weight) >= least || math.Abs(x.Rate-y.Rate) >= least {
			all = append(all, SourceChange{x.Source, x.Body, x, y})
		}
	}
	for i := range b {
		if inA[key{b[i].Source, b[i].Body}] == nil {
			all = append(all, SourceChange{b[i].Source, b[i].Body, nil, &b[i]})
		}
	}
	slices.SortStableFunc(all, func(p, q SourceChange) int { return cmp.Compare(q.size(), p.size()) })
	return all
}

// size is the difference of the weights. A source that one model alone knows comes first.
func (c *SourceChange) size() float64 {
	if c.A == nil || c.B == nil {
		return math.Inf(1)
	}
	return math.Abs(c.A.Weight - c.B.Weight)
}

// Standing says how far a source is believed, in a cell. s may be nil.
func (s *Source) Standing() string {
	if s == nil {
		return "unknown"
	}
	return fmt.Sprintf("%s, %d labels, weight %.2f, flips %.3f", s.Role, s.Labels, s.Weight, s.Rate)
}

// Name names the experts of the table.
func (c *TableChange) Name() string { return strings.Join(c.Experts, ", ") }
