package pinning

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"hamlet/cmd/internal/models"
)

// A keptJSON is what versions prints with --json.
type keptJSON struct {
	Model      string          `json:"model"`
	Partitions []History       `json:"partitions"` // one
	Answers    *models.Answers `json:"answers,omitempty"`
}

// print writes all versions.
func (c *Command) print(w io.Writer, k Kept) error {
	if c.JSON {
		return printJSON(w, keptJSON{k.Model, []History{k.History}, k.Answers})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "version\tsaved\tevents\tposition\tsha256\t")
	for _, v := range k.Versions {
		fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%.12s\t%s\n", v.Version, stamp(v.Saved), v.Events, v.Position, v.SHA256, v.Marks())
	}
	if err := table.Flush(); err != nil {
		return written(err)
	}
	return k.conclude(w)
}

// Marks says what a version is.
func (v Version) Marks() string {
	var marks []string
	for _, m := range []struct {
		is   bool
		name string
	}{{v.Head, "head"}, {v.Served, "served"}, {v.Pinned, "pinned"}, {v.Replaced, "replaced"}, {v.Lost, "lost"}} {
		if m.is {
			marks = append(marks, m.name)
		}
	}
	return strings.Join(marks, ", ")
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
func (c *Command) printChange(w io.Writer, before, after Kept) error {
	out := change{Model: after.Model}
	if v := after.Find(after.Served); v != nil {
		out.Partitions = append(out.Partitions, served{Before: before.Served, Version: *v})
	}
	if c.JSON {
		return printJSON(w, out)
	}
	for _, p := range out.Partitions {
		_, err := fmt.Fprintf(w, "answers come from version %d of %s, %d events; before: version %d\n",
			p.Version.Version, stamp(p.Saved), p.Events, p.Before)
		if err != nil {
			return written(err)
		}
	}
	return after.conclude(w)
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
		text += fmt.Sprintf("\nThat is what %s would answer. Since %s answers come from model %s, until `hamlet model promote --back`.", k.Model, stamp(a.Since), a.Model)
	}
	_, err := fmt.Fprintln(w, text)
	return written(err)
}

func printJSON[T keptJSON | change](w io.Writer, v T) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("versions in JSON: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return written(err)
}

// stamp writes a time of saving.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// written says what an error in writing was about.
func written(err error) error {
	if err != nil {
		return fmt.Errorf("write the versions: %w", err)
	}
	return nil
}
