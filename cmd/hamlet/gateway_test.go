package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/testkit/await"
	"hamlet/stream/servertest/loopback"
)

// A gateway that starts before its server lets mail pass, and marks it once there is an up;
// also when that up comes back with other passwords.
func TestGatewayFindsItsServer(t *testing.T) {
	at := loopback.Hold(t)
	socket := filepath.Join(t.TempDir(), "spamd.sock")
	ctx, cancel := context.WithCancel(t.Context())
	stderr, ended := new(watched), make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"gateway", "--nats", "nats://" + at, "--spamd", "unix:" + socket}, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: stderr})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	const message = "Subject: win a prize\n\nlunch\n"
	ask := func() string {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HEADERS SPAMC/1.5\r\nContent-length: %d\r\n\r\n%s", len(message), message)
		answer, err := io.ReadAll(conn)
		if err != nil {
			return err.Error()
		}
		return string(answer)
	}
	answers := func(what string, marked bool) {
		t.Helper()
		answer := ""
		await.Until(t, func() bool {
			answer = ask()
			return strings.HasPrefix(answer, "SPAMD/1.") && strings.Contains(answer, "X-Hamlet: ") == marked
		}, func() string {
			return fmt.Sprintf("%s: answered %q; the gateway said\n%s", what, answer, stderr.String())
		})
	}
	answers("without a server", false)
	for _, what := range []string{"the first up", "another up"} {
		u := startUp(t, "--listen-nats="+at)
		answers(what, true)
		if err := u.stop(); err != nil {
			t.Fatal(err)
		}
		answers("after "+what, false)
	}
}

// A gateway at an address that others reach wants tokens and TLS.
func TestUsageOfGatewayHTTP(t *testing.T) {
	tenants := filepath.Join(t.TempDir(), "tenants.yaml")
	if err := os.WriteFile(tenants, []byte("tokens:\n  secret: alice\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--http 0.0.0.0:0":                              "asks nobody for a token",
		"--http 0.0.0.0:0 --token x":                    "clear text",
		"--http 0.0.0.0:0 --tenants " + tenants:         "clear text",
		"--token x --spamd 127.0.0.1:0":                 "give it an address with --http",
		"--http 127.0.0.1:0 --kafka k:1":                "--allow-learn",
		"--http 127.0.0.1:0 --http-tls-cert " + tenants: "--http-tls-key",
	} {
		err := run(t.Context(), append([]string{"gateway", "--nats", "nats://127.0.0.1:1"}, strings.Fields(args)...), cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want wrong usage: %s", args, err, want)
		}
	}
}
