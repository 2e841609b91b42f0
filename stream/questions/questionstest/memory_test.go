package questionstest

import (
	"testing"

	"hamlet/stream/questions"
)

func TestMemoryKeepsTheLaws(t *testing.T) {
	Run(t, func(*testing.T) Subject {
		m := new(Memory)
		return Subject{Serving: func(*testing.T) questions.Questions { return m }, Asker: m}
	})
}
