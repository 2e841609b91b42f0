package score_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/operate/score"
	"hamlet/cmd/internal/process/cli"
	"hamlet/stream"
)

// An informed scorer has a model to describe.
type informed struct {
	wordy
	info stream.Info
}

func (s informed) Info(context.Context) (stream.Info, error) { return s.info, nil }

// `hamlet info` prints what a scorer says of its model, for people and as JSON.
func TestInfo(t *testing.T) {
	t.Parallel()
	info := stream.Info{
		Model:  stream.ModelRef{Name: "default", SHA256: "0123456789abcdef", Positions: []int64{7, 9}, AgeMS: 1500},
		Events: 16, Saved: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Numerics: "11",
	}
	pinned, lost, stale, alarmed := info, info, info, info
	alarmed.Incidents = []stream.OpenIncident{
		{Incident: "default.0.6102", Transition: 1, Kind: stream.AlertUnknown, State: stream.AlertSuspected, Body: stream.AlertText},
		{Incident: "default.1.80", Transition: 2, Kind: stream.AlertSource, State: stream.AlertRaised, Accused: "desk", Body: stream.AlertVector},
	}
	unpromised := info
	unpromised.Rule = &stream.Rule{By: stream.RuleNotYet, LoseAtMost: 0.001, SpamAt: 0.9, Missing: 3000}
	pinned.Pinned, lost.PinLost, stale.Stale = true, true, true
	stale.Sources = stream.Sources{Known: 9, Doubted: 2, Muted: 1}
	lost.Sources = stream.Sources{Known: 7, LeftOut: 2}
	for want, said := range map[string]stream.Info{
		"stale      no\npinned     no: the newest":                      info,
		"pinned     yes: what was learnt since does not count, until `": pinned,
		"pinned     lost: ":   lost,
		"\nalarms     none\n": info,
		"alarms     something changed, not yet known what (text, incident default.0.6102); source against desk (vector, incident default.1.80)\n": alarmed,
		"stale      yes: the store cannot be read in": stale,
		"sources    9, 2 doubted, 1 muted; see `":     stale,
		"sources    0\n": info,
		"\nverdicts   at most 1 ham in 1,000 is to be lost: not yet, at least 3,000 more ham whose label was asked for; until then spam from p = 0.900\n": unpromised,
		"\nsources    7, 2 left out\n": lost,
	} {
		url := listen(t, -1)
		serve(t, url, informed{info: said})
		out, err := runInfo(t, "--server", url)
		if err != nil || !strings.Contains(out, want) || !strings.Contains(out, "events     16\npositions  7 9\nsaved      2026-11-21T12:00:00Z, 1.5s ago\n") {
			t.Errorf("%v; printed %s, want %q in it", err, out, want)
		}
		out, err = runInfo(t, "--json", "--server", url)
		var got stream.Info
		if err != nil || json.Unmarshal([]byte(out), &got) != nil || got.Events != 16 || got.Pinned != said.Pinned || got.PinLost != said.PinLost || got.Stale != said.Stale || len(got.Incidents) != len(said.Incidents) {
			t.Errorf("--json: %v; printed %s", err, out)
		}
	}
	if _, err := runInfo(t, "--timeout", "0s"); cli.Status(err) != cli.StatusUsage {
		t.Errorf("--timeout 0s: %v, want wrong usage", err)
	}
	if _, err := runInfo(t, "--timeout", "50ms", "--server", listen(t, -1)); cli.Status(err) != cli.StatusFailed || !strings.Contains(err.Error(), "start a scorer") {
		t.Errorf("without a scorer: %v", err)
	}
}

// runInfo is `hamlet info` with these arguments.
func runInfo(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var g struct {
		Info  score.InfoCommand `cmd:""`
		Score struct{}          `cmd:""`
	}
	var out, errs bytes.Buffer
	if _, err := cli.Parse(cli.Program{Name: "hamlet", Grammar: &g}, append([]string{"info"}, args...), cli.IO{Out: &out, Err: &errs}); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := g.Info.Run(ctx, cli.IO{Out: &out, Err: &errs})
	return out.String(), err
}
