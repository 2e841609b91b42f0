package nats

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
	"hamlet/stream/mail"
)

// The object store of kept mail.
const (
	MailBucket = "hamlet-mail"
	MailStream = "OBJ_" + MailBucket // the stream behind it

	mailMetas  = "$O." + MailBucket + ".M."
	mailChunks = "$O." + MailBucket + ".C."
)

// MailBytes is how much mail is kept by default.
const MailBytes = 512 << 20

// A ArchivedMail is a message that was scored.
type ArchivedMail struct {
	Identity string // by mail.Identity
	Tenant   string
	Message  []byte    // reduced
	Time     time.Time // when it was kept; only a MailArchiveReader sets it

	begun mailObject // by a Put that failed; only Put reads and writes it
}

// A mailObject is an object whose description may stand there, maybe without its chunk.
type mailObject struct {
	name  string // of the object, and so of the model; empty: there is none
	chunk string // id of its chunk
}

// A MailArchiveConfig says how long mail is kept, and how much. Zero fields mean the defaults.
type MailArchiveConfig struct {
	Model string        // default DefaultModel
	Age   time.Duration // at least a minute
	Bytes int64         // of the store, for all models; default MailBytes
	Log   *slog.Logger  // nil: silent
}

// A MailArchive writes mail to the object store MailBucket, for all models: the object
// <model>/<identity> is the reduced message, compressed by zstd. The store keeps Age and
// Bytes at most, and the oldest mail goes first. The MailArchive that began last sets both. A
// message that was kept, or that somebody has deleted, is not stored again within Age.
//
// A MailArchive writes the two messages of an object itself: its description and one chunk
// (nats-architecture-and-design, ADR-20). So it needs no right to read, as Put of the library does.
// The methods may be called concurrently.
type MailArchive struct {
	*store
	model   string
	encoder *zstd.Encoder
}

// NewMailArchive returns a MailArchive on conn, which the caller closes. It asks the server for nothing:
// the first Put makes the store.
func NewMailArchive(conn *natsgo.Conn, cfg MailArchiveConfig) (*MailArchive, error) {
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	cfg.Bytes = cmp.Or(cfg.Bytes, MailBytes)
	if err := stream.CheckModelName(cfg.Model); err != nil {
		return nil, fmt.Errorf("kept mail: %w", err)
	}
	if cfg.Age < time.Minute || cfg.Bytes < 1<<20 {
		return nil, fmt.Errorf("kept mail: %v and %d bytes; at least a minute and 1 MiB are wanted", cfg.Age, cfg.Bytes)
	}
	s := &store{
		what: "kept mail", log: cfg.Log, prefix: "$O." + MailBucket + ".", none: errors.New("no object store for mail"),
		want: jetstream.StreamConfig{
			Name: MailStream, Description: "mail that hamlet scored, for review",
			Subjects: []string{mailChunks + ">", mailMetas + ">"}, Retention: jetstream.LimitsPolicy,
			Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, Replicas: 1, MaxAge: cfg.Age, MaxBytes: cfg.Bytes,
			Duplicates: duplicates(cfg.Age), AllowRollup: true, AllowDirect: true,
		},
		foreign: func(found *jetstream.StreamConfig) error {
			for _, subject := range []string{mailChunks + ">", mailMetas + ">"} {
				if !slices.Contains(found.Subjects, subject) {
					return errors.New("it does not take the subjects of the object store " + MailBucket + "; " +
						"delete it, or use another account")
				}
			}
			return nil
		},
		older:  true,
		rights: "the user mailkeeper of deploy/nats/hamlet.conf has them",
	}
	if err := s.open(conn); err != nil {
		return nil, err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("kept mail: %w", err)
	}
	return &MailArchive{s, cfg.Model, encoder}, nil
}

// mailName returns the name of a message's object.
func mailName(model, identity string) string { return model + "/" + identity }

// mailMeta returns the subject of an object's description.
func mailMeta(name string) string { return mailMetas + base64.URLEncoding.EncodeToString([]byte(name)) }

// What the description of an object says beside its name.
const (
	mailTenant   = "tenant"
	mailEncoding = "encoding"
	mailZstd     = "zstd"
)

// Put stores a message and returns when the server has acknowledged it. It tries once, for at
// most two seconds. Errors that trying again will not cure wrap [ErrRefused] or
// [stream.ErrTooLarge]. Whoever tries again gives the same m, in which Put notes what it began.
func (k *MailArchive) Put(ctx context.Context, m *ArchivedMail) error {
	return k.attempt(ctx, func(ctx context.Context) error { return k.put(ctx, m) })
}

