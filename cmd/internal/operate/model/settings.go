package model

import (
	"fmt"
	"sync"

	"hamlet/algos/model"
)

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
