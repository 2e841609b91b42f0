package model

import (
	"fmt"
	"strings"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/report"
)

// A keptJSON is what versions prints with --json.
type keptJSON struct {
	Model      string    `json:"model"`
	Partitions []History `json:"partitions"` // one
	Answers    *Answers  `json:"answers,omitempty"`
}

func (s *session) printVersions(k Kept) error {
	if s.JSON {
		return s.json(keptJSON{k.Model, []History{k.History}, k.Answers})
	}
	table := report.NewTable("version", "saved", "events", "position", "sha256", "")
	for _, v := range k.Versions {
		table.Add(v.Version, cli.Stamp(v.Saved), v.Events, v.Position, v.SHA256[:12], strings.Join(v.Marks(), ", "))
	}
	return s.print(table.String() + k.conclusion())
}

// Marks says what a version is.
func (v *Version) Marks() (marks []string) {
	for _, m := range []struct {
		is   bool
		name string
	}{{v.Head, "head"}, {v.Served, "served"}, {v.Pinned, "pinned"}, {v.Replaced, "replaced"}, {v.Lost, "lost"}} {
		if m.is {
			marks = append(marks, m.name)
		}
	}
	return marks
}

// A change is what pin, rollback and unpin print with --json.
type change struct {
	Model      string   `json:"model"`
	Partitions []served `json:"partitions"` // one; none if what is served cannot be read
}

type served struct {
	Partition int   `json:"partition"` // always 0
	Before    int64 `json:"before"`    // the version that was served; 0: it could not be read
	Version
}

func (s *session) printChange(before, after Kept) error {
	out := change{Model: after.Model}
	if v := after.Find(after.Served); v != nil {
		out.Partitions = append(out.Partitions, served{Before: before.Served, Version: *v})
	}
	if s.JSON {
		return s.json(out)
	}
	text := ""
	for _, p := range out.Partitions {
		text += fmt.Sprintf("answers come from version %d of %s, %d events; before: version %d\n",
			p.Version.Version, cli.Stamp(p.Saved), p.Events, p.Before)
	}
	return s.print(text + after.conclusion())
}

// conclusion says what the pin means.
func (k Kept) conclusion() string {
	text := "Nothing is pinned: answers come from the newest version."
	switch {
	case k.PinLost:
		text = fmt.Sprintf("Version %d was pinned, and the store has lost it: the newest is served. "+
			"Pin another, or `hamlet model unpin`.", k.Pinned)
	case k.Pinned != 0:
		text = "Pinned: learning goes on, and answers come from the pinned version until `hamlet model unpin`."
	}
	if a := k.Answers; a != nil {
		text += fmt.Sprintf("\nThat is what %s would answer. Since %s answers come from model %s, "+
			"until `hamlet model promote --back`.",
			k.Model, cli.Stamp(a.Since), a.Model)
	}
	return text + "\n"
}
