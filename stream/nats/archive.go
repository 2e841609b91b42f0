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
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
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
			Subjects: []string{mailChunks + ">", mailMetas + ">"}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, Replicas: 1, MaxAge: cfg.Age, MaxBytes: cfg.Bytes,
			Duplicates: duplicates(cfg.Age), AllowRollup: true, AllowDirect: true,
		},
		// The library makes stores that refuse new objects when they are full.
		amend: func(a *amendment) error {
			for _, subject := range []string{mailChunks + ">", mailMetas + ">"} {
				if !slices.Contains(a.Subjects, subject) {
					return errors.New("it does not take the subjects of the object store " + MailBucket + "; " +
						"delete it, or use another account")
				}
			}
			a.discards(jetstream.DiscardOld)
			a.keeps(cfg.Age, cfg.Bytes)
			amend(a, &a.AllowDirect, true, "direct reads")
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
		Bucket: MailBucket, NUID: m.begun.chunk, Size: uint64(len(chunk)), Chunks: 1, Digest: jetstream.GetObjectDigestValue(digest),
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
