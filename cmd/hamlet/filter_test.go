package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/filter"
	"hamlet/cmd/internal/filter/filtertest"
)

// `hamlet filter` and hamlet-filter are one behaviour. Their defaults stand in two places.
func TestFilterDefaults(t *testing.T) {
	t.Setenv(filter.Variable, "")
	var g struct {
		Filter filterCommand `cmd:""`
	}
	parser, err := kong.New(&g)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range parser.Model.Children[0].Flags {
		if f.Name == "socket" && (f.Default != filter.DefaultAddr || f.Envs[0] != filter.Variable) ||
			f.Name == "timeout" && f.Default != filter.DefaultTimeout.String() {
			t.Errorf("--%s: default %s, variables %v", f.Name, f.Default, f.Envs)
		}
	}
}

func TestFilter(t *testing.T) {
	addr := filtertest.Start(t, filtertest.Serve)
	const message = "Subject: minutes\n\nHello\n"
	for _, c := range []struct {
		args, out, stderr string
		status            int
	}{
		{"--timeout 30s --socket " + addr, string(filtertest.Marked([]byte(message))), "", 0},
		{"--socket unix:/nonexistent/spamd.sock", message, "hamlet filter: the message passes unmarked: dial unix", 0},
		{"--socket nowhere", "", "", cli.StatusUsage},
		{"--timeout 0s", "", "", cli.StatusUsage},
	} {
		var out, stderr bytes.Buffer
		err := run(t.Context(), append([]string{"filter"}, strings.Fields(c.args)...),
			cli.IO{In: strings.NewReader(message), Out: &out, Err: &stderr})
		if cli.Status(err) != c.status || out.String() != c.out || !strings.HasPrefix(stderr.String(), c.stderr) {
			t.Errorf("%s: %v, stdout %q, stderr %q", c.args, err, out.String(), stderr.String())
		}
	}
	reader, writer := io.Pipe()
	reader.Close()
	err := run(t.Context(), []string{"filter", "--socket", addr}, cli.IO{In: strings.NewReader(message), Out: writer, Err: io.Discard})
	if cli.Status(err) != filter.StatusTempFail {
		t.Errorf("its reader has gone: %v, want status %d", err, filter.StatusTempFail)
	}
}
