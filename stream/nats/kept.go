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
	KeptBucket = "hamlet-mail"
	KeptStream = "OBJ_" + KeptBucket // the stream behind it

	keptMetas  = "$O." + KeptBucket + ".M."
	keptChunks = "$O." + KeptBucket + ".C."
)

// KeptBytes is how much mail is kept by default.
const KeptBytes = 512 << 20

// A KeptMail is a message that was scored.
type KeptMail struct {
	Identity string // by mail.Identity
	Tenant   string
	Message  []byte    // reduced
	Time     time.Time // when it was kept; only a KeptReader sets it

	begun keptObject // by a Put that failed; only Put reads and writes it
}

// A keptObject is an object whose description may stand there, maybe without its chunk.
type keptObject struct {
	name  string // of the object, and so of the model; empty: there is none
	chunk string // id of its chunk
}

// A KeptConfig says how long mail is kept, and how much. Zero fields mean the defaults.
type KeptConfig struct {
	Model string        // default DefaultModel
	Age   time.Duration // at least a minute
	Bytes int64         // of the store, for all models; default KeptBytes
	Log   *slog.Logger  // nil: silent
}

// A Kept writes mail to the object store KeptBucket, for all models: the object
// <model>/<identity> is the reduced message, compressed by zstd. The store keeps Age and
// Bytes at most, and the oldest mail goes first. The Kept that began last sets both. A
// message that was kept, or that somebody has deleted, is not stored again within Age.
//
// A Kept writes the two messages of an object itself: its description and one chunk
// (nats-architecture-and-design, ADR-20). So it needs no right to read, as Put of the library does.
// The methods may be called concurrently.
type Kept struct {
	*store
	model   string
	encoder *zstd.Encoder
}

// NewKept returns a Kept on conn, which the caller closes. It asks the server for nothing:
// the first Put makes the store.
func NewKept(conn *natsgo.Conn, cfg KeptConfig) (*Kept, error) {
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	cfg.Bytes = cmp.Or(cfg.Bytes, KeptBytes)
	if err := stream.CheckModelName(cfg.Model); err != nil {
		return nil, fmt.Errorf("kept mail: %w", err)
	}
	if cfg.Age < time.Minute || cfg.Bytes < 1<<20 {
		return nil, fmt.Errorf("kept mail: %v and %d bytes; at least a minute and 1 MiB are wanted", cfg.Age, cfg.Bytes)
	}
	s := &store{
		what: "kept mail", log: cfg.Log, prefix: "$O." + KeptBucket + ".", none: errors.New("no object store for mail"),
		want: jetstream.StreamConfig{
			Name: KeptStream, Description: "mail that hamlet scored, for review",
			Subjects: []string{keptChunks + ">", keptMetas + ">"}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, Replicas: 1, MaxAge: cfg.Age, MaxBytes: cfg.Bytes,
			Duplicates: duplicates(cfg.Age), AllowRollup: true, AllowDirect: true,
		},
		// The library makes stores that refuse new objects when they are full.
		amend: func(a *amendment) error {
			for _, subject := range []string{keptChunks + ">", keptMetas + ">"} {
				if !slices.Contains(a.Subjects, subject) {
					return errors.New("it does not take the subjects of the object store " + KeptBucket + "; " +
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
	return &Kept{s, cfg.Model, encoder}, nil
}

// keptName returns the name of a message's object.
func keptName(model, identity string) string { return model + "/" + identity }

// keptMeta returns the subject of an object's description.
func keptMeta(name string) string { return keptMetas + base64.URLEncoding.EncodeToString([]byte(name)) }

// What the description of an object says beside its name.
const (
	keptTenant   = "tenant"
	keptEncoding = "encoding"
	keptZstd     = "zstd"
)

// Put stores a message and returns when the server has acknowledged it. It tries once, for at
// most two seconds. Errors that trying again will not cure wrap [ErrRefused] or
// [stream.ErrTooLarge]. Whoever tries again gives the same m, in which Put notes what it began.
func (k *Kept) Put(ctx context.Context, m *KeptMail) error {
	return k.attempt(ctx, func(ctx context.Context) error { return k.put(ctx, m) })
}

// put writes the description first, because the server refuses a second one of the same name.
// If the chunk does not follow, the message is not kept. So a later put of the same m takes a
// description that stands there for its own, and writes the chunk under the id that it gave. If
// the description is another scorer's, nobody reads that chunk.
func (k *Kept) put(ctx context.Context, m *KeptMail) error {
	chunk := k.encoder.EncodeAll(m.Message, nil)
	digest := sha256.New()
	digest.Write(chunk)
	name := keptName(k.model, m.Identity)
	first := m.begun.name != name
	if first {
		m.begun = keptObject{name: name, chunk: rand.Text()}
	}
	meta, err := json.Marshal(jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{
			Name: name, Metadata: map[string]string{keptTenant: m.Tenant, keptEncoding: keptZstd},
			Opts: &jetstream.ObjectMetaOptions{ChunkSize: 1 << 20},
		},
		Bucket: KeptBucket, NUID: m.begun.chunk, Size: uint64(len(chunk)), Chunks: 1, Digest: jetstream.GetObjectDigestValue(digest),
	})
	if err != nil {
		return fmt.Errorf("%w: %w", stream.ErrTooLarge, err)
	}
	if int64(len(chunk)) > k.conn.MaxPayload()-maxKeptHeader {
		return stream.ErrTooLarge // before its description stands there
	}
	err = k.publish(ctx, &natsgo.Msg{Subject: keptMeta(name), Data: meta}, jetstream.WithExpectLastSequencePerSubject(0))
	stands := isAPI(err, jsWrongLastSequence)
	if err == nil || stands && !first {
		err = k.publish(ctx, &natsgo.Msg{Subject: keptChunks + m.begun.chunk, Data: chunk})
	} else if stands {
		err = nil
	}
	if err == nil {
		m.begun = keptObject{}
	}
	return err
}

// maxKeptHeader bounds the headers of a chunk. The server counts them as payload.
const maxKeptHeader = 256
