package pinning

import (
	"context"
	"maps"

	"hamlet/state/redis"
)

// A Plan says what is to be pinned or unpinned. Do does it.
type Plan struct {
	before Kept
	pins   map[int]int64 // versions by partition; nil: unpin all
}

// Pin plans to answer from a version of the partition of, until Unpin; nil is the only
// partition there is. The other partitions are pinned to versions of about the same time,
// unless only is true.
func (k Kept) Pin(number int64, of *int, only bool) (Plan, error) {
	pins, err := k.choose(number, of, only)
	return Plan{k, pins}, err
}

// Rollback plans to pin the versions before those that are served.
func (k Kept) Rollback() (Plan, error) {
	pins, err := k.back()
	return Plan{k, pins}, err
}

// Unpin plans to answer from the newest versions again.
func (k Kept) Unpin() Plan { return Plan{k, nil} }

// A Step is what a plan changes in one partition.
type Step struct {
	Partition int
	From, To  *Version // answers come from; From is nil if what is served cannot be read
}

// Steps lists the partitions that the plan is about, ascending. Unpin is to the newest
// version of the moment at which it was planned.
func (p *Plan) Steps() (all []Step) {
	for i := range p.before.Partitions {
		part := &p.before.Partitions[i]
		to := part.Head
		if p.pins != nil {
			number, chosen := p.pins[part.Partition]
			if !chosen {
				continue
			}
			to = number
		}
		all = append(all, Step{part.Partition, part.Find(part.Served), part.Find(to)})
	}
	return all
}

// Equal reports whether two plans pin the same versions, or both unpin.
func (p *Plan) Equal(q *Plan) bool {
	return (p.pins == nil) == (q.pins == nil) && maps.Equal(p.pins, q.pins)
}

// Pins returns the versions that are to be pinned, by partition; nil: all are unpinned.
func (p *Plan) Pins() map[int]int64 { return maps.Clone(p.pins) }

// Do changes what scorers answer from.
func (p *Plan) Do(ctx context.Context, store *redis.Store) error {
	for _, version := range p.pins {
		return store.Pin(ctx, version)
	}
	return store.Unpin(ctx)
}
