package clock

import (
	"context"
	"testing"
)

// A context made of one without jitter has none either.
func TestJitter(t *testing.T) {
	if j := Jitter(t.Context()); j != .5 {
		t.Errorf("jitter %v", j)
	}
	ctx, cancel := context.WithCancel(WithoutJitter(t.Context()))
	defer cancel()
	if j := Jitter(context.WithoutCancel(ctx)); j != 0 {
		t.Errorf("jitter %v in a context without", j)
	}
}
