package nats

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/klauspost/compress/zstd"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
	"hamlet/stream/mail"
)

// ErrNotKept: there is no such message. It was not kept, or is kept no longer.
var ErrNotKept = errors.New("the message was not kept")

// A KeptReader reads what a [Kept] of the same model has stored. Its methods may be called
// concurrently.
type KeptReader struct {
	conn    *natsgo.Conn
	js      jetstream.JetStream
	model   string
	decoder *zstd.Decoder
}

// NewKeptReader returns a reader on conn, which the caller closes. An empty model means the
// default. It asks the server for nothing.
func NewKeptReader(conn *natsgo.Conn, model string) (*KeptReader, error) {
	model = cmp.Or(model, DefaultModel)
	if err := stream.CheckModelName(model); err != nil {
		return nil, fmt.Errorf("kept mail: %w", err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("kept mail: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(mostKept))
	if err != nil {
		return nil, fmt.Errorf("kept mail: %w", err)
	}
	return &KeptReader{conn: conn, js: js, model: model, decoder: decoder}, nil
}

// mostKept bounds a message that is read, in bytes.
const mostKept = mail.MaxReduced + 4<<10

// A mail's identity, by mail.Identity.
var identityForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Get returns the message of this identity, or an error that wraps [ErrNotKept]. It takes two
// seconds at most. A message that has another identity than its name says is an error.
func (r *KeptReader) Get(ctx context.Context, identity string) (KeptMail, error) {
	m := KeptMail{Identity: identity}
	if !identityForm.MatchString(identity) {
		return m, fmt.Errorf("kept mail: %q is no identity of a mail: %w", stream.Clip(identity, 64), ErrNotKept)
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
		return m, fmt.Errorf("mail %s: %w", identity, ErrNotKept)
	case errors.Is(err, natsgo.ErrNoResponders):
		return m, fmt.Errorf("mail %s: the server has no JetStream for this user: %w", identity, ErrNotKept)
	case errors.Is(err, context.DeadlineExceeded) && last != before && refuses(last, KeptStream, "$O."+KeptBucket+"."):
		return m, fmt.Errorf("mail %s: the user may not read kept mail: %w; the user mailreader of deploy/nats/hamlet.conf may", identity, last)
	}
	return m, fmt.Errorf("mail %s: %w", identity, err)
}

func (r *KeptReader) get(ctx context.Context, m *KeptMail) error {
	s, err := r.js.Stream(ctx, KeptStream)
	if err != nil {
		return err
	}
	meta, err := s.GetLastMsgForSubject(ctx, keptMeta(keptName(r.model, m.Identity)))
	if err != nil {
		return err
	}
	var info jetstream.ObjectInfo
	if err := json.Unmarshal(meta.Data, &info); err != nil {
		return fmt.Errorf("read its description: %w", err)
	}
	if info.Deleted {
		return ErrNotKept
	}
	if info.NUID == "" || info.Chunks != 1 || info.Metadata[keptEncoding] != keptZstd {
		return errors.New("another program stored it")
	}
	chunk, err := s.GetLastMsgForSubject(ctx, keptChunks+info.NUID)
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
	if mail.Identity(info.Metadata[keptTenant], &parsed) != m.Identity {
		return errors.New("it is another message than its name says")
	}
	m.Tenant, m.Message, m.Time = info.Metadata[keptTenant], message, meta.Time.UTC()
	return nil
}
