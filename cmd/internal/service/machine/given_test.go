package machine

import (
	"os"
	"testing"

	"hamlet/state"
	"hamlet/stream"
)

// A log that is gone begins again behind what its model has learnt: no offset is given twice.
func TestOffsetsAreGivenOnce(t *testing.T) {
	path, name := t.TempDir(), stream.EventsTopic("m")
	d := opened(t, path, Config{})
	if err := d.Ensure(t.Context(), name, 1, 0); err != nil {
		t.Fatal(err)
	}
	store, err := d.Store("m")
	if err != nil {
		t.Fatal(err)
	}
	lease, err := store.Seize(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	learnt := state.Position{}
	for i := range int64(7) {
		learnt = learnt.Advance(i, nil, nil)
	}
	c := &state.Checkpoint{Schema: 1, Numerics: "n", Config: []byte("{}"), Epoch: lease.Epoch, Position: learnt,
		Model: []byte("a model")}
	if _, err := store.Save(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(d.folder(name)); err != nil {
		t.Fatal(err)
	}
	d = opened(t, path, Config{})
	if err := d.Ensure(t.Context(), name, 1, 0); err != nil {
		t.Fatal(err)
	}
	log, err := d.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := log.Bounds(t.Context()); err != nil || b.End != 7 {
		t.Errorf("the log goes on at %d, and the model has learnt up to 7; %v", b.End, err)
	}
}
