package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/state/redis"
)

// models asks Redis what checkpoints there are. It reads the manifests of a partition only
// where a pointer has moved.
type models struct {
	store *redis.Store
	held  map[int]held // by partition; only ask uses it

	mu  sync.Mutex
	now Models
}

// A held is what is known about a partition, and under which pointers.
type held struct {
	head, served, pinned int64
	Partition
}

func (m *models) get() Models {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now
	now.Partitions = slices.Clone(now.Partitions) // the lag is written there
	return now
}

// rest says that there is no answer yet. The models stay, as last read.
func (m *models) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now.Away = redisSilent; m.store == nil {
		m.now.Away = noRedis
	}
}

func (m *models) ask(ctx context.Context) {
	if m.store == nil {
		return
	}
	now, err := m.read(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.now.Away = sentence(fmt.Errorf("redis does not say what models there are: %w", err))
		return
	}
	m.now = now
}

func (m *models) read(ctx context.Context) (now Models, err error) {
	partitions, err := m.store.Partitions(ctx)
	if err != nil {
		return now, err
	}
	slices.Sort(partitions)
	for _, p := range partitions {
		at, err := m.partition(ctx, p)
		if errors.Is(err, state.ErrNone) {
			continue
		}
		if err != nil {
			return now, err
		}
		now.Partitions = append(now.Partitions, at)
		now.Events += at.Events
		now.Pinned = now.Pinned || at.Pinned
		if now.Saved.IsZero() || at.Saved.Before(now.Saved) {
			now.Saved = at.Saved
		}
	}
	return now, nil
}

// partition returns what is known about a partition; [state.ErrNone] before the first save.
func (m *models) partition(ctx context.Context, p int) (Partition, error) {
	head, err := m.store.Heading(ctx, state.Head)
	if err != nil {
		return Partition{}, err
	}
	served, err := m.store.Heading(ctx, state.Served)
	if err != nil {
		return Partition{}, err
	}
	known, ok := m.held[p]
	if ok && known.head == head.Version && known.served == served.Version && known.pinned == served.Pinned {
		return known.Partition, nil
	}
	versions, err := m.store.Versions(ctx)
	if err != nil {
		return Partition{}, err
	}
	found := Partition{Partition: p, Served: served.Version, Pinned: served.Pinned != 0}
	for _, v := range versions {
		if v.Version == head.Version {
			found.Version, found.Events, found.Saved, found.Next = v.Version, v.Events, v.Saved, v.Next
			if found.Offsets, err = sequencer.OffsetsIn(v.Order); err != nil {
				return Partition{}, fmt.Errorf("version %d: %w", v.Version, err)
			}
		}
	}
	if found.Version == 0 {
		return Partition{}, fmt.Errorf("partition %d: %w", p, state.ErrNone) // a learner replaced it meanwhile
	}
	m.held[p] = held{head.Version, served.Version, served.Pinned, found}
	return found, nil
}

// lag asks Kafka where the logs of the partitions begin and end.
type lag struct {
	offsets func(context.Context) (first, end map[int]int64, err error)

	mu          sync.Mutex
	first, ends map[int]int64
	away        string
}

// rest says that there is no answer yet.
func (l *lag) rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away = kafkaSilent; l.offsets == nil {
		l.away = noKafka
	}
}

func (l *lag) ask(ctx context.Context) {
	if l.offsets == nil {
		return
	}
	first, ends, err := l.offsets(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away = ""; err != nil {
		l.away = sentence(fmt.Errorf("kafka does not say how long the log is: %w", err))
		return
	}
	l.first, l.ends = first, ends
}

// ordered returns the lags of one model of all partitions: of those that it has not joined yet,
// all that is there.
func (l *lag) ordered(offsets sequencer.Offsets) []int64 {
	lags := make([]int64, len(l.ends))
	for partition := range lags {
		next := l.first[partition]
		if partition < len(offsets) {
			next = max(next, offsets[partition])
		}
		lags[partition] = max(0, l.ends[partition]-next)
	}
	return lags
}

// show writes the lag into m. A partition without a model counts whole.
func (l *lag) show(m *Models) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.away != "":
		m.LagAway = l.away
		return
	case m.Away != "":
		m.LagAway = "The lag is not known while Redis cannot be read."
		return
	}
	m.LagKnown = true
	known := map[int]bool{}
	for i := range m.Partitions {
		p := &m.Partitions[i]
		if p.Offsets != nil {
			p.Lags, p.LagKnown, p.Lag = l.ordered(p.Offsets), true, 0
			for _, n := range p.Lags {
				p.Lag += n
			}
			m.Lag += p.Lag
			for partition := range l.ends {
				known[partition] = true
			}
			continue
		}
		known[p.Partition] = true
		end, ok := l.ends[p.Partition]
		if !ok {
			m.LagAway, m.LagKnown = fmt.Sprintf("Kafka has no log of partition %d, so the lag is not known.", p.Partition), false
			continue
		}
		p.Lag, p.LagKnown = max(0, end-p.Next), true
		m.Lag += p.Lag
	}
	for p, end := range l.ends {
		if n := end - l.first[p]; n > 0 && !known[p] {
			m.Bare++
			m.BareLag += n
		}
	}
	m.Lag += m.BareLag
}
