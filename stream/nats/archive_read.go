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
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(mostMail))
	if err != nil {
		return nil, fmt.Errorf("kept mail: %w", err)
	}
	return &MailArchiveReader{conn: conn, js: js, model: model, decoder: decoder}, nil
}

// mostMail bounds a message that is read, in bytes.
const mostMail = mail.MaxReduced + 4<<10

// A mail's identity, by mail.Identity.
var identityForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Get returns the message of this identity, or an error that wraps [ErrNotArchived]. It takes two
// seconds at most. A message that has another identity than its name says is an error.
func (r *MailArchiveReader) Get(ctx context.Context, identity string) (ArchivedMail, error) {
	m := ArchivedMail{Identity: identity}
	if !identityForm.MatchString(identity) {
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
		return m, fmt.Errorf("mail %s: the user may not read kept mail: %w; the user mailreader of deploy/nats/hamlet.conf may", identity, last)
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
