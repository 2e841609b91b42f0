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
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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

// Errors of a [Kept].
var (
	// ErrNoKept: the server does not take mail, and will not until somebody changes it. The
	// text says what to change. Try again after minutes.
	ErrNoKept = errors.New("no object store for mail")

	// ErrKeptTooLarge: the server carries no message of this size. Go on without it.
	ErrKeptTooLarge = errors.New("the message is too large for the object store")
)

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
	conn    *natsgo.Conn
	js      jetstream.JetStream
	cfg     KeptConfig
	encoder *zstd.Encoder
	known   atomic.Bool // the store was right, and nothing has failed since
}

// NewKept returns a Kept on conn, which the caller closes. It asks the server for nothing:
// the first Put makes the store.
func NewKept(conn *natsgo.Conn, cfg KeptConfig) (*Kept, error) {
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	cfg.Bytes = cmp.Or(cfg.Bytes, KeptBytes)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	switch {
	case !modelName.MatchString(cfg.Model):
		return nil, fmt.Errorf("kept mail: model name %q: only a-z, 0-9 and - are allowed", clip(cfg.Model))
	case cfg.Age < time.Minute || cfg.Bytes < 1<<20:
		return nil, fmt.Errorf("kept mail: %v and %d bytes; at least a minute and 1 MiB are wanted", cfg.Age, cfg.Bytes)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("kept mail: %w", err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("kept mail: %w", err)
	}
	return &Kept{conn: conn, js: js, cfg: cfg, encoder: encoder}, nil
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
// most two seconds. Errors that trying again will not cure wrap [ErrNoKept] or
// [ErrKeptTooLarge]. Whoever tries again gives the same m, in which Put notes what it began.
func (k *Kept) Put(ctx context.Context, m *KeptMail) error {
	if !k.conn.IsConnected() {
		return fmt.Errorf("kept mail: %w", ErrNoServer)
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	err := k.put(ctx, m)
	if err == nil {
		return nil
	}
	err = k.explain(err)
	if !errors.Is(err, ErrKeptTooLarge) {
		k.known.Store(false)
	}
	return err
}

// put writes the description first, because the server refuses a second one of the same name.
// If the chunk does not follow, the message is not kept. So a later put of the same m takes a
// description that stands there for its own, and writes the chunk under the id that it gave. If
// the description is another scorer's, nobody reads that chunk.
func (k *Kept) put(ctx context.Context, m *KeptMail) error {
	if err := k.ensure(ctx); err != nil {
		return err
	}
	chunk := k.encoder.EncodeAll(m.Message, nil)
	digest := sha256.New()
	digest.Write(chunk)
	name := keptName(k.cfg.Model, m.Identity)
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
		return fmt.Errorf("%w: %w", ErrKeptTooLarge, err)
	}
	if int64(len(chunk)) > k.conn.MaxPayload()-maxKeptHeader {
		return ErrKeptTooLarge // before its description stands there
	}
	once := []jetstream.PublishOpt{jetstream.WithExpectStream(KeptStream), jetstream.WithRetryAttempts(0)}
	_, err = k.js.Publish(ctx, keptMeta(name), meta, append(once, jetstream.WithExpectLastSequencePerSubject(0))...)
	stands := isAPI(err, jsWrongLastSequence)
	if err == nil || stands && !first {
		_, err = k.js.Publish(ctx, keptChunks+m.begun.chunk, chunk, once...)
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

const jsWrongLastSequence = 10071

// isAPI reports whether err is an answer of JetStream with one of the codes.
func isAPI(err error, codes ...jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode)
}

// errOtherBucket: a stream of the store's name exists that is none.
var errOtherBucket = errors.New("it does not take the subjects of the object store " + KeptBucket)

// explain says what to do about err.
func (k *Kept) explain(err error) error {
	switch {
	case errors.Is(err, ErrKeptTooLarge):
		return err
	case errors.Is(err, natsgo.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return fmt.Errorf("%w: %w", ErrKeptTooLarge, err)
	case errors.Is(err, natsgo.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: the server has no JetStream for this account: %w; switch it on (nats-server -js), or leave out --keep-mail", ErrNoKept, err)
	case errors.Is(err, errOtherBucket), isAPI(err, jsSubjectsOverlap, jsNotThatStream):
		return fmt.Errorf("%w: the stream %s is not hamlet's, or another takes its subjects: %w; delete it, or use another account (--keep-mail-nats)", ErrNoKept, KeptStream, err)
	case isAPI(err, jsInvalidConfig, jsMaxBytesRequired, jsTooManyStreams, jsBytesOverLimit, jsUpdateFailed):
		return fmt.Errorf("%w: the server refuses the stream %s: %w; lower --keep-mail-size, or raise the server's limit", ErrNoKept, KeptStream, err)
	}
	// A request without the right to it gets no answer. The server reports it as the
	// connection's last error.
	if last := k.conn.LastError(); errors.Is(err, context.DeadlineExceeded) && keptDenied(last) {
		return fmt.Errorf("%w: the user has not the rights: %w; the user mailkeeper of deploy/nats/hamlet.conf has them (--keep-mail-nats)", ErrNoKept, last)
	}
	return fmt.Errorf("kept mail: %w", err)
}

// keptDenied reports whether a connection's last error is a refusal of what a Kept or a
// KeptReader does.
func keptDenied(last error) bool {
	operation, subject := violation(last)
	if operation == "Subscription" {
		return strings.HasPrefix(subject, natsgo.InboxPrefix)
	}
	return strings.HasPrefix(subject, "$O."+KeptBucket+".") || strings.Contains(subject+".", "."+KeptStream+".")
}

// ensure makes the store, or gives an existing one its bounds, unless known. The library makes
// stores that refuse new objects when they are full.
func (k *Kept) ensure(ctx context.Context) error {
	if k.known.Load() {
		return nil
	}
	s, err := k.js.Stream(ctx, KeptStream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		_, err = k.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: KeptStream, Description: "mail that hamlet scored, for review",
			Subjects: []string{keptChunks + ">", keptMetas + ">"}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, Replicas: 1, MaxAge: k.cfg.Age, MaxBytes: k.cfg.Bytes,
			Duplicates: min(2*time.Minute, k.cfg.Age), AllowRollup: true, AllowDirect: true,
		})
		if err == nil {
			k.cfg.Log.Info("keep-mail: created the object store", "bucket", KeptBucket, "kept", k.cfg.Age, "bytes", k.cfg.Bytes)
		}
	case err == nil:
		cfg := s.CachedInfo().Config
		for _, subject := range []string{keptChunks + ">", keptMetas + ">"} {
			if !slices.Contains(cfg.Subjects, subject) {
				return errOtherBucket
			}
		}
		if changes := k.amend(&cfg); len(changes) > 0 {
			if _, err = k.js.UpdateStream(ctx, cfg); err == nil {
				k.cfg.Log.Info("keep-mail: changed the object store", "bucket", KeptBucket, "changed", changes, "kept", k.cfg.Age, "bytes", k.cfg.Bytes)
			}
		}
	}
	k.known.Store(err == nil)
	return err
}

// amend changes in cfg what a Kept promises otherwise, and returns the names of the changes.
func (k *Kept) amend(cfg *jetstream.StreamConfig) (changes []string) {
	if cfg.Discard != jetstream.DiscardOld {
		cfg.Discard, cfg.DiscardNewPerSubject = jetstream.DiscardOld, false
		changes = append(changes, "what goes when it is full")
	}
	if cfg.MaxAge != k.cfg.Age {
		cfg.MaxAge, cfg.Duplicates = k.cfg.Age, min(2*time.Minute, k.cfg.Age)
		changes = append(changes, "age")
	}
	if cfg.MaxBytes != k.cfg.Bytes {
		cfg.MaxBytes = k.cfg.Bytes
		changes = append(changes, "bytes")
	}
	if !cfg.AllowDirect {
		cfg.AllowDirect = true
		changes = append(changes, "direct reads")
	}
	return changes
}
