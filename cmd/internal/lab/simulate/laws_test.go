package simulate

import (
	"testing"
	"time"

	"hamlet/state"
	"hamlet/state/files"
	"hamlet/state/storetest"
	"hamlet/stream"
	"hamlet/stream/filelog/disktest"
	"hamlet/stream/logtest"
)

// calmWorld is a world in which nothing breaks, without processes. Its time is real.
func calmWorld(t *testing.T, plan Plan) *World {
	t.Helper()
	w := blank(plan, &Beginning{sums: map[[32]byte]bool{}})
	w.healed.Store(true)
	return w
}

// The log that nodes see keeps the laws of a log, in memory and in files.
func TestLogKeepsTheLaws(t *testing.T) {
	for name, inFiles := range map[string]bool{"in memory": false, "in files": true} {
		t.Run(name, func(t *testing.T) {
			logtest.Run(t, func(t *testing.T) logtest.Subject {
				w := calmWorld(t, Plan{Seed: 1, Named: true, Files: inFiles})
				w.events.ID = "a"
				log := w.newNode("node").remote(&w.events, "events")
				s := logtest.Subject{
					Log: log, Appender: log,
					Open: func(*testing.T) (stream.Log, stream.Appender) {
						other := w.newNode("other").remote(&w.events, "events")
						return other, other
					},
					Retain:  func(*testing.T) int64 { w.events.Retain(7); return 7 },
					Replace: func(*testing.T) { w.events.Replace("b") },
					Away: func(*testing.T) func() {
						set := func(until time.Time) {
							w.mu.Lock()
							defer w.mu.Unlock()
							w.away[portLog] = until
						}
						set(time.Now().Add(time.Hour))
						return func() { set(time.Time{}) }
					},
				}
				if !inFiles {
					return s
				}
				if err := w.events.open(disktest.New(1)); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := w.events.close(); err != nil {
						t.Error(err)
					}
				})
				s.Retain = nil // whole segments: the laws' logs have one
				s.Replace = func(t *testing.T) {
					if err := w.events.replace(disktest.New(2), nil); err != nil {
						t.Fatal(err)
					}
				}
				s.Restart = func(t *testing.T) { // its machine loses power
					f := w.events.files.Load()
					f.offAfter(0)
					_ = f.Close()
					if err := w.events.open(f.disk.Cut()); err != nil {
						t.Fatal(err)
					}
				}
				return s
			})
		})
	}
}

// The store that nodes see keeps the laws of a store.
func TestStoreKeepsTheLaws(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() state.Store {
		w := calmWorld(t, Plan{Seed: 1})
		var err error
		if w.vault, err = openVault(temporary(t), files.Config{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.vault.close() })
		return func() state.Store { return &shelf{w.newNode("node"), w.vault, stream.DefaultName} }
	})
}
