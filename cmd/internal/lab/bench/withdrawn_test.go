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

func withdrawn(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var c Command
	var out, errs bytes.Buffer
	args = append([]string{"withdrawn", "--no-generator"}, args...)
	err = settings.Run(t.Context(), "bench", "", &c, args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
	return out.String(), err
}

// On 2,500 sms the figure is withdrawn in time after changes that p is blind to, and hardly ever without one.
func TestWithdrawn(t *testing.T) {
	sms := filepath.Join(dataset.Path(t, "sms"), "SMSSpamCollection")
	args := []string{"--experts", "lean", "--limit", "2500", "--policies", "3", sms}
	out, err := withdrawn(t, append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var r withdrawnResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Lines) != 4 {
		t.Fatalf("%v in %s", err, out)
	}
	if l := r.Lines[0]; l.Policy != "" || l.Turned != 0 || l.Suspected+l.Named+l.Contradicted > 0 {
		t.Errorf("without a policy: %+v", l)
	}
	blind := 0
	for _, l := range r.Lines[1:] {
		if l.Errors <= l.High {
			continue
		}
		if blind++; l.Withdrawn < 0 || l.Withdrawn >= inTime {
			t.Errorf("not withdrawn: %+v", l)
		}
	}
	if blind == 0 {
		t.Errorf("p is blind to no policy: %+v", r.Lines)
	}
	if table, err := withdrawn(t, args...); err != nil || !strings.Contains(table, "nothing") {
		t.Errorf("%v\n%s", err, table)
	}
}

func TestWithdrawnUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--policies", "-1", "x"}, "--policies"},
		{[]string{"--messages", "10", "x"}, "--messages"},
		{[]string{"--no-alarms", "x"}, "--no-alarms"},
		{nil, "name a SOURCE"},
	} {
		if _, err := withdrawn(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one about %s", c.args, err, c.want)
		}
	}
}
