package up

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/door/doors"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/tokens"
	"hamlet/cmd/internal/service/parts"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream/logtest"
)

// openHTTPDoor returns the handlers of the HTTP door that c opens, and what the log says.
func openHTTPDoor(t *testing.T, c *Command) (map[string]http.Handler, string) {
	t.Helper()
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	s := parts.New("hamlet-up", "", log)
	t.Cleanup(func() { s.Close() })
	c.Doors.SocketMode, c.Doors.Deadline, c.Doors.Memory = "0660", time.Minute, 1
	opened, err := c.doors(s, nil, &text)
	if err != nil {
		t.Fatal(err)
	}
	handlers, err := c.httpDoor(s, opened, &logtest.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	return handlers, text.String()
}

// Tenants teach an up only with --allow-learn, the operator without it too.
func TestUsageOfUpHTTPWithTenants(t *testing.T) {
	tenants := filepath.Join(t.TempDir(), "tenants.yaml")
	if err := os.WriteFile(tenants, []byte("tokens:\n  alices: alice\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const taken = http.StatusBadRequest // a body without an event: the door looks at it
	for _, c := range []struct {
		allow, operator bool
		token           string
		want            int
	}{
		{false, true, "alices", http.StatusForbidden},
		{false, true, "operators", taken},
		{false, false, "alices", http.StatusForbidden},
		{true, true, "alices", taken},
		{true, true, "operators", taken},
		{true, false, "alices", taken},
		{true, true, "another", http.StatusUnauthorized},
	} {
		command := &Command{HTTP: "127.0.0.1:0", Doors: doors.Flags{Tenants: tenants, AllowLearn: c.allow}}
		if c.operator {
			command.Token = "operators"
		}
		handlers, _ := openHTTPDoor(t, command)
		r := httptest.NewRequest(http.MethodPost, "/v1/events", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+c.token)
		server := httptest.NewServer(handlers["/v1/events"])
		r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", server.Listener.Addr().String()
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		server.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%+v: %d", c, answer.StatusCode)
		}
	}
}

// A token made by hamlet token new teaches an up that has its line.
func TestTokenNewTeaches(t *testing.T) {
	var line, said bytes.Buffer
	run := func(args string, stdio cli.IO) error {
		var hamlet struct {
			Token tokens.Command `cmd:""`
		}
		return settings.Run(t.Context(), "hamlet", "", &hamlet, strings.Fields(args), stdio)
	}
	if err := run("token new desk --tenant a", cli.IO{Out: &line, Err: &said}); err != nil {
		t.Fatal(err)
	}
	_, secret, _ := strings.Cut(strings.TrimSpace(said.String()), ": ")
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(file, line.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	handlers, _ := openHTTPDoor(t, &Command{HTTP: "127.0.0.1:0", EventsHTTP: settings.EventsHTTP{Tokens: file}})
	server := httptest.NewServer(handlers["/v1/events"])
	defer server.Close()
	for token, want := range map[string]int{secret: http.StatusForbidden, "x" + secret: http.StatusUnauthorized} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(`{"id":"1","label":"spam","text":"x","tenant":"b"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		r.URL.Path = "/v1/events"
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%q: %s, want %d", token, answer.Status, want)
		}
	}
	for _, args := range []string{"token new Desk", "token new desk --action sing", "token new desk --source a@b", "token new", "token"} {
		err := run(args, cli.IO{Out: io.Discard, Err: io.Discard})
		if cli.Status(err) != cli.StatusUsage {
			t.Errorf("%s: %v, want wrong usage", args, err)
		}
	}
}

// An up at an address that others reach says what its HTTP door lacks.
func TestUsageOfUpHTTPElsewhere(t *testing.T) {
	for token, want := range map[string]string{"": "asks nobody for a token", "x": "clear text"} {
		handlers, log := openHTTPDoor(t, &Command{HTTP: "192.0.2.1:80", Token: token})
		if len(handlers) != 0 || !strings.Contains(log, want) {
			t.Errorf("token %q: %d handlers, the log says %s", token, len(handlers), log)
		}
	}
	if handlers, log := openHTTPDoor(t, &Command{HTTP: "127.0.0.1:80"}); handlers["/v1/score"] == nil || strings.Contains(log, "metrics only") {
		t.Errorf("on this machine: %d handlers, the log says %s", len(handlers), log)
	}
}
