package bench

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/algos/algotest/dataset"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
)

func benchReview(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var c Command
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	args = append([]string{"review", "--no-alarms", "--experts", "lean"}, args...)
	err = settings.Run(t.Context(), "bench", "", &c, args, stdio)
	return out.String(), err
}

// On 1,500 sms every way of choosing gets the same number of labels, those by value and by
// doubt choose more spam than chance does, and the figures are finite.
func TestReview(t *testing.T) {
	sms := filepath.Join(dataset.Path(t, "sms"), "SMSSpamCollection")
	out, err := benchReview(t, "--limit", "1500", "--seeds", "2", "--json", sms)
	if err != nil {
		t.Fatal(err)
	}
	var r reviewResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if len(r.Lines) != len(choosings) || r.Events != 1500 {
		t.Fatalf("%+v", r)
	}
	random := r.Lines[len(r.Lines)-1]
	for i, l := range r.Lines {
		if l.Choice != choosings[i].name || l.Labels != 300+120 {
			t.Errorf("%+v: want 420 labels by %s", l, choosings[i].name)
		}
		if !(l.LogLoss > 0 && l.LogLoss < 0.5) || !(l.ROCA > 0 && l.ROCA < 50) || !(l.LaterLogLoss > 0) ||
			!(l.Lowest <= l.LogLoss && l.LogLoss <= l.Highest) {
			t.Errorf("%+v: want figures", l)
		}
	}
	if random.Choice != randomChoice || random.Lowest == random.Highest {
		t.Errorf("%+v: want two random choices", random)
	}
	if value, doubt := r.Lines[0], r.Lines[2]; value.Spam < random.Spam || doubt.Spam < random.Spam {
		t.Errorf("share of spam: %.2f by value, %.2f by doubt, %.2f at random", value.Spam, doubt.Spam, random.Spam)
	}
	table, err := benchReview(t, "--limit", "400", "--every", "50", "--seeds", "1", sms)
	if err != nil || strings.Count(table, "\n") < len(choosings)+6 || strings.Contains(table, "NaN") {
		t.Errorf("%v, table\n%s", err, table)
	}
}

func TestMeanRun(t *testing.T) {
	m := meanRun([]reviewRun{{Choice: "random", Labels: 3, LogLoss: .1, ROCA: 1, Spam: .2},
		{Choice: "random", Labels: 3, LogLoss: .3, ROCA: 2, Spam: .4}})
	if m.Labels != 3 || math.Abs(float64(m.LogLoss)-.2) > 1e-12 || m.ROCA != 1.5 || math.Abs(m.Spam-.3) > 1e-12 ||
		m.Lowest != .1 || m.Highest != .3 {
		t.Errorf("%+v", m)
	}
}

func TestReviewUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--every", "0", "x"}, "--every"},
		{[]string{"--seeds", "0", "x"}, "--seeds"},
		{[]string{"--teach-first", "-1", "x"}, "--teach-first"},
		{[]string{"--teach-first", "100", csvRows(t, 105)}, "leave nothing"},
	} {
		if _, err := benchReview(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one about %s", c.args, err, c.want)
		}
	}
}
