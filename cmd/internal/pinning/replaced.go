package pinning

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A replaced says what became of the model: what --json prints.
type replaced struct {
	Partition int      `json:"partition"` // always 0
	Before    int64    `json:"before"`    // the version that was the newest
	Version   int64    `json:"version"`   // that took its place
	Events    uint64   `json:"events"`
	Position  int64    `json:"position"`
	Done      bool     `json:"done_before"`               // nothing was replaced: the configurations are the same
	Without   []string `json:"without_sources,omitempty"` // that the model leaves out
}

// printReplaced says what became of the model, and what is left to do.
func (c *Command) printReplaced(w io.Writer, p replaced) error {
	if c.JSON {
		b, err := json.Marshal(struct {
			Model      string     `json:"model"`
			By         string     `json:"by"`
			Partitions []replaced `json:"partitions"` // one
		}{c.Model, c.Replace.By, []replaced{p}})
		if err != nil {
			return fmt.Errorf("the replacement in JSON: %w", err)
		}
		_, err = w.Write(append(b, '\n'))
		return written(err)
	}
	if p.Done {
		_, err := io.WriteString(w, "both have the same configuration: nothing to replace\n")
		return written(err)
	}
	var b strings.Builder
	var without []string
	for _, name := range p.Without {
		without = append(without, shellWord(name))
	}
	fmt.Fprintf(&b, "version %d, %d events up to offset %d, comes from model %s; version %d, which it replaces, is kept for 30 days\n",
		p.Version, p.Events, p.Position, c.Replace.By, p.Before)
	of := ""
	if c.Model != "default" {
		of = " --model " + c.Model
	}
	fmt.Fprintf(&b, "The learner of %s goes on from there at its next save. Stop that of %s.\n"+
		"To answer as before: hamlet model pin VERSION%s, with a version that was replaced.\n", c.Model, c.Replace.By, of)
	if len(without) > 0 {
		fmt.Fprintf(&b, "From the next restart on, the learner of %s: --without-source %s\n"+
			"Without that, a model that starts empty learns from these sources again: after a loss of Redis.\n",
			c.Model, strings.Join(without, " --without-source "))
	}
	_, err := io.WriteString(w, b.String())
	return written(err)
}

// shellWord quotes a name for a shell, if it needs that.
func shellWord(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:@/+", r)
	}
	if name != "" && strings.TrimFunc(name, plain) == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
