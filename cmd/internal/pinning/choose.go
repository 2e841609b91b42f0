package pinning

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/models"
	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/state/redis"
)

// Kept is what Redis keeps of a model: the object that --json prints.
type Kept struct {
	Model      string      `json:"model"`
	Partitions []Partition `json:"partitions"` // ascending

	Answers *models.Answers `json:"answers,omitempty"` // nil: the model answers by itself
}

// A Partition lists its versions, newest first; there is at least one.
type Partition struct {
	Partition int       `json:"partition"`
	Head      int64     `json:"head"`               // 0: it cannot be read
	Served    int64     `json:"served"`             // 0: it cannot be read
	Pinned    int64     `json:"pinned,omitempty"`   // the version that an operator pinned
	PinLost   bool      `json:"pin_lost,omitempty"` // Redis has lost the pinned version
	Versions  []Version `json:"versions"`
}

// A Version is one that Redis keeps.
type Version struct {
	Version  int64             `json:"version"`
	Saved    time.Time         `json:"saved"`
	Events   uint64            `json:"events"`            // learnt
	Position int64             `json:"position"`          // next offset of the log: of several partitions, of the order log
	Offsets  sequencer.Offsets `json:"offsets,omitempty"` // then: the next offset of each partition
	SHA256   string            `json:"sha256"`            // of the model's bytes
	Bytes    int64             `json:"bytes"`             // of the model
	Head     bool              `json:"head"`
	Served   bool              `json:"served"`
	Pinned   bool              `json:"pinned"`
	Replaced bool              `json:"replaced,omitempty"` // by another model
}

// A NoneError says that Redis keeps no version of a model.
type NoneError struct{ Model string }

// Error says what may be the cause.
func (e *NoneError) Error() string {
	return fmt.Sprintf("redis keeps no version of model %s: the learner has saved none yet, or --model or --redis-db names another", e.Model)
}

// Read asks Redis for all that it keeps of a model. The error is a [NoneError] if that is nothing.
func Read(ctx context.Context, store *redis.Store, model string) (Kept, error) {
	k := Kept{Model: model}
	partitions, err := store.Partitions(ctx)
	if err != nil {
		return k, err
	}
	for _, number := range partitions {
		p := Partition{Partition: number}
		list, err := store.Versions(ctx)
		if errors.Is(err, state.ErrNone) {
			continue
		}
		if err != nil {
			return k, err
		}
		if p.Pinned, err = store.Pinned(ctx); err != nil {
			return k, err
		}
		for _, v := range list {
			offsets, err := sequencer.OffsetsIn(v.Order)
			if err != nil {
				return k, fmt.Errorf("version %d of model %s: %w", v.Version, model, err)
			}
			p.Versions = append(p.Versions, Version{
				Version: v.Version, Saved: v.Saved, Events: v.Events, Position: v.Next, Offsets: offsets, SHA256: hex.EncodeToString(v.SHA256[:]), Bytes: v.Bytes,
				Head: v.Head, Served: v.Served, Pinned: v.Pinned, Replaced: v.Replaced,
			})
			if v.Head {
				p.Head = v.Version
			}
			if v.Served {
				p.Served = v.Version
			}
		}
		if len(p.Versions) == 0 {
			return k, fmt.Errorf("partition %d of model %s has versions, and none can be read", number, model)
		}
		p.PinLost = p.Pinned != 0 && p.Find(p.Pinned) == nil
		k.Partitions = append(k.Partitions, p)
	}
	if len(k.Partitions) == 0 {
		return k, &NoneError{model}
	}
	k.Answers, err = models.ReadAnswers(ctx, store, model)
	return k, err
}

// Find returns a version, nil if it is not kept.
func (p *Partition) Find(number int64) *Version {
	for i := range p.Versions {
		if p.Versions[i].Version == number {
			return &p.Versions[i]
		}
	}
	return nil
}

// Name names the partition, or those of a model of several: "0–3".
func (p *Partition) Name() string { return p.Versions[0].Offsets.Partitions(p.Partition) }

