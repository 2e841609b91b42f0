package main

import (
	"bytes"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/testkit/clitest"
)

func TestHelpAndVersion(t *testing.T) {
	clitest.Help(t, run, []string{"bench", "faults", "simulate", "fit", "list"}, "--help")
	clitest.Help(t, run, []string{"--bogofilter", "--flip"}, "bench", "mail", "--help")
	clitest.Help(t, run, []string{"--data=", "--report="}, "run", "--help")
	clitest.Help(t, run, []string{"--servers=./deploy/servers"}, "faults", "--help")
	clitest.Help(t, run, []string{"--seeds=1000", "--keep=FILE"}, "simulate", "--help")
	clitest.Version(t, run, "hamlet-lab")
}

// Fit answers in its own program as it did in hamlet.
func TestFit(t *testing.T) {
	const request = `{"algorithm": "blr.site", "m": 0.5, "a": 2, "y": 1}`
	const reply = `{"xi":1.5923045380467342,"lambda":0.10391859111082946,"log_bound":-0.5568370115171438,"rvga_h":0.16535962514873298,"rvga_r":0.2988315415630048}` + "\n"
	var out bytes.Buffer
	if err := run(t.Context(), []string{"fit"},
		cli.IO{In: strings.NewReader(request), Out: &out, Err: t.Output()}); err != nil {
		t.Fatal(err)
	}
	if out.String() != reply {
		t.Errorf("%s; want %s", out.String(), reply)
	}
}
