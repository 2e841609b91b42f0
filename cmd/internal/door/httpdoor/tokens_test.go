package httpdoor

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/process/tokens"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// Tokens of the file ask for their tenants' scores if they may, and teach without
// --allow-learn of the doors.
func TestTokensOfTheFile(t *testing.T) {
	var text strings.Builder
	for name, rights := range map[string]string{
		"asks":    "sources: [asks], tenants: [a], actions: [score]",
		"teaches": "sources: [desk], tenants: [a], actions: [learn]",
		"several": "sources: [desk], tenants: [a, b], actions: [learn, score]",
		"all":     `sources: ["*"], tenants: ["*"], actions: [learn, score]`,
	} {
		fmt.Fprintf(&text, "- {name: %s, sha256: %x, %s}\n", name, sha256.Sum256([]byte(name)), rights)
	}
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := tokens.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var kept published
	s := serve(t, config{
		Events: &kept,
		Door:   newGateway(t, gateway.Config{Registerer: prometheus.NewRegistry(), Asker: &fakeClient{}, Tenants: openTenants(t), Tokens: file}),
	})
	const event = `{"id":"1","label":"spam","text":"x"}`
	for _, c := range []struct {
		token, path, tenant, body string
		want                      string // status and tenant
	}{
		{"asks", scorePath, "", "", "200 a"},
		{"asks", scorePath, "a", "", "200 a"},
		{"asks", scorePath, "b", "", "403"},
		{"asks", scorePath, "a\tb", "", "400"},
		{"asks", explainPath, "", "", "200 a"},
		{"asks", scorePath, "", `{"text":"x"}`, "200 a"},
		{"asks", scorePath, "", `{"text":"x","tenant":"b"}`, "403"},
		{"asks", scorePath, "", `[{"text":"x"},{"text":"x","tenant":"b"}]`, "403"},
		{"asks", eventsPath, "", event, "403"},
		{"teaches", scorePath, "", "", "403"},
		{"teaches", explainPath, "", `{"text":"x"}`, "403"},
		{"teaches", eventsPath, "", event, "202 a/desk"},
		{"several", scorePath, "", "", "403"}, // isp, the default
		{"several", scorePath, "b", "", "200 b"},
		{"several", scorePath, "", `{"text":"x"}`, "403"},
		{"several", scorePath, "", `{"text":"x","tenant":"b"}`, "200 b"},
		{"several", scorePath, "b", `{"text":"x"}`, "200 b"},
		{"several", eventsPath, "", `{"id":"1","label":"spam","text":"x","tenant":"b"}`, "202 b/desk"},
		{"all", scorePath, "", "", "200 isp"},
		{"all", scorePath, "z", "", "200 z"},
		{alice, scorePath, "", "", "200 alice"},
		{alice, eventsPath, "", event, "403"},
		{"nobody", scorePath, "", "", "401"},
		{"", scorePath, "", "", "401"},
	} {
		kept.events = nil
		q := question{path: c.path, token: c.token, kind: questions.Text, body: "x"}
		if c.tenant != "" {
			q.header = [2]string{nats.HeaderTenant, c.tenant}
		}
		if c.body != "" {
			q.kind, q.body = questions.JSON, c.body
		}
		a := s.ask(t, q)
		got := fmt.Sprint(a.code)
		switch {
		case a.code == http.StatusOK:
			got += " " + a.verdicts(t)[0].Identity // the fake scorer puts the tenant there
		case len(kept.events) > 0:
			got += " " + kept.events[0].Tenant + "/" + kept.events[0].Source
		}
		if got != c.want {
			t.Errorf("%+v: %s: %s", c, got, a.body)
		}
	}
	if a := s.ask(t, question{method: http.MethodGet, path: infoPath, token: "teaches"}); a.code != http.StatusOK {
		t.Errorf("info: %d", a.code)
	}
}
