package models

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hamlet/cmd/internal/sequencer"
)

type export struct {
	From      string `arg:"" name:"model" help:"MODEL, or MODEL@VERSION."`
	File      string `arg:"" name:"file" help:"The file to write."`
	Partition *int   `help:"This partition alone." placeholder:"N" env:"-"`
}

// Help is what kong prints below the flags.
func (export) Help() string {
	return `Examples:

  hamlet model export spam spam.tar              all partitions
  hamlet model export spam@1208 old.tar          an earlier version
  hamlet model verify spam.tar
  hamlet model import spam.tar --as copy

The file is a tar archive. Of each partition it has a manifest, with configuration,
position in the log and hashes, and the model as eval --save writes it. Only its owner
may read it: a model is a statistic of mail. Equal checkpoints make equal files.`
}

// A moved is a partition that was written to a file, or from a file to Redis.
type moved struct {
	Partition int               `json:"partition"`
	Version   int64             `json:"version"`          // in Redis
	Before    int64             `json:"before,omitempty"` // the version that import replaced
	Events    uint64            `json:"events"`
	Position  int64             `json:"position"`
	Offsets   sequencer.Offsets `json:"offsets,omitempty"` // of a model of several partitions
	Saved     time.Time         `json:"saved"`
	Bytes     int               `json:"bytes"`
	SHA256    string            `json:"sha256"`
}

func (l *loaded) moved() moved {
	return moved{Partition: l.partition, Version: l.version, Events: l.Events, Position: l.Position.Next, Offsets: l.offsets, Saved: l.Saved,
		Bytes: len(l.Model), SHA256: l.sha256()}
}

func (c *export) run(ctx context.Context, s *Session) error {
	all, err := s.load(ctx, c.From, c.Partition)
	if err != nil {
		return err
	}
	if err := writeFile(c.File, all); err != nil {
		return fmt.Errorf("export %s to %s: %w", c.From, c.File, err)
	}
	var partitions []moved
	var b strings.Builder
	for i := range all {
		m := all[i].moved()
		partitions = append(partitions, m)
		fmt.Fprintf(&b, "%s, version %d: %d events up to offset %s, %s, sha256 %s\n",
			partitionName(m.Partition, m.Offsets), m.Version, m.Events, m.Offsets.Position(m.Position), megabytes(int64(m.Bytes)), m.SHA256)
	}
	if s.JSON {
		return s.json(struct {
			Model      string  `json:"model"`
			File       string  `json:"file"`
			Partitions []moved `json:"partitions"`
		}{c.From, c.File, partitions})
	}
	return s.print(b.String())
}
