package bench

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/algos/algotest/dataset"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
)

func selective(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var c Command
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	args = append([]string{"selective", "--no-alarms", "--experts", "lean"}, args...)
	err = settings.Run(t.Context(), "bench", "", &c, args, stdio)
	return out.String(), err
}

// On 3,000 sms of which errors alone are labelled, assumed answers lower the log loss.
// Where everything is labelled nothing is assumed.
func TestSelective(t *testing.T) {
	sms := filepath.Join(dataset.Path(t, "sms"), "SMSSpamCollection")
	out, err := selective(t, "--limit", "3000", "--json", sms)
	if err != nil {
		t.Fatal(err)
	}
	var r selectiveResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if len(r.Lines) != len(labellings) || r.Events != 3000 || r.From != 300 {
		t.Fatalf("%+v", r)
	}
	all, errors := r.Lines[0], r.Lines[1]
	if all.Labels != "all" || all.Without != all.With || all.With.Assumed != 0 || all.With.Labels != 3000 {
		t.Errorf("with all labels: %+v", all)
	}
	if w := errors.With; errors.Labels != "errors" || w.Assumed < 2000 || w.Wrong > w.Assumed/50 ||
		w.LogLoss > 0.7*errors.Without.LogLoss {
		t.Errorf("with labels for errors: %+v", errors)
	}
	if n := errors.Without.Labels - 300; n != errors.Without.Junked+errors.Without.Missed {
		t.Errorf("%d labels for %d and %d errors", n, errors.Without.Junked, errors.Without.Missed)
	}
	table, err := selective(t, "--limit", "500", "--after", "10", sms)
	if err != nil || strings.Count(table, "\n") < len(labellings)+5 || strings.Contains(table, "NaN") {
		t.Errorf("%v, table\n%s", err, table)
	}
}

func TestSelectiveUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--after", "0", "x"}, "--after"},
		{[]string{"--teach-first", "-1", "x"}, "--teach-first"},
		{[]string{"--teach-first", "500", csvRows(t, 500)}, "leaves nothing"},
	} {
		if _, err := selective(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one about %s", c.args, err, c.want)
		}
	}
}
