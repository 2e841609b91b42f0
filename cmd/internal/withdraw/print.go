package withdraw

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"hamlet/stream"
)

// A report is what --json prints.
type report struct {
	Model      string           `json:"model"`
	Source     string           `json:"source"`
	DryRun     bool             `json:"dry_run"`
	Partitions []*PartitionPlan `json:"partitions"`
	Written    int              `json:"written"`
	Saved      bool             `json:"saved"`  // the saved model has learnt what was written
	Traces     []string         `json:"traces"` // parts of a model where an event that is withdrawn leaves a trace
}

// printPlan says what would be written, and what that would do.
func (r *report) printPlan(w io.Writer) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "partition\toffsets\tlabels\twithdrawable\twithdrawn\tbeyond\ttoo large\t")
	beyond, large := 0, 0
	for _, p := range r.Partitions {
		fmt.Fprintf(table, "%d\t%d–%d\t%d\t%d\t%d\t%d\t%d\t\n", p.Partition, p.From, p.To-1, p.Labels, p.Withdrawable, p.Withdrawn, p.Beyond, p.TooLarge)
		beyond, large = beyond+p.Beyond, large+p.TooLarge
	}
	_ = table.Flush() // to memory
	if beyond > 0 {
		fmt.Fprintf(&b, "Beyond the window of withdrawals, or never learnt: %s. What they taught stays. hamlet model rollback\n"+
			"answers from a version of before; learner --events-of %s --without-source %s --model NEW\nmakes a model without the source.\n",
			count(beyond, "label"), r.Model, r.Source)
	}
	if large > 0 {
		fmt.Fprintf(&b, "Too large to be written again: %s.\n", count(large, "label"))
	}
	if withdrawable(r.Partitions) > 0 {
		fmt.Fprintf(&b, "A trace stays in: %s.\n", strings.Join(r.Traces, ", "))
	}
	for _, p := range r.Partitions {
		a := p.Answers
		if a.Events == 0 || p.Withdrawable == 0 {
			continue
		}
		fmt.Fprintf(&b, "Partition %d, answers to the last %s of other sources, by head and counts alone: p changes by %.4f on average\n"+
			"and by %.3f at most; %s; log loss %.4f before, %.4f after, on mail that it has learnt.\n",
			p.Partition, count(a.Events, "event"), a.MeanChange, a.LargestChange, changes(a.Verdicts), a.LogLossBefore, a.LogLossAfter)
	}
	_, err := io.WriteString(w, b.String())
	return wrapped(err)
}

// changes says how many verdicts change.
func changes(n int) string {
	if n == 1 {
		return "1 verdict changes"
	}
	return fmt.Sprintf("%d verdicts change", n)
}

// end prints how it ended.
func (c *Command) end(w io.Writer, r *report) error {
	if c.JSON {
		b, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("the withdrawal in JSON: %w", err)
		}
		_, err = w.Write(append(b, '\n'))
		return wrapped(err)
	}
	text := ""
	switch {
	case c.DryRun:
		text = "Nothing is written: this is a dry run.\n"
	case r.Written == 0:
		text = "Nothing is written: there is nothing to withdraw.\n"
	case r.Saved:
		text = fmt.Sprintf("%s written, learnt and saved. Receipts are in topic %s; scorers follow within seconds.\n", count(r.Written, "withdrawal"), stream.ReceiptTopic)
	default:
		text = fmt.Sprintf("%s written. They are done once hamlet model show has these positions: %s.\n", count(r.Written, "withdrawal"), r.positions())
	}
	_, err := io.WriteString(w, text)
	return wrapped(err)
}

// positions lists how far the partitions must be learnt.
func (r *report) positions() string {
	var all []string
	for _, p := range r.Partitions {
		if p.Until > 0 {
			all = append(all, fmt.Sprintf("%d of partition %d", p.Until, p.Partition))
		}
	}
	return strings.Join(all, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// wrapped says what an error in writing was about.
func wrapped(err error) error {
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
