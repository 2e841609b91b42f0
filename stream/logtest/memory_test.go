package logtest_test

import (
	"testing"

	"hamlet/stream"
	"hamlet/stream/logtest"
)

func TestMemoryKeepsTheLaws(t *testing.T) {
	logtest.Run(t, func(*testing.T) logtest.Subject {
		m := &logtest.Memory{ID: "a"}
		return logtest.Subject{
			Log: m, Appender: m,
			Open:    func(*testing.T) (stream.Log, stream.Appender) { return m, m },
			Retain:  func(*testing.T) int64 { m.Retain(7); return 7 },
			Replace: func(*testing.T) { m.Replace("b") },
			Away: func(*testing.T) func() {
				m.Fail(stream.ErrAway)
				return func() { m.Fail(nil) }
			},
		}
	})
}
