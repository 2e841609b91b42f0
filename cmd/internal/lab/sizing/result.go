package sizing

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A result is what a day used, and what the whole day needs.
type result struct {
	Model   string  `json:"model"`
	Scores  int64   `json:"scores"`
	Refused int64   `json:"refused"` // questions that were answered "not now"
	Labels  int     `json:"labels"`
	Saves   float64 `json:"saves"`
	Seconds float64 `json:"seconds"`  // of the questions
	Median  float64 `json:"median_s"` // of an answer
	Late    float64 `json:"late_s"`   // 99 % of the answers came earlier

	Processes  []used   `json:"processes"`
	RedisBytes float64  `json:"redis_bytes"` // of all versions that it keeps
	Costs      Costs    `json:"costs"`
	Demand     Demand   `json:"demand"`
	Warnings   []string `json:"warnings,omitempty"`

	load Load
}

// A used is what a process used while questions were asked.
type used struct {
	Name   string  `json:"name"`
	CPU    float64 `json:"cpu_s"`
	Memory float64 `json:"memory_bytes"` // at most since its start
}

func (r *result) process(name string) used {
	for _, p := range r.Processes {
		if p.Name == name {
			return p
		}
	}
	return used{}
}

func (r *result) writeJSON(w io.Writer) error {
	b, err := json.Marshal(struct {
		*result
		Load Load `json:"load"`
	}{r, r.load})
	if err != nil {
		return fmt.Errorf("the day in JSON: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func (r *result) writeTables(w io.Writer) error {
	var t strings.Builder
	fmt.Fprintf(&t, "%d answers (%d refused) in %.0f s, %.0f a second; median %.1f ms, 99 %% %.1f ms; %d labels, %.0f saves\n\n",
		r.Scores, r.Refused, r.Seconds, float64(r.Scores)/r.Seconds, 1e3*r.Median, 1e3*r.Late, r.Labels, r.Saves)
	fmt.Fprintf(&t, "%-10s %12s %12s\n", "process", "CPU s", "memory MB")
	for _, p := range r.Processes {
		fmt.Fprintf(&t, "%-10s %12.1f %12.0f\n", p.Name, p.CPU, p.Memory/1e6)
	}
	if r.RedisBytes > 0 {
		fmt.Fprintf(&t, "\nRedis' data grew by %s: a model of %s, in the versions that it keeps\n", size(r.RedisBytes), size(r.Costs.ModelBytes))
	}
	c, d, l := &r.Costs, &r.Demand, &r.load
	row := func(name, value, meaning string) { fmt.Fprintf(&t, "%-22s %14s   %s\n", name, value, meaning) }
	t.WriteString("\nwhat one costs\n")
	row("score", micros(c.Score), "scorer, with the line of the journal")
	row("score", micros(c.Gateway), "gateway, over HTTP")
	if c.NATS > 0 {
		row("score", micros(c.NATS), "NATS, with the line of the journal")
	}
	row("load", micros(c.Load), "scorer, each version that a learner saves")
	row("label", micros(c.Ingest), "ingest, in batches")
	row("label", micros(c.Learn), "learner, of a backlog")
	row("rest", fmt.Sprintf("%.1f %%", 100*c.Rest), "learner, of a core, while labels come one by one")
	row("save", micros(c.Save), fmt.Sprintf("learner, of %.0f MB", c.ModelBytes/1e6))
	if c.EventBytes > 0 {
		row("label in Kafka", fmt.Sprintf("%.0f B", c.EventBytes), "one replica")
	}
	row("answer in the journal", fmt.Sprintf("%.0f B", c.JournalBytes), "one replica")
	fmt.Fprintf(&t, "\na day of %.3g answers and %.3g labels; peak %.3g times the mean, cores %.0f %% busy then\n", l.Scores, l.Labels, l.Peak, 100*l.Busy)
	row("scorers", fmt.Sprintf("%.1f cores", d.ScorerCores), fmt.Sprintf("%.0f answers a second; %.1f GB in processes of %d cores", d.ScoresAtPeak, d.ScorerBytes/1e9, scorerCores))
	row("gateways", fmt.Sprintf("%.1f cores", d.GatewayCores), "")
	if d.NATSCores > 0 {
		row("NATS", fmt.Sprintf("%.1f cores", d.NATSCores), "")
	}
	row("ingest", fmt.Sprintf("%.2f cores", d.IngestCores), fmt.Sprintf("%.0f labels a second", d.LabelsAtPeak))
	row("learner", fmt.Sprintf("%.2f cores", d.LearnerCores), fmt.Sprintf("one model learns %.0f labels a second at most", d.LabelLimit))
	if d.KafkaBytes > 0 {
		row("Kafka", size(d.KafkaBytes), fmt.Sprintf("%.0f days of labels, %.0f replicas", l.KeepDays, l.Replicas))
	}
	row("Redis", size(d.RedisBytes), fmt.Sprintf("%.0f versions at most; up to %s a second written and %s read", l.Versions, size(d.RedisWrites), size(d.RedisReads)))
	row("journal", size(d.JournalBytes), fmt.Sprintf("%.0f days of answers", l.JournalOf))
	for _, w := range r.Warnings {
		fmt.Fprintf(&t, "\n%s\n", w)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

func micros(seconds float64) string { return fmt.Sprintf("%.0f µs", 1e6*seconds) }

// size writes bytes in the unit that suits them.
func size(bytes float64) string {
	for _, u := range []struct {
		unit string
		size float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}} {
		if bytes >= u.size {
			return fmt.Sprintf("%.1f %s", bytes/u.size, u.unit)
		}
	}
	return fmt.Sprintf("%.0f B", bytes)
}
