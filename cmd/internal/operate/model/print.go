package model

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"hamlet/cmd/internal/process/cli"
)

// A keptJSON is what versions prints with --json.
type keptJSON struct {
	Model      string    `json:"model"`
	Partitions []History `json:"partitions"` // one
	Answers    *Answers  `json:"answers,omitempty"`
}

// printVersions writes all versions.
func (s *session) printVersions(k Kept) error {
	if s.JSON {
		return s.json(keptJSON{k.Model, []History{k.History}, k.Answers})
	}
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "version\tsaved\tevents\tposition\tsha256\t")
	for _, v := range k.Versions {
		fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%.12s\t%s\n", v.Version, cli.Stamp(v.Saved), v.Events, v.Position, v.SHA256, strings.Join(v.Marks(), ", "))
	}
	if err := table.Flush(); err != nil {
		return cli.Written(err)
	}
	return k.conclude(s.out)
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

// printChange writes what is served after a change.
func (s *session) printChange(before, after Kept) error {
	out := change{Model: after.Model}
	if v := after.Find(after.Served); v != nil {
		out.Partitions = append(out.Partitions, served{Before: before.Served, Version: *v})
	}
	if s.JSON {
		return s.json(out)
	}
	for _, p := range out.Partitions {
		_, err := fmt.Fprintf(s.out, "answers come from version %d of %s, %d events; before: version %d\n",
			p.Version.Version, cli.Stamp(p.Saved), p.Events, p.Before)
		if err != nil {
			return cli.Written(err)
		}
	}
	return after.conclude(s.out)
}

// conclude says what the pin means.
func (k Kept) conclude(w io.Writer) error {
	text := "Nothing is pinned: answers come from the newest version."
	switch {
	case k.PinLost:
		text = fmt.Sprintf("Version %d was pinned, and redis has lost it: the newest is served. Pin another, or `hamlet model unpin`.", k.Pinned)
	case k.Pinned != 0:
		text = "Pinned: learning goes on, and answers come from the pinned version until `hamlet model unpin`."
	}
	if a := k.Answers; a != nil {
		text += fmt.Sprintf("\nThat is what %s would answer. Since %s answers come from model %s, until `hamlet model promote --back`.", k.Model, cli.Stamp(a.Since), a.Model)
	}
	_, err := fmt.Fprintln(w, text)
	return cli.Written(err)
}
