package model

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/advice"
	"hamlet/cmd/internal/show/report"
	"hamlet/state"
)

type list struct {
	Models []string `arg:"" optional:"" name:"model" help:"Only these."`
}

// Help is what kong prints below the flags.
func (list) Help() string {
	return `Examples:

  hamlet model list                        all models that are kept
  hamlet model list spam clean             these
  hamlet model list --json | jq -r '.models[].model'

A line is the newest version of a model. The age is that of its saving; a learner
saves every few seconds while there are events. To find all models it looks at every
key of the database, and needs the right to SCAN (deploy/redis/users.acl). A model that
hamlet 0.1.0 learnt from several partitions has a line without numbers, and its reason below.`
}

// A listed is one model: an element of what --json prints.
type listed struct {
	Model      string          `json:"model"`
	Events     uint64          `json:"events"`
	Bytes      int64           `json:"bytes"`
	Partitions []listedVersion `json:"partitions"`        // one, or none before the first save
	Answers    *Answers        `json:"answers,omitempty"` // another model that answers in its place
	Error      string          `json:"error,omitempty"`   // of a model of several partitions: nothing else is known
}

// A listedVersion is the newest version.
type listedVersion struct {
	Partition int       `json:"partition"` // always 0
	Version   int64     `json:"version"`
	Saved     time.Time `json:"saved"`
	Events    uint64    `json:"events"`
	Bytes     int64     `json:"bytes"` // of the model
	Numerics  string    `json:"numerics"`
	Kept      int       `json:"kept"`             // versions
	Pinned    int64     `json:"pinned,omitempty"` // the version that an operator pinned
}

func (c *list) run(ctx context.Context, s *session) error {
	names := c.Models
	if len(names) == 0 {
		store, err := s.store(ctx, s.Model)
		if err != nil {
			return err
		}
		if names, err = store.Models(ctx); err != nil {
			return err
		}
	}
	all := []listed{}
	for _, name := range names {
		l, err := s.list(ctx, name)
		if errors.Is(err, state.ErrPartitions) {
			err = fmt.Errorf("%w; %s", advice.Add(err), OldKeys(name))
			if len(c.Models) == 0 { // the others can be listed
				l.Error, err = err.Error(), nil
			}
		}
		if err != nil {
			return err
		}
		if len(l.Partitions) == 0 && len(c.Models) > 0 {
			return None(name)
		}
		all = append(all, l)
	}
	if s.JSON {
		return s.json(struct {
			Models []listed `json:"models"`
		}{all})
	}
	if len(all) == 0 {
		return s.print("There is no model yet: a learner saves one with its first event.\n")
	}
	return s.printList(all, time.Now())
}

func (s *session) list(ctx context.Context, name string) (listed, error) {
	l := listed{Model: name, Partitions: []listedVersion{}}
	store, err := s.store(ctx, name)
	if err != nil {
		return l, err
	}
	k, err := Read(ctx, store, name)
	if _, none := errors.AsType[*NoneError](err); none {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	v := &k.Versions[0]
	l.Events, l.Bytes, l.Answers = v.Events, v.Bytes, k.Answers
	l.Partitions = []listedVersion{{
		Version: v.Version, Saved: v.Saved, Events: v.Events, Bytes: v.Bytes, Numerics: v.numerics, Kept: len(k.Versions),
		Pinned: k.Pinned,
	}}
	return l, nil
}

func (s *session) printList(all []listed, now time.Time) error {
	table := report.NewTable("model", "version", "events", "age", "size", "numerics", "kept", "pinned")
	for _, l := range all {
		if l.Error != "" {
			table.Add(l.Model, "–", "–", "–", "–", "–", "–", "–")
		}
		for _, p := range l.Partitions {
			pinned := "–"
			if p.Pinned != 0 {
				pinned = strconv.FormatInt(p.Pinned, 10)
			}
			table.Add(l.Model, p.Version, p.Events, age(p.Saved, now), cli.Megabytes(p.Bytes), p.Numerics, p.Kept, pinned)
		}
	}
	text := table.String()
	for _, l := range all {
		if l.Error != "" {
			text += fmt.Sprintf("Model %s is not read: %s\n", l.Model, l.Error)
		}
		if a := l.Answers; a != nil {
			text += fmt.Sprintf("Answers of %s come from model %s since %s.\n", l.Model, a.Model, cli.Stamp(a.Since))
		}
	}
	return s.print(text)
}

// age writes how long ago a time was, in its largest unit.
func age(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
