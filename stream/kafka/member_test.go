package kafka

import (
	"context"
	"errors"
	"testing"
)

// A generation that has ended has nothing read, because nobody would wait for it.
func TestAssignmentOfAnEndedGeneration(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	m := &member{cfg: &Config{Brokers: []string{"127.0.0.1:1"}}, topic: "t", read: func(context.Context, *Assignment) error {
		t.Error("it is read")
		return errors.New("too late")
	}}
	m.hold(t.Context(), ended, nil, 0)
}