// numbers lists the versions for an error.
func (p *Partition) numbers() string {
	var all []string
	for _, v := range p.Versions {
		all = append(all, strconv.FormatInt(v.Version, 10))
	}
	return strings.Join(all, ", ")
}

// slack is how much later than the chosen version another partition's may have been saved.
// Learners save every few seconds, and not at the same moment.
const slack = time.Minute

// near returns the version saved nearest to at, of those saved at most slack after it and
// not newer than the version newest (0: any). It returns nil if there is none.
func (p *Partition) near(at time.Time, newest int64) *Version {
	var best *Version
	for i := range p.Versions {
		v := &p.Versions[i]
		if v.Saved.After(at.Add(slack)) || newest != 0 && v.Version > newest {
			continue
		}
		if best == nil || v.Saved.Sub(at).Abs() < best.Saved.Sub(at).Abs() {
			best = v
		}
	}
	return best
}

// choose returns the version of each partition that is to be pinned, for a version of the
// partition of; nil is the only one there is. With only it is that one alone.
func (k Kept) choose(number int64, of *int, only bool) (map[int]int64, error) {
	i := 0
	if of != nil {
		i = slices.IndexFunc(k.Partitions, func(p Partition) bool { return p.Partition == *of })
	}
	switch {
	case of == nil && len(k.Partitions) > 1:
		return nil, cli.Usagef("model %s has partitions %s, and each counts its versions by itself: say whose version %d is with --partition N; "+
			"the others are pinned to versions of about the same time", k.Model, k.names(), number)
	case i < 0:
		return nil, fmt.Errorf("model %s has no partition %d in redis: it has %s", k.Model, *of, k.names())
	}
	p := &k.Partitions[i]
	v := p.Find(number)
	if v == nil {
		return nil, fmt.Errorf("version %d of partition %d is not kept: kept are %s", number, p.Partition, p.numbers())
	}
	if only {
		return map[int]int64{p.Partition: number}, nil
	}
	return k.around(p.Partition, v, func(*Partition) int64 { return 0 })
}

// back returns the versions before those that are served. The partition whose served
// version was saved last goes back one version, the others to about the same time.
func (k Kept) back() (map[int]int64, error) {
	var last *Partition
	var to *Version
	var latest time.Time
	for i := range k.Partitions {
		p := &k.Partitions[i]
		at := slices.IndexFunc(p.Versions, func(v Version) bool { return v.Served })
		if at < 0 {
			return nil, fmt.Errorf("partition %d: the version that is served cannot be read: pin one of %s", p.Partition, p.numbers())
		}
		if at+1 < len(p.Versions) && (last == nil || p.Versions[at].Saved.After(latest)) {
			last, to, latest = p, &p.Versions[at+1], p.Versions[at].Saved
		}
	}
	if last == nil {
		p := &k.Partitions[0]
		return nil, fmt.Errorf("no version before the served one, %d, is kept: kept are %s", p.Served, p.numbers())
	}
	return k.around(last.Partition, to, func(p *Partition) int64 { return p.Served })
}

// around returns v for its own partition and the nearest version for each other one, but
// none above newest of that partition.
func (k Kept) around(own int, v *Version, newest func(*Partition) int64) (map[int]int64, error) {
	chosen := map[int]int64{own: v.Version}
	for i := range k.Partitions {
		p := &k.Partitions[i]
		if p.Partition == own {
			continue
		}
		near := p.near(v.Saved, newest(p))
		if near == nil {
			oldest := p.Versions[len(p.Versions)-1]
			return nil, fmt.Errorf("nothing is pinned: version %d of partition %d was saved at %s, and partition %d keeps none of about that time: "+
				"its oldest is %d, of %s. Choose a later version, or pin each partition with --partition N --only",
				v.Version, own, stamp(v.Saved), p.Partition, oldest.Version, stamp(oldest.Saved))
		}
		chosen[p.Partition] = near.Version
	}
	return chosen, nil
}

// names lists the partitions.
func (k Kept) names() string {
	var all []string
	for _, p := range k.Partitions {
		all = append(all, strconv.Itoa(p.Partition))
	}
	return strings.Join(all, ", ")
}
