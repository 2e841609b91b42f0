package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// New returns a token of 32 random bytes, as text of 43 characters, and its line for a file,
// which can be read again.
func New(r Rights) (secret string, text []byte, err error) {
	if err := CheckRights(&r); err != nil {
		return "", nil, err
	}
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return "", nil, err
	}
	secret = base64.RawURLEncoding.EncodeToString(b)
	if text, err = line(&r, sha256.Sum256([]byte(secret))); err != nil {
		return "", nil, err
	}
	if _, err := parse(text); err != nil {
		return "", nil, fmt.Errorf("the token's %w", err)
	}
	return secret, text, nil
}
