package models

import "hamlet/algos/model"

// A Setting is one that two configurations have different values of.
type Setting struct {
	Key string `json:"key"`
	A   string `json:"a"`
	B   string `json:"b"`
}

// settingsOf lists the settings in which b differs from a, in the order of a Config.
func settingsOf(a, b model.Config) []Setting {
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
