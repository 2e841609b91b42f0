package models

import (
	"context"
	"fmt"
	"strings"

	"hamlet/cmd/internal/cli"
)

type verify struct {
	Models []string `arg:"" optional:"" name:"model" help:"MODEL, MODEL@VERSION or FILE."`
}

// Help is what kong prints below the flags.
func (verify) Help() string {
	return `Examples:

  hamlet model verify                    the newest version
  hamlet model verify spam spam@1208     several
  hamlet model verify spam.tar ./old     files, of export or of eval --save

Every checksum is compared. The model is decoded, and encoded again to the same bytes.
The SHA-256 is that of the model's bytes: equal logs make equal ones. A name of a–z, 0–9
and - is a model in Redis, anything else a file. The exit status is 1 if one is not whole.`
}

// A verified says how a model is.
type verified struct {
	Name      string `json:"name"`              // as it was given
	Partition int    `json:"partition"`         // always 0
	Version   int64  `json:"version,omitempty"` // in Redis
	Events    uint64 `json:"events"`
	Bytes     int    `json:"bytes"`
	Numerics  string `json:"numerics"`
	SHA256    string `json:"sha256"`
	Whole     bool   `json:"whole"`
	Error     string `json:"error,omitempty"`
}

func (c *verify) run(ctx context.Context, s *Session) error {
	names := s.named(c.Models)
	var all []verified
	bad := 0
	for _, name := range names {
		l, err := s.load(ctx, name)
		if cli.Status(err) == cli.StatusUsage {
			return err
		}
		if err != nil {
			bad++
			all = append(all, verified{Name: name, Error: err.Error()})
			continue
		}
		v := verified{Name: name, Version: l.version, Events: l.Events, Bytes: len(l.Model), Numerics: l.Numerics, SHA256: l.sha256()}
		if err = l.decode(); err == nil {
			err = l.encodesAlike()
		}
		if v.Whole = err == nil; err != nil {
			bad++
			v.Error = err.Error()
		}
		all = append(all, v)
	}
	if bad > 0 && len(all) == 1 {
		return fmt.Errorf("verify %s: %s", all[0].Name, all[0].Error)
	}
	err := c.print(s, all)
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d of %d models cannot be verified", bad, len(all))
	}
	return err
}

func (c *verify) print(s *Session, all []verified) error {
	if s.JSON {
		return s.json(struct {
			Models []verified `json:"models"`
		}{all})
	}
	var b strings.Builder
	for i := range all {
		v := &all[i]
		if !v.Whole {
			fmt.Fprintf(&b, "%s: %s\n", v.Name, v.Error)
			continue
		}
		version := ""
		if v.Version != 0 {
			version = fmt.Sprintf(", version %d", v.Version)
		}
		fmt.Fprintf(&b, "%s%s: whole, %d events, %s, numerics %s, sha256 %s\n",
			v.Name, version, v.Events, megabytes(int64(v.Bytes)), v.Numerics, v.SHA256)
	}
	return s.print(b.String())
}
