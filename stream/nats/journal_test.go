package nats_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
	"hamlet/stream/nats"
)

func journal(t testing.TB, conn *natsgo.Conn, cfg nats.JournalConfig) *nats.Journal {
	t.Helper()
	j, err := nats.NewJournal(conn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func entry(request string) stream.JournalEntry {
	return stream.JournalEntry{Time: time.Now().UTC(), Verdict: stream.DecideHam, Request: request, Model: "default/0123456789ab", Door: "nats", Tenant: "default"}
}

// read returns the requests' ids in the journal of a model.
func read(t testing.TB, conn *natsgo.Conn, model string, since time.Time) (requests []string) {
	t.Helper()
	for e, err := range nats.ReadJournal(patience(t), conn, model, since) {
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, e.Request)
	}
	return requests
}

func TestJournalIsReadAsWritten(t *testing.T) {
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	if got := read(t, conn, "default", time.Time{}); got != nil {
		t.Errorf("without a stream: %q", got)
	}
	j, other := journal(t, conn, nats.JournalConfig{}), journal(t, conn, nats.JournalConfig{Model: "billing"})
	ctx := patience(t)
	for _, err := range []error{
		j.Append(ctx, "1", []stream.JournalEntry{entry("a"), entry("b")}),
		other.Append(ctx, "1-billing", []stream.JournalEntry{entry("x")}),
		j.Append(ctx, "2", []stream.JournalEntry{entry("c")}),
		j.Append(ctx, "2", []stream.JournalEntry{entry("c")}), // tried again: a copy
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	middle := time.Now()
	if err := j.Append(ctx, "3", []stream.JournalEntry{{Time: middle.Add(-time.Hour), Verdict: "ham", Request: "late"}, entry("d")}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		model, want string
		since       time.Time
	}{
		{"default", "a b c late d", time.Time{}}, {"billing", "x", time.Time{}}, {"default", "d", middle},
		{"default", "", time.Now().Add(time.Hour)}, {"another", "", time.Time{}},
	} {
		if got := strings.Join(read(t, conn, c.model, c.since), " "); got != c.want {
			t.Errorf("model %s since %v: %q, want %q", c.model, c.since, got, c.want)
		}
	}
	// What is no line of ours does not hide the others.
	if err := conn.Publish(nats.JournalSubject("billing"), []byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if err := other.Append(ctx, "2-billing", []stream.JournalEntry{entry("y")}); err != nil {
		t.Fatal(err)
	}
	var found, bad int
	for _, err := range nats.ReadJournal(ctx, conn, "billing", time.Time{}) {
		if found++; errors.As(err, new(*nats.MessageError)) {
			bad++
		}
	}
	if found != 3 || bad != 1 {
		t.Errorf("%d lines, %d of them bad; want 3 and 1", found, bad)
	}
}

// The stream keeps its bounds, whatever others made of it, and a deleted one is made again.
func TestJournalIsBounded(t *testing.T) {
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx := patience(t)
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: nats.JournalStream, Subjects: []string{"hamlet.decisions.x"}, Discard: jetstream.DiscardNew, MaxMsgs: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	cfg := nats.JournalConfig{Age: time.Hour, Bytes: 1 << 20}
	j := journal(t, conn, cfg)
	long := make([]stream.JournalEntry, 100)
	for i := range long {
		long[i] = entry(strings.Repeat("r", 256))
	}
	for i := range 60 { // some 50 KB each
		if err := j.Append(ctx, fmt.Sprint(i), long); err != nil {
			t.Fatal(err)
		}
	}
	info := func() *jetstream.StreamInfo {
		s, err := js.Stream(ctx, nats.JournalStream)
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo()
	}
	got := info()
	if got.Config.MaxAge != cfg.Age || got.Config.MaxBytes != cfg.Bytes || got.Config.Discard != jetstream.DiscardOld || got.Config.MaxMsgs != 1<<20 {
		t.Errorf("the stream is %+v", got.Config)
	}
	if got.State.Bytes > uint64(cfg.Bytes) || got.State.LastSeq != 60 || got.State.FirstSeq < 2 {
		t.Errorf("the stream holds %+v", got.State)
	}
	if err := js.DeleteStream(ctx, nats.JournalStream); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(ctx, "lost", []stream.JournalEntry{entry("lost")}); err == nil {
		t.Error("a stream that is gone took a line")
	}
	afterDelete(t, func() error { return j.Append(ctx, "new", []stream.JournalEntry{entry("new")}) })
	if got := read(t, conn, "default", time.Time{}); len(got) != 1 || got[0] != "new" {
		t.Errorf("after the stream was deleted: %q", got)
	}
	for _, bad := range []nats.JournalConfig{{Model: "A.b"}, {Age: -1}, {Bytes: 100}, {Replicas: -1}, {Replicas: 6}} {
		if _, err := nats.NewJournal(conn, bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// refusedFor reports whether err says that a stream is refused, and which setting helps too.
func refusedFor(err error, stream string, helps nats.Setting) bool {
	var why *nats.RefusedError
	return errors.Is(err, nats.ErrRefused) && errors.As(err, &why) && why.Stream == stream && why.Setting == helps
}

// Without JetStream, or the right to it, the error says what to do.
func TestJournalSaysWhatIsMissing(t *testing.T) {
	err := journal(t, connect(t, startServer(t)), nats.JournalConfig{}).Append(patience(t), "1", []stream.JournalEntry{entry("a")})
	if !refusedFor(err, nats.JournalStream, nats.SettingStream) {
		t.Errorf("without JetStream: %v", err)
	}
	alone := connect(t, startJetStream(t, t.TempDir(), server.RANDOM_PORT, nil))
	err = journal(t, alone, nats.JournalConfig{Replicas: 3}).Append(patience(t), "1", []stream.JournalEntry{entry("a")})
	if !refusedFor(err, nats.JournalStream, nats.SettingReplicas) {
		t.Errorf("three replicas on one server: %v", err)
	}
}

// A failure that lasts is told once, and is tried again until ctx ends.
func TestFollowingTellsALastingFailure(t *testing.T) {
	conn := connect(t, startServer(t)) // without JetStream
	ctx, cancel := context.WithCancel(patience(t))
	told := make(chan error, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- nats.FollowJournalEvery(ctx, conn, "default", time.Time{}, func(*stream.JournalEntry) {}, func(err error) { told <- err }, time.Millisecond, time.Hour)
	}()
	select {
	case err := <-told:
		if !errors.Is(err, natsgo.ErrNoResponders) {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("nobody is told")
	}
	for asked := conn.Stats().OutMsgs; conn.Stats().OutMsgs < asked+10 && ctx.Err() == nil; {
		time.Sleep(time.Millisecond) // between polls
	}
	cancel()
	if err := <-ended; err != nil || len(told) > 0 {
		t.Errorf("%v; told %d times more", err, len(told))
	}
}

// Who follows the journal gets the lines of before and after, also after the server was away,
// and labels only from where labels may be written.
func TestJournalIsFollowed(t *testing.T) {
	dir := t.TempDir()
	port := heldPort(t)
	s := startJetStream(t, dir, port, nil)
	conn := connect(t, s)
	ctx, cancel := context.WithCancel(patience(t))
	got, ended := make(chan string, 100), make(chan error, 1)
	go func() {
		ended <- nats.FollowJournalEvery(ctx, conn, "default", time.Time{}, func(e *stream.JournalEntry) { got <- e.Request + e.Label.String() },
			func(err error) { t.Error(err) }, 20*time.Millisecond, 20*time.Millisecond)
	}()
	wants := func(want string) {
		t.Helper()
		select {
		case line := <-got:
			if line != want {
				t.Fatalf("followed %q, want %q", line, want)
			}
		case <-ctx.Done():
			t.Fatalf("no line %q", want)
		}
	}
	decisions, labels := journal(t, conn, nats.JournalConfig{}), journal(t, conn, nats.JournalConfig{Labels: true})
	label := stream.JournalEntry{Time: time.Now().UTC(), ID: strings.Repeat("0a", 16), Label: stream.Spam, Source: "users", Model: "default"}
	if err := labels.Append(ctx, "0", []stream.JournalEntry{label}); err == nil {
		t.Error("labels made the stream")
	}
	if err := decisions.Append(ctx, "1", []stream.JournalEntry{entry("a"), entry("b"), label}); err != nil {
		t.Fatal(err)
	}
	if err := labels.Append(ctx, "2", []stream.JournalEntry{entry("forged"), label}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a", "b", "spam"} {
		wants(want)
	}
	for line, err := range nats.ReadJournal(ctx, conn, "default", time.Time{}) {
		if err == nil && line.Label == stream.Spam && line.Source != "users" {
			t.Errorf("a label is read as %+v", line)
		}
	}
	s.Shutdown()
	s.WaitForShutdown()
	connect(t, startJetStream(t, dir, port, nil)).Close()
	for {
		if err := decisions.Append(ctx, "3", []stream.JournalEntry{entry("c")}); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond) // between polls
	}
	wants("c")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Who reads the journal again and again leaves nothing at the server, which takes a thousand readers a stream.
func TestReadersOfTheJournalAreGone(t *testing.T) {
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	j, ctx := journal(t, conn, nats.JournalConfig{}), patience(t)
	if err := j.Append(ctx, "1", []stream.JournalEntry{entry("a"), entry("b")}); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		read(t, conn, "default", time.Time{})
		read(t, conn, "default", time.Now().Add(time.Duration(i)*time.Hour)) // nothing
	}
	for left := -1; left != 0; { // until ctx ends
		s, err := js.Stream(ctx, nats.JournalStream)
		if err != nil {
			t.Fatalf("%d consumers are left: %v", left, err)
		}
		left = s.CachedInfo().State.Consumers
	}
}
