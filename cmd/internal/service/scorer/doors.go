package scorer

import (
	"cmp"
	"sync"
)

// maxDoors bounds the series of a metric: clients choose the names of doors.
const maxDoors = 16

// The labels of requests that named no door, and of those beyond maxDoors.
const (
	directly   = "nats"
	otherDoors = "other"
)

// doors are the labels of the doors that requests came in by. They may be used
// concurrently.
type doors struct {
	mu    sync.Mutex
	known map[string]bool // at most maxDoors; guarded by mu
}

// label returns a door's label: its name if it is one of the first maxDoors.
func (d *doors) label(name string) string {
	name = cmp.Or(name, directly)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.known[name] {
		if len(d.known) == maxDoors {
			return otherDoors
		}
		if d.known == nil {
			d.known = map[string]bool{}
		}
		d.known[name] = true
	}
	return name
}
