package model

import (
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
