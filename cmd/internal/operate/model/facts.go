package model

import (
	"fmt"
	"sync"
	"time"

	"hamlet/algos/model"
	"hamlet/state"
)

// Facts say what a decoded model has learnt. They are small: the model
// itself need not stay in memory. Nobody changes them.
type Facts struct {
	Side
	Unlearnt uint64
	Bytes    int // of the model

	Config    model.Config
	Adoptions []model.Adoption
	Weights   []model.Weight
	Tables    []model.TableUse
	Stacks    []model.StackState
	Sources   []Source // with most labels first
}

// FactsOf decodes the model of a checkpoint. version is 0 if it is not in Redis.
func FactsOf(version int64, c *state.Checkpoint) (*Facts, error) {
	l := loaded{version: version, Checkpoint: c}
	if err := l.decode(); err != nil {
		return nil, err
	}
	return l.facts(), nil
}

func (l *loaded) facts() *Facts {
	m := l.model
	return &Facts{
		Side: l.side(), Unlearnt: m.Unlearnt(), Bytes: len(l.Model), Config: m.Config(), Adoptions: m.Adoptions(),
		Weights: m.Weights(), Tables: m.Tables(), Stacks: m.Stacks(), Sources: sources(m),
	}
}

// A Side is one of two models, or the only one.
type Side struct {
	Version  int64     `json:"version,omitempty"` // in the store; 0: from a file
	Saved    time.Time `json:"saved"`
	Events   uint64    `json:"events"`
	Spam     uint64    `json:"spam"`
	Position int64     `json:"position"` // next offset of the log
	Numerics string    `json:"numerics"`
	SHA256   string    `json:"sha256"`
}

func (l *loaded) side() Side {
	return Side{l.version, l.Saved, l.model.Events(), l.model.Spam(), l.Position.Next, l.model.Numerics(), l.sha256()}
}

// A Source is how far one source of labels is believed.
type Source struct {
	Source string  `json:"source"`
	Body   string  `json:"body"`
	Role   string  `json:"role"`
	Labels uint64  `json:"labels"`
	Rate   float64 `json:"flip_rate"`
	Lo     float64 `json:"lo"`
	Hi     float64 `json:"hi"`
	Weight float64 `json:"weight"`
}

// A Setting is one that two configurations have different values of.
type Setting struct {
	Key string `json:"key"`
	A   string `json:"a"`
	B   string `json:"b"`
}

// Changes lists the settings in which b differs from a, in the order of a Config.
func Changes(a, b model.Config) []Setting {
	all := []Setting{}
	for _, f := range model.Fields() {
		// Get fails for keys alone that are no field's.
		x, errX := a.Get(f.Key)
		y, errY := b.Get(f.Key)
		if errX == nil && errY == nil && x != y {
			all = append(all, Setting{f.Key, x, y})
		}
	}
	return all
}

// A Configured is the value of one setting of a model.
type Configured struct {
	model.Field
	Value string
	Set   bool // the value is not the default
}

// Configuration lists all settings, in the order of a Config.
func Configuration(cfg model.Config) (all []Configured) {
	set := map[string]bool{}
	for _, c := range Changes(defaults(), cfg) {
		set[c.Key] = true
	}
	for _, f := range model.Fields() {
		if value, err := cfg.Get(f.Key); err == nil {
			all = append(all, Configured{Field: f, Value: value, Set: set[f.Key]})
		}
	}
	return all
}

// defaults is the configuration of a model of which nothing is said.
var defaults = sync.OnceValue(func() model.Config {
	m, err := model.New(model.Config{})
	if err != nil {
		panic(fmt.Sprintf("models: the defaults make no model: %v", err))
	}
	return m.Config()
})
