package alerttest

import (
	"testing"

	"hamlet/stream"
)

func TestMemoryKeepsTheLaws(t *testing.T) {
	Run(t, func(*testing.T) Subject {
		m := new(Memory)
		return Subject{AlertPublisher: m, Published: func() []stream.Alert { return m.Published("default") }}
	})
}
