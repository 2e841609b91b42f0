package clock

import "context"

type withoutJitter struct{}

// WithoutJitter returns a context in which pauses are as long as they are said to be. In virtual time the
// same things happen again then.
func WithoutJitter(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutJitter{}, true)
}

// Jitter returns by what share a pause between two attempts is longer or shorter at random: a half, or 0
// in a context without jitter. So those that have lost the same server do not come back all at once.
func Jitter(ctx context.Context) float64 {
	if ctx.Value(withoutJitter{}) != nil {
		return 0
	}
	return .5
}
