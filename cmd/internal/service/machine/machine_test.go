package machine

import (
	"context"
	"testing"

	"hamlet/state"
	"hamlet/state/storetest"
	"hamlet/stream"
	"hamlet/stream/logtest"
)

// opened opens a directory until the test's end.
func opened(t *testing.T, path string, cfg Config) *Dir {
	t.Helper()
	d, err := Open(t.Context(), path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// served serves a directory until the test's end, and connects to it.
func served(t *testing.T, d *Dir) *Client {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for {
		c, err := Dial(t.Context(), d.Path())
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		select {
		case err := <-ended:
			ended <- nil
			t.Fatal(err)
		default:
		}
	}
}

// The log of a directory obeys the laws, in the process and over the socket.
func TestLogLaws(t *testing.T) {
	for name, over := range map[string]func(*testing.T, *Dir) Machine{
		"in the process":  func(_ *testing.T, d *Dir) Machine { return d },
		"over the socket": func(t *testing.T, d *Dir) Machine { return served(t, d) },
	} {
		t.Run(name, func(t *testing.T) {
			logtest.Run(t, func(t *testing.T) logtest.Subject {
				m := over(t, opened(t, t.TempDir(), Config{}))
				if err := m.Ensure(t.Context(), "events", 0, 0); err != nil {
					t.Fatal(err)
				}
				l, err := m.Open("events")
				if err != nil {
					t.Fatal(err)
				}
				return logtest.Subject{
					Log: l, Appender: l, TooLarge: 2 << 20,
					Open: func(t *testing.T) (stream.Log, stream.Appender) {
						l, err := m.Open("events")
						if err != nil {
							t.Fatal(err)
						}
						return l, l
					},
				}
			})
		})
	}
}

// The store of a directory obeys the laws over the socket; package files tries them in the process.
func TestStoreLaws(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() state.Store {
		c := served(t, opened(t, t.TempDir(), Config{}))
		return func() state.Store {
			s, err := c.Store("default")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}
