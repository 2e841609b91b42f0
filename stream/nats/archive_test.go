package nats_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/nats"
)

// keptLetter returns a mail with its identity.
func keptLetter(text string) *nats.ArchivedMail {
	m := &nats.ArchivedMail{Tenant: "example.org", Message: []byte("Subject: " + text + "\r\n\r\nThe text of " + text + ".\r\n")}
	parsed := mail.Parse(m.Message)
	m.Identity = mail.Identity(m.Tenant, &parsed)
	return m
}

func kept(t testing.TB, conn *natsgo.Conn, cfg nats.MailArchiveConfig) *nats.MailArchive {
	t.Helper()
	if cfg.Age == 0 {
		cfg.Age = 24 * time.Hour
	}
	k, err := nats.NewMailArchive(conn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func keptReader(t testing.TB, conn *natsgo.Conn, model string) *nats.MailArchiveReader {
	t.Helper()
	r, err := nats.NewMailArchiveReader(conn, model)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// object reads an object as any client of object stores does.
func object(t *testing.T, conn *natsgo.Conn, name string) []byte {
	t.Helper()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	store, err := js.ObjectStore(patience(t), nats.MailBucket)
	if err != nil {
		t.Fatal(err)
	}
	b, err := store.GetBytes(patience(t), name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What is kept is read again, once for each model, also by the library's object store.
func TestKeptMailIsReadAgain(t *testing.T) {
	t.Parallel()
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	k, other := kept(t, conn, nats.MailArchiveConfig{}), kept(t, conn, nats.MailArchiveConfig{Model: "other"})
	m := keptLetter("one")
	r := keptReader(t, conn, "")
	if _, err := r.Get(patience(t), m.Identity); !errors.Is(err, nats.ErrNotArchived) {
		t.Errorf("without a store: %v", err)
	}
	for _, k := range []*nats.MailArchive{k, other, k} {
		if err := k.Put(patience(t), m); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.Get(patience(t), m.Identity)
	if err != nil || !bytes.Equal(got.Message, m.Message) || got.Tenant != m.Tenant || time.Since(got.Time) > time.Minute {
		t.Errorf("%+v, %v", got, err)
	}
	if text := object(t, conn, "default/"+m.Identity); !bytes.Equal(text, m.Message) {
		t.Errorf("the object is %q", text)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(patience(t), nats.MailStream)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.CachedInfo().State.Msgs; n != 4 {
		t.Errorf("two objects take %d messages, want 4", n)
	}
	for _, id := range []string{keptLetter("two").Identity, "", "../x", strings.Repeat("a", 33)} {
		if _, err := r.Get(patience(t), id); !errors.Is(err, nats.ErrNotArchived) {
			t.Errorf("%q: %v", id, err)
		}
	}

	// What somebody deletes stays away.
	store, err := js.ObjectStore(patience(t), nats.MailBucket)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(patience(t), "default/"+m.Identity); err != nil {
		t.Fatal(err)
	}
	if err := k.Put(patience(t), m); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Get(patience(t), m.Identity); !errors.Is(err, nats.ErrNotArchived) {
		t.Errorf("a deleted message: %v", err)
	}

	// Nobody passes one message off as another.
	forged := keptLetter("three")
	forged.Message = append(forged.Message, "more"...)
	if err := k.Put(patience(t), forged); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Get(patience(t), forged.Identity); err == nil || errors.Is(err, nats.ErrNotArchived) {
		t.Errorf("a forged message: %v", err)
	}

	// A message larger than the server carries is refused, and leaves nothing.
	large := keptLetter("four")
	noise := make([]byte, 2<<20)
	_, _ = rand.Read(noise)
	large.Message = append(large.Message, noise...)
	if err := k.Put(patience(t), large); !errors.Is(err, stream.ErrTooLarge) {
		t.Errorf("a large message: %v", err)
	}
	if _, err := r.Get(patience(t), large.Identity); !errors.Is(err, nats.ErrNotArchived) {
		t.Errorf("a large message is there: %v", err)
	}
}

// A full store loses its oldest mail. Other bounds change the store that is there.
func TestKeptMailIsBounded(t *testing.T) {
	t.Parallel()
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	k := kept(t, conn, nats.MailArchiveConfig{Bytes: 1 << 20})
	var all []*nats.ArchivedMail
	for i := range 6 {
		m := keptLetter(fmt.Sprint("large ", i))
		noise := make([]byte, 300<<10)
		_, _ = rand.Read(noise)
		m.Message = fmt.Appendf(m.Message, "%x", noise)
		parsed := mail.Parse(m.Message)
		m.Identity = mail.Identity(m.Tenant, &parsed)
		if err := k.Put(patience(t), m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	r := keptReader(t, conn, "")
	if _, err := r.Get(patience(t), all[5].Identity); err != nil {
		t.Errorf("the newest: %v", err)
	}
	if _, err := r.Get(patience(t), all[0].Identity); !errors.Is(err, nats.ErrNotArchived) {
		t.Errorf("the oldest: %v", err)
	}

	if err := kept(t, conn, nats.MailArchiveConfig{Age: time.Hour, Bytes: 2 << 20}).Put(patience(t), keptLetter("five")); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(patience(t), nats.MailStream)
	if err != nil {
		t.Fatal(err)
	}
	if cfg := s.CachedInfo().Config; cfg.MaxAge != time.Hour || cfg.MaxBytes != 2<<20 || cfg.Discard != jetstream.DiscardOld {
		t.Errorf("the store has %+v", cfg)
	}
	// Somebody deletes the store: it comes back with the next message but one at most.
	if err := js.DeleteStream(patience(t), nats.MailStream); err != nil {
		t.Fatal(err)
	}
	if err := k.Put(patience(t), keptLetter("six")); err == nil {
		t.Error("no error without the stream")
	}
	afterDelete(t, func() error { return k.Put(patience(t), keptLetter("six")) })
}

// A message is kept by the next try, whichever of its two parts the server did not take or
// acknowledge. It takes no second description.
func TestKeptMailGoesOnWhereItFailed(t *testing.T) {
	t.Parallel()
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	k, r := kept(t, conn, nats.MailArchiveConfig{}), keptReader(t, conn, "")
	if err := k.Put(patience(t), keptLetter("zero")); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(patience(t), nats.MailStream)
	if err != nil {
		t.Fatal(err)
	}
	right := s.CachedInfo().Config
	update := func(cfg jetstream.StreamConfig) {
		t.Helper()
		if _, err := js.UpdateStream(patience(t), cfg); err != nil {
			t.Fatal(err)
		}
	}
	messages := func() uint64 {
		t.Helper()
		info, err := s.Info(patience(t))
		if err != nil {
			t.Fatal(err)
		}
		return info.State.Msgs
	}
	is := func(m *nats.ArchivedMail, n uint64) {
		t.Helper()
		if err := k.Put(patience(t), m); err != nil {
			t.Error(err)
		}
		if got, err := r.Get(patience(t), m.Identity); err != nil || !bytes.Equal(got.Message, m.Message) {
			t.Errorf("%q, %v", got.Message, err)
		}
		if got := messages(); got != n {
			t.Errorf("the store has %d messages, want %d", got, n)
		}
	}

	without := right
	without.Subjects = []string{"$O." + nats.MailBucket + ".M.>"} // descriptions, and no chunks
	update(without)
	m := keptLetter("one")
	for range 2 {
		if err := k.Put(patience(t), m); err == nil {
			t.Error("a message without its chunk is kept")
		}
	}
	update(right)
	is(m, 4)

	silent := right
	silent.NoAck = true
	update(silent)
	m = keptLetter("two")
	over, failed := make(chan struct{}), make(chan error, 1)
	putting := deadline{patience(t), over}
	go func() { failed <- k.Put(putting, m) }()
	eventually(t, "there is no description", func() bool { return messages() >= 5 })
	close(over)
	if err := <-failed; err == nil {
		t.Error("a message that nobody acknowledged is kept")
	}
	update(right)
	is(m, 6)

	// Another writer's message is not written again.
	if err := k.Put(patience(t), keptLetter("two")); err != nil || messages() != 6 {
		t.Errorf("again: %v, %d messages", err, messages())
	}
}

// What a server refuses for good is an error that says so.
func TestKeptMailIsRefused(t *testing.T) {
	t.Parallel()
	without, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	without.Start()
	t.Cleanup(func() { without.Shutdown(); without.WaitForShutdown() })
	if !without.ReadyForConnections(30 * time.Second) {
		t.Fatal("the nats server doesn't listen")
	}
	if err := kept(t, connect(t, without), nats.MailArchiveConfig{}).Put(patience(t), keptLetter("a")); !errors.Is(err, nats.ErrRefused) {
		t.Errorf("without JetStream: %v", err)
	}
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(patience(t), jetstream.StreamConfig{Name: nats.MailStream, Subjects: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	if err := kept(t, conn, nats.MailArchiveConfig{}).Put(patience(t), keptLetter("a")); !errors.Is(err, nats.ErrRefused) {
		t.Errorf("another stream: %v", err)
	}
}

// By the rights of deploy/nats/hamlet.conf mailkeeper stores mail and cannot read it, mailreader
// reads it and can change nothing, and nobody else reaches it.
func TestRightsToKeptMail(t *testing.T) {
	t.Parallel()
	as := rights(t)
	keeper, reader := as("mailkeeper"), as("mailreader")
	m := keptLetter("one")
	if err := kept(t, keeper, nats.MailArchiveConfig{}).Put(patience(t), m); err != nil {
		t.Fatal(err)
	}
	if err := kept(t, keeper, nats.MailArchiveConfig{Age: time.Hour}).Put(patience(t), keptLetter("two")); err != nil {
		t.Fatal(err)
	}
	if got, err := keptReader(t, reader, "").Get(patience(t), m.Identity); err != nil || !bytes.Equal(got.Message, m.Message) {
		t.Errorf("the reader: %q, %v", got.Message, err)
	}
	if err := errors.Join(keeper.LastError(), reader.LastError()); err != nil {
		t.Errorf("a user was refused: %v", err)
	}
	const name = nats.MailStream
	reads := []string{"$JS.API.STREAM.MSG.GET." + name, "$JS.API.DIRECT.GET." + name, "$JS.API.DIRECT.GET." + name + ".$O.hamlet-mail.M.x",
		"$JS.API.CONSUMER.CREATE." + name + ".x", "$JS.API.STREAM.SNAPSHOT." + name}
	writes := []string{"$O.hamlet-mail.M.x", "$O.hamlet-mail.C.x", "$JS.API.STREAM.UPDATE." + name, "$JS.API.STREAM.DELETE." + name,
		"$JS.API.STREAM.PURGE." + name, "$JS.API.STREAM.MSG.DELETE." + name}
	destroys := writes[3:]
	for user, subjects := range map[string][]string{
		"mailkeeper": append(destroys, append(reads, "$JS.API.STREAM.CREATE.OTHER")...),
		"mailreader": append(writes, reads[0], reads[3], reads[4]),
		"client":     append(reads, writes...), "operator": append(reads, writes...), "scorer": append(reads, writes...),
		"learner": append(reads, writes...), "gateway": append(reads, writes...), "waiting": append(reads, writes...),
	} {
		for _, subject := range subjects {
			refused(t, as(user), subject, func(c *natsgo.Conn) error { return c.Publish(subject, nil) })
		}
	}
	for _, user := range []string{"mailkeeper", "mailreader"} {
		for _, subject := range []string{"$O.>", ">", "_INBOX.>"} {
			refused(t, as(user), subject, func(c *natsgo.Conn) error {
				_, err := c.SubscribeSync(subject)
				return err
			})
		}
	}
	for _, user := range []string{"admin", "keeper"} {
		if _, err := keptReader(t, as(user), "").Get(patience(t), m.Identity); !errors.Is(err, nats.ErrNotArchived) {
			t.Errorf("%s, of another account: %v", user, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := kept(t, as("scorer"), nats.MailArchiveConfig{}).Put(ctx, m); !refusedFor(err, nats.MailStream, nats.SettingUser) {
		t.Errorf("the scorer's other user stores: %v", err)
	}
}
