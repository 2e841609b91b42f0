package now

import (
	"context"
	"sync"

	"hamlet/cmd/internal/web/page"
)

// A polled is the last answer to a question that is asked now and then.
type polled[T any] struct {
	ask    func(ctx context.Context, before T) (T, error) // nil: there is nobody to ask
	silent string                                         // the sentence until somebody has answered
	say    func(error) string                             // nil: page.Sentence

	mu   sync.Mutex
	last T
	away string // why last may be old, as a sentence
}

func (p *polled[T]) get() (last T, away string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, p.away
}

// rest says that there is no answer yet. The last one stays.
func (p *polled[T]) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = p.silent
}

// poll asks. It is called by one goroutine at a time.
func (p *polled[T]) poll(ctx context.Context) {
	if p.ask == nil {
		return
	}
	before, _ := p.get()
	fresh, err := p.ask(ctx, before)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.last, p.away = fresh, ""
	case p.say != nil:
		p.away = p.say(err)
	default:
		p.away = page.Sentence(err)
	}
}
