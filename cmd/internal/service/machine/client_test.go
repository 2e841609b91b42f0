package machine

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hamlet/stream"
)

// An Append whose caller waits no more comes before a later one, also where the log was opened again
// meanwhile, and its records are those of the call.
func TestAGivenUpAppendComesFirst(t *testing.T) {
	path := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(path, socketName))
	if err != nil {
		t.Fatal(err)
	}
	written, release := make(chan string, 2), make(chan struct{})
	mux := http.NewServeMux()
	handle(mux, "append", func(_ context.Context, a appends) (none, error) {
		value := string(a.Records[0].Value)
		if value == "first" { // the disk is slow
			<-release
		}
		written <- value
		return true, nil
	})
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	client, err := NewClient(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	open := func() stream.Topic {
		log, err := client.Open("events")
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	ctx, giveUp := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer giveUp()
	first := []byte("first")
	if err := open().Append(ctx, stream.Record{Value: first}); err == nil {
		t.Fatal("the first is answered")
	}
	copy(first, "other")
	later := make(chan error, 1)
	go func() { later <- open().Append(t.Context(), stream.Record{Value: []byte("later")}) }()
	select {
	case value := <-written:
		t.Errorf("%s overtakes the first", value)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if err := <-later; err != nil {
		t.Fatal(err)
	}
	if got := []string{<-written, <-written}; !slices.Equal(got, []string{"first", "later"}) {
		t.Errorf("written are %q", got)
	}
}

// No name over the socket leads out of the directory.
func TestNamesOverTheSocket(t *testing.T) {
	c := served(t, opened(t, t.TempDir(), Config{}))
	log := remoteLog{c, "../events"}
	if _, err := log.Bounds(t.Context()); err == nil {
		t.Error("Bounds takes ../events")
	}
	if err := log.Append(t.Context(), stream.Record{}); err == nil {
		t.Error("Append takes ../events")
	}
}
