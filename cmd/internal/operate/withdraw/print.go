package withdraw

import (
	"fmt"
	"io"
	"strings"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/report"
	"hamlet/stream"
)

// A result is what --json prints.
type result struct {
	*Plan
	DryRun  bool `json:"dry_run"`
	Written int  `json:"written"`
	Saved   bool `json:"saved"` // the saved model has learnt what was written
}

// printPlan says what would be written, and what that would do.
func (r *result) printPlan(w io.Writer) error {
	table := report.NewTable("offsets", "labels", "withdrawable", "withdrawn", "beyond", "too large")
	table.Right = true
	table.Add(fmt.Sprintf("%d–%d", r.From, r.To-1), r.Labels, r.Withdrawable, r.Withdrawn, r.Beyond, r.TooLarge)
	var b strings.Builder
	b.WriteString(table.String())
	if r.Beyond > 0 {
		fmt.Fprintf(&b, "Beyond the window of withdrawals, or never learnt: %s. What they taught stays. "+
			"hamlet model rollback\n"+
			"answers from a version of before.\n"+
			"learner --model NEW --events-of %s --shadow --without-source %s makes a model without the\nsource, "+
			"and hamlet model promote has it answer.\n",
			count(r.Beyond, "label"), r.Model, r.Source)
	}
	if r.TooLarge > 0 {
		fmt.Fprintf(&b, "Too large to be written again: %s.\n", count(r.TooLarge, "label"))
	}
	if r.Withdrawable > 0 {
		fmt.Fprintf(&b, "A trace stays in: %s.\n", strings.Join(r.Traces, ", "))
	}
	if a := r.Answers; a.Events > 0 && r.Withdrawable > 0 {
		fmt.Fprintf(&b, "Answers to the last %s of other sources, by head and counts alone: p changes by %.4f on average\n"+
			"and by %.3f at most; %s; log loss %.4f before, %.4f after, on mail that it has learnt.\n",
			count(a.Events, "event"), a.MeanChange, a.LargestChange, changes(a.Verdicts), a.LogLossBefore, a.LogLossAfter)
	}
	return cli.Print(w, b.String())
}

// changes says how many verdicts change.
func changes(n int) string {
	if n == 1 {
		return "1 verdict changes"
	}
	return fmt.Sprintf("%d verdicts change", n)
}

func (c *Command) end(w io.Writer, r *result) error {
	if c.JSON {
		return cli.PrintJSON(w, r)
	}
	text := ""
	switch {
	case c.DryRun:
		text = "Nothing is written: this is a dry run.\n"
	case r.Written == 0:
		text = "Nothing is written: there is nothing to withdraw.\n"
	case r.Saved:
		text = fmt.Sprintf("%s written, learnt and saved. Receipts are in topic %s; scorers follow within seconds.\n",
			count(r.Written, "withdrawal"), stream.ReceiptTopic)
	default:
		text = fmt.Sprintf("%s written. They are done once hamlet model show says position %d.\n",
			count(r.Written, "withdrawal"), r.Until)
	}
	return cli.Print(w, text)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
