package doors

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/door/oracle"
	"hamlet/cmd/internal/door/selflabel"
	"hamlet/stream/nats"
)

// The alerting rules in deploy use metrics and reasons that the doors have, and show from the
// start.
func TestAlertingRules(t *testing.T) {
	const file = "../../../../deploy/prometheus/hamlet.rules.yml"
	rules, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	g, err := gateway.New(gateway.Config{Asker: &nats.Client{}, Registerer: registry, Deadline: 2 * time.Second, Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	g.Door("milter")
	selflabel.New(selflabel.Config{Registerer: registry})
	if _, err := oracle.New(oracle.Config{File: filepath.Join(t.TempDir(), "oracle"), Registerer: registry}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var known, values []string
	for _, family := range families {
		known = append(known, family.GetName())
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
		}
	}
	used := regexp.MustCompile(`\bhamlet_(gateway|self_label|oracle)_\w+`).FindAllString(string(rules), -1)
	for _, u := range used {
		if !slices.Contains(known, u) {
			t.Errorf("%s: there is no metric %s", file, u)
		}
	}
	for _, want := range []string{"gateway_unmarked_total", "self_label_failing", "self_label_dropped_total", "self_label_oldest_seconds", "oracle_state", "oracle_failing"} {
		if !slices.Contains(used, "hamlet_"+want) {
			t.Errorf("%s does not look at %s", file, want)
		}
	}
	for _, want := range []string{"no-answer", "memory", "broken", "failed", "stopped"} {
		if !slices.Contains(values, want) {
			t.Errorf("%s: no metric shows %q from the start", file, want)
		}
	}
}
