package model

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Bounds.
const (
	redisTime = 5 * time.Second
	factsTime = 20 * time.Second // a model has some 30 MB

	keptFor = 2 * time.Second
	lossFor = 20 * time.Second

	mostFacts = 4
)

func (p *pages) readKept(ctx context.Context, _ Kept) (Kept, error) {
	return Read(ctx, p.Store, p.site.Model)
}

// A versionID is a version. A Redis that was emptied counts from 1 again: so the hash belongs to it.
type versionID struct {
	version int64
	sha256  string
}

// A factsCache remembers what the last four versions that somebody asked for have learnt. It
// decodes one at a time: a model takes some 100 MB meanwhile.
type factsCache struct {
	load func(context.Context, versionID) (*Facts, error)

	decoding chan struct{} // holds one; made by get
	mu       sync.Mutex
	known    []known // the one that was asked for last is the last
}

type known struct {
	versionID
	facts *Facts
}

func (c *factsCache) find(at versionID) *Facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.decoding == nil {
		c.decoding = make(chan struct{}, 1)
	}
	for i, k := range c.known {
		if k.versionID == at {
			c.known = append(append(c.known[:i:i], c.known[i+1:]...), k)
			return k.facts
		}
	}
	return nil
}

func (c *factsCache) get(ctx context.Context, at versionID) (*Facts, error) {
	if facts := c.find(at); facts != nil {
		return facts, nil
	}
	ctx, cancel := context.WithTimeout(ctx, factsTime)
	defer cancel()
	select {
	case c.decoding <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("version %d: others are being read: %w", at.version, ctx.Err())
	}
	defer func() { <-c.decoding }()
	if facts := c.find(at); facts != nil { // somebody else asked for it
		return facts, nil
	}
	facts, err := c.load(ctx, at)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = append(c.known, known{at, facts})
	c.known = append([]known{}, c.known[max(0, len(c.known)-mostFacts):]...)
	return facts, nil
}

func (p *pages) loadFacts(ctx context.Context, at versionID) (*Facts, error) {
	c, err := p.Store.LoadVersion(ctx, at.version)
	if err != nil {
		return nil, err
	}
	facts, err := FactsOf(at.version, c)
	if err != nil {
		return nil, fmt.Errorf("version %d: %w", at.version, err)
	}
	return facts, nil
}
