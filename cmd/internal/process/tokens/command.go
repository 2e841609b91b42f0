package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"hamlet/cmd/internal/process/cli"
)

// A Command is hamlet token.
type Command struct {
	New NewCommand `cmd:"" help:"Make a token, and its line for the file of --tokens."`
}

// A NewCommand is hamlet token new.
type NewCommand struct {
	Name      string   `arg:"" help:"Name of the token, in metrics: a–z, 0–9, dot, - and _."`
	Source    []string `help:"Sources that its events may name; \"*\": every one. Default: the token's name." placeholder:"NAME" env:"-"`
	Tenant    []string `help:"Tenants that it is for; \"*\": every one." default:"default" placeholder:"NAME" env:"-"`
	Action    []string `help:"What it may do: learn, relearn, unlearn, correct, score." default:"learn" placeholder:"ACTION" env:"-"`
	AnySource bool     `help:"It may withdraw and correct what other sources taught, and say that a label was asked for: sampled." env:"-"`
}

// Help is shown by kong below the flags.
func (NewCommand) Help() string {
	return `The token goes to stderr, once: nothing keeps it. Its line, with a hash in place of
the token, goes to stdout:

  hamlet token new abuse-desk --action learn,unlearn >> tokens.yaml
  kill -HUP $(pidof ingest)                        the services read it again
  curl -H "Authorization: Bearer TOKEN" …

An event without a source, or tenant, gets that of a token with one alone. An event
that names another is answered 403. Unlearn, relearn and correct are about events
of the same source, unless the token has --any-source. Score is for gateways and up.
To revoke a token delete its line.`
}

// Run makes a token.
func (c *NewCommand) Run(stdio cli.IO) error {
	rights := Rights{Name: c.Name, Sources: c.Source, Tenants: c.Tenant, Actions: c.Action, AnySource: c.AnySource}
	if len(rights.Sources) == 0 {
		rights.Sources = []string{c.Name}
	}
	secret, line, err := New(rights)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if _, err := stdio.Out.Write(line); err != nil {
		return fmt.Errorf("print the token's line: %w", err)
	}
	if _, err := fmt.Fprintf(stdio.Err, "token of %s: %s\n", c.Name, secret); err != nil {
		return fmt.Errorf("print the token: %w", err)
	}
	return nil
}

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
