package gateway

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The alerting rules in deploy use metrics and reasons that the gateway has, and shows from
// the start.
func TestAlertingRules(t *testing.T) {
	const file = "../../../../deploy/prometheus/hamlet.rules.yml"
	rules, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	newGateway(t, Config{Asker: fakeClient(nil), Registerer: registry}).Door("milter")
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
	used := regexp.MustCompile(`\bhamlet_gateway_\w+`).FindAllString(string(rules), -1)
	if len(used) == 0 {
		t.Errorf("%s does not look at the gateway", file)
	}
	for _, u := range used {
		if !slices.Contains(known, u) {
			t.Errorf("%s: there is no metric %s", file, u)
		}
	}
	for _, want := range []string{"no-answer", "memory", "broken", "failed"} {
		if !slices.Contains(values, want) {
			t.Errorf("%s: no metric shows %q from the start", file, want)
		}
	}
}
