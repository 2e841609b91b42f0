package models

import (
	"context"
	"fmt"
	"time"
)

type export struct {
	From string `arg:"" name:"model" help:"MODEL, or MODEL@VERSION."`
	File string `arg:"" name:"file" help:"The file to write."`
}

// Help is what kong prints below the flags.
func (export) Help() string {
	return `Examples:

  hamlet model export spam spam.tar              the newest version
  hamlet model export spam@1208 old.tar          an earlier version
  hamlet model verify spam.tar
  hamlet model import spam.tar --as copy

The file is a tar archive. It has a manifest, with configuration, position in the log
and hashes, and the model as eval --save writes it. Only its owner
may read it: a model is a statistic of mail. Equal checkpoints make equal files.`
}

// A moved is a model that was written to a file, or from a file to Redis.
type moved struct {
	Partition int       `json:"partition"`        // always 0
	Version   int64     `json:"version"`          // in Redis
	Before    int64     `json:"before,omitempty"` // the version that import replaced
	Events    uint64    `json:"events"`
	Position  int64     `json:"position"`
	Saved     time.Time `json:"saved"`
	Bytes     int       `json:"bytes"`
	SHA256    string    `json:"sha256"`
}

func (l *loaded) moved() moved {
	return moved{Version: l.version, Events: l.Events, Position: l.Position.Next, Saved: l.Saved,
		Bytes: len(l.Model), SHA256: l.sha256()}
}

func (c *export) run(ctx context.Context, s *Session) error {
	l, err := s.load(ctx, c.From)
	if err != nil {
		return err
	}
	if err := writeFile(c.File, l.Checkpoint); err != nil {
		return fmt.Errorf("export %s to %s: %w", c.From, c.File, err)
	}
	m := l.moved()
	if s.JSON {
		return s.json(movedModel{c.From, c.File, []moved{m}})
	}
	return s.print(fmt.Sprintf("version %d: %d events up to offset %d, %s, sha256 %s\n", m.Version, m.Events, m.Position, megabytes(int64(m.Bytes)), m.SHA256))
}

// A movedModel is what export and import print with --json.
type movedModel struct {
	Model      string  `json:"model"`
	File       string  `json:"file"`
	Partitions []moved `json:"partitions"` // one
}
