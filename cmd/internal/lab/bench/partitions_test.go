package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/settings"
)

// benchPartitions runs `hamlet bench partitions`.
func benchPartitions(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var c Command
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	args = append([]string{"partitions", "--interleavings", "1", "--resamples", "20", "--table-bits", "10"}, args...)
	if _, err := settings.Parse("bench", "", &c, args, stdio); err != nil {
		return "", err
	}
	err = c.Run(t.Context(), "partitions <source>", stdio)
	return out.String(), err
}

// writeTexts writes n labelled texts with words that mostly separate spam from ham, and
// a malformed line.
func writeTexts(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("neither\ta line without a label\n")
	for i := range n {
		label, word := "ham", "meeting"
		if i%3 == 0 {
			label, word = "spam", "prize"
		}
		if i%11 == 0 {
			word = "hello"
		}
		fmt.Fprintf(&b, "%s\t%s number %d of %d\n", label, word, i, i%7)
	}
	path := filepath.Join(t.TempDir(), "texts.tsv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// With one partition all poolings equal the one model. With four, exactly one learns
// each event.
func TestPartitions(t *testing.T) {
	const n = 300
	path := writeTexts(t, n)
	for _, c := range []struct {
		partitions int
		args       []string
	}{{1, []string{"--partitions", "1"}}, {4, nil}, {3, []string{"--partitions", "3", "--seed", "9"}}} {
		out, err := benchPartitions(t, append([]string{"--by", "random", "--format", "text", "--json", path}, c.args...)...)
		if err != nil {
			t.Fatal(err)
		}
		var got jsonPartitions
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		learnt := 0
		for _, events := range got.Partitions {
			learnt += events
			if events == 0 {
				t.Errorf("a partition of %d got nothing: %v", c.partitions, got.Partitions)
			}
		}
		if len(got.Partitions) != c.partitions || learnt != n || got.Events != n || got.Spam != n/3 || got.Rejected != 1 {
			t.Errorf("%d partitions learnt %v of %d events, %d spam, %d rejected", c.partitions, got.Partitions, got.Events, got.Spam, got.Rejected)
		}
		if len(got.Poolings) != len(model.Poolings)+3 || got.Poolings[0].Name != string(model.MeanLogOdds) || got.Poolings[0].Ratio != nil {
			t.Fatalf("joins: %+v", got.Poolings)
		}
		for _, j := range got.Poolings[1:] {
			loss, first := float64(j.LogLoss.Value), float64(got.Poolings[0].LogLoss.Value)
			if same := math.Abs(loss-first) < 1e-9; same != (c.partitions == 1) {
				t.Errorf("%d partitions: log loss %v by %s, %v by %s", c.partitions, loss, j.Name, first, got.Poolings[0].Name)
			}
			if !(loss > 0 && loss < math.Ln2) {
				t.Errorf("%d partitions: log loss %v by %s", c.partitions, loss, j.Name)
			}
		}
	}
}

// A recipient's mail is in one partition; mail without a recipient is in its tenant's.
func TestPartitionsByRecipient(t *testing.T) {
	b := newBox(t)
	out, err := benchPartitions(t, "--index", b.index, "--by", "recipient", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got jsonPartitions
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.By != "by recipient" || len(got.Partitions) != 4 || got.Events != 4 {
		t.Errorf("got %+v", got)
	}
	texts := writeTexts(t, 60)
	out, err = benchPartitions(t, "--format", "text", "--json", texts)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if slices.Sort(got.Partitions); !slices.Equal(got.Partitions, []int{0, 0, 0, 60}) {
		t.Errorf("texts without recipients are in more than one partition: %v", got.Partitions)
	}
	out, err = benchPartitions(t, "--format", "text", texts)
	if err != nil {
		t.Fatal(err)
	}
	if want := "60 events, 20 spam, 40 ham, in 4 partitions by message: "; !strings.HasPrefix(out, want) {
		t.Errorf("the table begins\n%s\nwant %s", out, want)
	}
	for _, j := range model.Poolings {
		if !strings.Contains(out, "\n"+string(j)+" ") {
			t.Errorf("the table lacks %s:\n%s", j, out)
		}
	}
}

func TestPartitionsRefuse(t *testing.T) {
	path := writeTexts(t, 3)
	for _, args := range [][]string{{"--partitions", "0", path}, {"--resamples", "0", path}, {"--interleavings", "0", path}, {"--interleavings", "2", "-"}, {"--generate", "5", path}} {
		var usage *cli.UsageError
		if _, err := benchPartitions(t, append([]string{"--format", "text"}, args...)...); !errors.As(err, &usage) {
			t.Errorf("%v: %v, want wrong usage", args, err)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	withdrawal := `{"id":"d","action":"unlearn","of":"a","text":"cheap pills"}` + "\n"
	if err := os.WriteFile(empty, []byte(withdrawal), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := benchPartitions(t, empty); err == nil || !strings.Contains(err.Error(), "no event that can be learnt") {
		t.Errorf("a withdrawal alone: %v", err)
	}
}

// One model of four partitions is nearly as good as one of one, and better than four models.
func TestPartitionsSpread(t *testing.T) {
	path := writeTexts(t, 3000)
	out, err := benchPartitions(t, "--interleavings", "3", "--by", "random", "--format", "text", "--json", path)
	if err != nil {
		t.Fatal(err)
	}
	var got jsonSpread
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.Events != 3000 || got.Splits != 3 || got.Rejected != 1 || len(got.Rows) != 4 || got.PerEvent <= 0 || got.PerEvent > .4 {
		t.Fatalf("got %+v", got)
	}
	single, one, joint, own := got.Rows[0], got.Rows[1], got.Rows[2], got.Rows[3]
	if single.Name != singleOutcome || one.Name != orderOutcome || own.Name != ownOutcome {
		t.Errorf("rows %s, %s, %s, %s", single.Name, one.Name, joint.Name, own.Name)
	}
	if single.LogLoss[0] != single.LogLoss[2] || one.LogLoss[0] == one.LogLoss[2] {
		t.Errorf("log loss of one partition %v, of one model %v", single.LogLoss, one.LogLoss)
	}
	if !(math.Abs(float64(one.Loss)-1) < .05) || !(one.Loss < joint.Loss) || !(one.Loss < own.Loss) {
		t.Errorf("log loss to one partition's: %v of one model, %v jointly, %v alone", one.Loss, joint.Loss, own.Loss)
	}
	out, err = benchPartitions(t, "--interleavings", "2", "--partitions", "16", "--generate", "200")
	if err != nil || !strings.Contains(out, "mean of 2 splits") || !strings.Contains(out, "\n"+orderOutcome+" ") || !strings.Contains(out, " order records for each event") {
		t.Errorf("%v\n%s", err, out)
	}
}
