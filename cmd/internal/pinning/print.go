package pinning

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// print writes all versions.
func (c *Command) print(w io.Writer, k Kept) error {
	if c.JSON {
		return printJSON(w, k)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "partition\tversion\tsaved\tevents\tposition\tsha256\t")
	for _, p := range k.Partitions {
		for _, v := range p.Versions {
			fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%d\t%.12s\t%s\n", p.Name(), v.Version, stamp(v.Saved), v.Events, v.Position, v.SHA256, v.Marks())
		}
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
	}{{v.Head, "head"}, {v.Served, "served"}, {v.Pinned, "pinned"}, {v.Replaced, "replaced"}} {
		if m.is {
			marks = append(marks, m.name)
		}
	}
	return strings.Join(marks, ", ")
}

// A change is what pin, rollback and unpin print with --json.
type change struct {
	Model      string            `json:"model"`
	Partitions []partitionChange `json:"partitions"`
}

type partitionChange struct {
	Partition int   `json:"partition"`
	Before    int64 `json:"before"` // the version that was served; 0: it could not be read
	Version
}

// printChange writes what each partition serves after a change.
func (c *Command) printChange(w io.Writer, before, after Kept) error {
	was := map[int]int64{}
	for _, p := range before.Partitions {
		was[p.Partition] = p.Served
	}
	out := change{Model: after.Model}
	for _, p := range after.Partitions {
		if v := p.Find(p.Served); v != nil {
			out.Partitions = append(out.Partitions, partitionChange{p.Partition, was[p.Partition], *v})
		}
	}
	if c.JSON {
		return printJSON(w, out)
	}
	for _, p := range out.Partitions {
		_, err := fmt.Fprintf(w, "partition %d: answers come from version %d of %s, %d events; before: version %d\n",
			p.Partition, p.Version.Version, stamp(p.Saved), p.Events, p.Before)
		if err != nil {
			return written(err)
		}
	}
	return after.conclude(w)
}

// conclude says what the pins mean.
func (k Kept) conclude(w io.Writer) error {
	pinned := 0
	for _, p := range k.Partitions {
		switch {
		case p.PinLost:
			_, err := fmt.Fprintf(w, "partition %d: version %d was pinned, and redis has lost it: the newest is served. "+
				"Pin another, or `hamlet model unpin`\n", p.Partition, p.Pinned)
			if err != nil {
				return written(err)
			}
		case p.Pinned != 0:
			pinned++
		}
	}
	text := "Nothing is pinned: answers come from the newest version."
	switch {
	case pinned == len(k.Partitions):
		text = "Pinned: learning goes on, and answers come from the pinned version until `hamlet model unpin`."
	case pinned > 0:
		text = fmt.Sprintf("%d of %d partitions are pinned until `hamlet model unpin`; the others answer from their newest version.", pinned, len(k.Partitions))
	}
	if a := k.Answers; a != nil {
		text += fmt.Sprintf("\nThat is what %s would answer. Since %s answers come from model %s, until `hamlet model promote --back`.", k.Model, stamp(a.Since), a.Model)
	}
	_, err := fmt.Fprintln(w, text)
	return written(err)
}

func printJSON[T Kept | change](w io.Writer, v T) error {
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
