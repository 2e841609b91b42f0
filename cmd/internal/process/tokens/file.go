package tokens

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/secretfile"
)

// Bounds of a file, and of a token in bytes. A longer token is unknown.
const (
	maxFile   = 16 << 20
	maxSecret = 512
)

// A File holds the tokens of the operator's file as it was last read without a mistake. It
// may be used concurrently.
type File struct {
	path string
	log  *slog.Logger
	live *secretfile.Live[table]
}

// A table finds the rights of tokens by their hashes.
type table map[[sha256.Size]byte]*Rights

// Open reads a file. Its errors name the line.
func Open(path string, log *slog.Logger) (*File, error) {
	live, err := secretfile.Open(func() (table, error) { return read(path) }, path)
	if err != nil {
		return nil, err
	}
	return &File{path, log, live}, nil
}

// Find returns the rights of a token, and whether the file has it. It compares hashes, so the
// time that it takes tells nobody what a token looks like.
func (f *File) Find(secret string) (*Rights, bool) {
	if f == nil || secret == "" || len(secret) > maxSecret {
		return nil, false
	}
	rights, ok := (*f.live.Get())[sha256.Sum256([]byte(secret))]
	return rights, ok
}

// Watch reads the file again on every SIGHUP, until ctx ends: meanwhile that signal does
// not end the program. A file with a mistake changes nothing, and the log says which. A nil
// File waits for ctx alone.
func (f *File) Watch(ctx context.Context) error {
	if f == nil {
		<-ctx.Done()
		return nil
	}
	hangups, stop := cli.TakeHangups()
	defer stop()
	f.live.Watch(ctx, nil, hangups, f.took)
	return nil
}

// Reload reads the file again, as a SIGHUP does.
func (f *File) Reload() { f.took(true, f.live.Reload()) }

// took says what came of reading the file again.
func (f *File) took(_ bool, err error) {
	if err != nil {
		f.log.Error("the tokens stay as they were", "error", err)
		return
	}
	f.log.Info("tokens read again", "file", f.path)
}

func read(path string) (table, error) {
	data, err := secretfile.Read(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	t, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("tokens of %s: %w", path, err)
	}
	return t, nil
}

// A Secret is the hash of a token or a password. The zero value is nobody's.
type Secret struct {
	sum [sha256.Size]byte
	set bool
}

// NewSecret returns the hash of a text. That of an empty text is nobody's.
func NewSecret(text string) Secret { return Secret{sha256.Sum256([]byte(text)), text != ""} }

// Set reports whether there is a secret.
func (s Secret) Set() bool { return s.set }

// Is reports whether a text is the secret. How long that takes tells nothing of the secret.
func (s Secret) Is(text string) bool {
	sum := sha256.Sum256([]byte(text))
	return s.set && subtle.ConstantTimeCompare(sum[:], s.sum[:]) == 1
}

// Known are all tokens that an address takes.
type Known struct {
	Operator Secret // may say everything
	File     *File  // nil: none
	Tenants  Tenants
	Source   string // of the events that come with a tenant's token
}

// Tenants know the tokens of tenants.
type Tenants interface {
	OfToken(token string) (tenant string, ok bool)
}

// operator are the rights that come with Known.Operator.
var operator = Everything(ByOperator)

// Sender returns what the sender of a request may say: the header Authorization has the word
// Bearer, and a token. It is nil if nobody knows that token.
func (k *Known) Sender(r *http.Request) *Rights {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil
	}
	if k.Operator.Is(token) {
		return operator
	}
	if rights, ok := k.File.Find(token); ok {
		return rights
	}
	if k.Tenants != nil {
		if tenant, ok := k.Tenants.OfToken(token); ok && tenant != "" {
			return OfTenant(tenant, k.Source)
		}
	}
	return nil
}
