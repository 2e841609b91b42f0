package rspamd

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
)

func controllerDoor(d *gateway.Door) *Server {
	return NewController(d, "secret", NewCounts())
}

func TestLearn(t *testing.T) {
	school := &teacher{}
	b := open(t, gateway.Config{Asker: spam(), Teacher: school, Tenants: tenants(t)}, controllerDoor)
	for _, test := range []struct{ path, user, want string }{{"/learnspam", "bob", "spam"}, {"/learnham", "x@a", "ham"}} {
		code, text := b.ask("POST", test.path, strings.NewReader(message), "Password", "secret", "Deliver-To", test.user)
		if code != http.StatusOK || string(text) != `{"success":true}` {
			t.Errorf("%s: %d %s", test.path, code, text)
		}
	}
	if len(school.events) != 2 {
		t.Fatalf("%+v", school.events)
	}
	for i, want := range []struct {
		label  stream.Label
		tenant string
	}{{stream.Spam, "b"}, {stream.Ham, "a"}} {
		if e := school.events[i]; e.Label != want.label || e.Tenant != want.tenant || e.Source != "rspamd" {
			t.Errorf("%+v, want %+v", e, want)
		}
	}
	school.err = errors.New("no log")
	if code, text := b.ask("POST", "/learnspam", strings.NewReader(message), "Password", "secret"); code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", code, text)
	}
	if code, text := b.ask("POST", "/learnspam", strings.NewReader(""), "Password", "secret"); code != http.StatusBadRequest {
		t.Errorf("%d %s", code, text)
	}
	b.await("hamlet_gateway_labels_total", 4)
}

// The trace of a request over HTTP goes on to the scoring service and to the learner's log.
func TestTrace(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	client, school := spam(), &teacher{}
	b := open(t, gateway.Config{Asker: client, Teacher: school}, controllerDoor)
	for _, path := range []string{"/checkv2", "/learnspam"} {
		if code, text := b.ask("POST", path, strings.NewReader(message), "Password", "secret", stream.HeaderTrace, trace); code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, code, text)
		}
	}
	for _, got := range [][]stream.Trace{client.traces, school.traces} {
		if len(got) != 1 || got[0] != trace {
			t.Errorf("%q, want the trace of the request", got)
		}
	}
}

func TestRefusals(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam()}, controllerDoor)
	for _, test := range []struct {
		method, path, password string
		code                   int
	}{
		{"POST", "/learnspam", "wrong", http.StatusUnauthorized},
		{"POST", "/learnspam", "secret", http.StatusUnauthorized}, // without a teacher
		{"GET", "/stat", "", http.StatusUnauthorized},
		{"POST", "/checkv2", "", http.StatusUnauthorized},
		{"POST", "/checkv2", "secret", http.StatusOK},
		{"GET", "/ping", "", http.StatusOK},
		{"GET", "/nonsense", "secret", http.StatusNotFound},
	} {
		if code, text := b.ask(test.method, test.path, strings.NewReader(message), "Password", test.password); code != test.code {
			t.Errorf("%+v: %d %s", test, code, text)
		}
	}
	if got := b.say("CHECK RSPAMC/1.3\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
		t.Errorf("the line protocol has no password: %q", got)
	}
}

func TestStat(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam()}, controllerDoor)
	b.ask("POST", "/checkv2", strings.NewReader(message), "Password", "secret")
	_, text := b.ask("GET", "/stat", nil, "Password", "secret")
	var stat struct {
		Scanned   int            `json:"scanned"`
		Spam      int            `json:"spam_count"`
		Actions   map[string]int `json:"actions"`
		Learns    int            `json:"total_learns"`
		ReadOnly  bool           `json:"read_only"`
		Statfiles []any          `json:"statfiles"`
	}
	if err := json.Unmarshal(text, &stat); err != nil {
		t.Fatal(err)
	}
	if stat.Scanned != 1 || stat.Spam != 1 || stat.Actions["add header"] != 1 || stat.Learns != 1234 || !stat.ReadOnly || len(stat.Statfiles) != 1 {
		t.Errorf("%s", text)
	}
}
