package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/gateway/doors"
	"hamlet/cmd/internal/services"
)

// openHTTPDoor returns the handlers of the HTTP door that c opens, and what the log says.
func openHTTPDoor(t *testing.T, c *upCommand) (map[string]http.Handler, string) {
	t.Helper()
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	s := services.New("hamlet-up", "", log)
	t.Cleanup(s.Close)
	c.Doors.SocketMode = "0660"
	opened, err := c.doors(s, nil, nil, log, &text)
	if err != nil {
		t.Fatal(err)
	}
	handlers, err := c.httpDoor(s, opened, nil, log)
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
		command := &upCommand{HTTP: "127.0.0.1:0", Doors: doors.Flags{Tenants: tenants, AllowLearn: c.allow}}
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

// An up at an address that others reach says what its HTTP door lacks.
func TestUsageOfUpHTTPElsewhere(t *testing.T) {
	for token, want := range map[string]string{"": "asks nobody for a token", "x": "clear text"} {
		handlers, log := openHTTPDoor(t, &upCommand{HTTP: "192.0.2.1:80", Token: token})
		if len(handlers) != 0 || !strings.Contains(log, want) {
			t.Errorf("token %q: %d handlers, the log says %s", token, len(handlers), log)
		}
	}
	if handlers, log := openHTTPDoor(t, &upCommand{HTTP: "127.0.0.1:80"}); handlers["/v1/score"] == nil || strings.Contains(log, "metrics only") {
		t.Errorf("on this machine: %d handlers, the log says %s", len(handlers), log)
	}
}
