package selflabel

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The alerting rules in deploy use metrics that exist, and show their labels from the start.
func TestAlertingRules(t *testing.T) {
	const file = "../../../../deploy/prometheus/hamlet.rules.yml"
	rules, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if _, err := New(Config{Registerer: registry}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, f := range families {
		known = append(known, f.GetName())
	}
	used := regexp.MustCompile(`\bhamlet_self_label_\w+`).FindAllString(string(rules), -1)
	for _, u := range used {
		if !slices.Contains(known, u) {
			t.Errorf("%s: there is no metric %s", file, u)
		}
	}
	for _, want := range []string{"failing", "dropped_total", "oldest_seconds"} {
		if !slices.Contains(used, prefix+want) {
			t.Errorf("%s does not look at %s", file, prefix+want)
		}
	}
}
