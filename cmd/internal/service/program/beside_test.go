package program

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/machine"
	"hamlet/stream"
)

// Without --kafka, files go to the log of the program that has the directory. The same command again
// sends nothing twice.
func TestBesideUp(t *testing.T) {
	dir, err := machine.Open(t.Context(), t.TempDir(), machine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	topic := stream.EventsTopic("default")
	if err := dir.Ensure(t.Context(), topic, 0, 0); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- dir.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	texts := filepath.Join(t.TempDir(), "texts.txt")
	if err := os.WriteFile(texts, []byte("spam\tYou won\nham\tLunch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		args := []string{"--data=" + dir.Path(), "--format=text", texts}
		if err := Ingest(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}); err != nil {
			t.Fatal(err)
		}
	}
	log, err := dir.Open(topic)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := log.Bounds(t.Context()); err != nil || b.End != 2 {
		t.Errorf("the log has %+v, %v; want 2 events", b, err)
	}
}