// put writes the description first, because the server refuses a second one of the same name.
// If the chunk does not follow, the message is not kept. So a later put of the same m takes a
// description that stands there for its own, and writes the chunk under the id that it gave. If
// the description is another scorer's, nobody reads that chunk.
func (k *MailArchive) put(ctx context.Context, m *ArchivedMail) error {
	chunk := k.encoder.EncodeAll(m.Message, nil)
	digest := sha256.New()
	digest.Write(chunk)
	name := mailName(k.model, m.Identity)
	first := m.begun.name != name
	if first {
		m.begun = mailObject{name: name, chunk: rand.Text()}
	}
	meta, err := json.Marshal(jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{
			Name: name, Metadata: map[string]string{mailTenant: m.Tenant, mailEncoding: mailZstd},
			Opts: &jetstream.ObjectMetaOptions{ChunkSize: 1 << 20},
		},
		Bucket: MailBucket, NUID: m.begun.chunk, Size: uint64(len(chunk)), Chunks: 1,
		Digest: jetstream.GetObjectDigestValue(digest),
	})
	if err != nil {
		return fmt.Errorf("%w: %w", stream.ErrTooLarge, err)
	}
	if int64(len(chunk)) > k.conn.MaxPayload()-maxMailHeader {
		return stream.ErrTooLarge // before its description stands there
	}
	err = k.publish(ctx, &natsgo.Msg{Subject: mailMeta(name), Data: meta}, jetstream.WithExpectLastSequencePerSubject(0))
	stands := isAPI(err, jsWrongLastSequence)
	if err == nil || stands && !first {
		err = k.publish(ctx, &natsgo.Msg{Subject: mailChunks + m.begun.chunk, Data: chunk})
	} else if stands {
		err = nil
	}
	if err == nil {
		m.begun = mailObject{}
	}
	return err
}

// maxMailHeader bounds the headers of a chunk. The server counts them as payload.
const maxMailHeader = 256

// ErrNotArchived: there is no such message. It was not kept, or is kept no longer.
var ErrNotArchived = errors.New("the message was not kept")

// A MailArchiveReader reads what a [MailArchive] of the same model has stored. Its methods may be called
// concurrently.
type MailArchiveReader struct {
	conn    *natsgo.Conn
	js      jetstream.JetStream
	model   string
	decoder *zstd.Decoder
}

// NewMailArchiveReader returns a reader on conn, which the caller closes. An empty model means the
// default. It asks the server for nothing.
func NewMailArchiveReader(conn *natsgo.Conn, model string) (*MailArchiveReader, error) {
	model = cmp.Or(model, DefaultModel)
	if err := stream.CheckModelName(model); err != nil {
		return nil, fmt.Errorf("kept mail: %w", err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("kept mail: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(mostMail))
	if err != nil {
		return nil, fmt.Errorf("kept mail: %w", err)
	}
	return &MailArchiveReader{conn: conn, js: js, model: model, decoder: decoder}, nil
}

// mostMail bounds a message that is read, in bytes.
const mostMail = mail.MaxReduced + 4<<10

// A mail's identity, by mail.Identity.
var identityForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{32}$`)
})

// Get returns the message of this identity, or an error that wraps [ErrNotArchived]. It takes two
// seconds at most. A message that has another identity than its name says is an error.
func (r *MailArchiveReader) Get(ctx context.Context, identity string) (ArchivedMail, error) {
	m := ArchivedMail{Identity: identity}
	if !identityForm().MatchString(identity) {
		return m, fmt.Errorf("kept mail: %q is no identity of a mail: %w", stream.Clip(identity, 64), ErrNotArchived)
	}
	if !r.conn.IsConnected() {
		return m, fmt.Errorf("kept mail: %w", ErrNoServer)
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	before := r.conn.LastError()
	err := r.get(ctx, &m)
	switch last := r.conn.LastError(); {
	case err == nil:
		return m, nil
	case errors.Is(err, jetstream.ErrMsgNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		return m, fmt.Errorf("mail %s: %w", identity, ErrNotArchived)
	case errors.Is(err, natsgo.ErrNoResponders):
		return m, fmt.Errorf("mail %s: the server has no JetStream for this user: %w", identity, ErrNotArchived)
	case errors.Is(err, context.DeadlineExceeded) && last != before && refuses(last, MailStream, "$O."+MailBucket+"."):
		return m, fmt.Errorf("mail %s: the user may not read kept mail: %w; the user mailreader of "+
			"deploy/nats/hamlet.conf may", identity, last)
	}
	return m, fmt.Errorf("mail %s: %w", identity, err)
}

func (r *MailArchiveReader) get(ctx context.Context, m *ArchivedMail) error {
	s, err := r.js.Stream(ctx, MailStream)
	if err != nil {
		return err
	}
	meta, err := s.GetLastMsgForSubject(ctx, mailMeta(mailName(r.model, m.Identity)))
	if err != nil {
		return err
	}
	var info jetstream.ObjectInfo
	if err := json.Unmarshal(meta.Data, &info); err != nil {
		return fmt.Errorf("read its description: %w", err)
	}
	if info.Deleted {
		return ErrNotArchived
	}
	if info.NUID == "" || info.Chunks != 1 || info.Metadata[mailEncoding] != mailZstd {
		return errors.New("another program stored it")
	}
	chunk, err := s.GetLastMsgForSubject(ctx, mailChunks+info.NUID)
	if err != nil {
		return err
	}
	digest := sha256.New()
	digest.Write(chunk.Data)
	if jetstream.GetObjectDigestValue(digest) != info.Digest {
		return errors.New("its bytes do not have the checksum of its description")
	}
	message, err := r.decoder.DecodeAll(chunk.Data, nil)
	if err != nil {
		return fmt.Errorf("decompress it: %w", err)
	}
	parsed := mail.Parse(message)
	if mail.Identity(info.Metadata[mailTenant], &parsed) != m.Identity {
		return errors.New("it is another message than its name says")
	}
	m.Tenant, m.Message, m.Time = info.Metadata[mailTenant], message, meta.Time.UTC()
	return nil
}
