package learner

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/background"
)

// The alerting rules of deploy speak of metrics and labels that there are.
func TestAlertingRules(t *testing.T) {
	const rules = "../../../deploy/prometheus/hamlet.rules.yml"
	b, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := yaml.Parser().Unmarshal(b); err != nil {
		t.Fatalf("%s: %v", rules, err)
	}
	registry := prometheus.NewRegistry()
	NewMetrics(registry)
	background.New(registry).Close()
	descs := make(chan *prometheus.Desc, 1000)
	registry.Describe(descs)
	close(descs)
	known := map[string]string{} // metric → its description
	name := regexp.MustCompile(`fqName: "(\w+)"`)
	for d := range descs {
		known[name.FindStringSubmatch(d.String())[1]] = d.String()
	}
	used := regexp.MustCompile(`\bhamlet_\w+`).FindAllString(string(b), -1)
	for _, u := range used {
		base := regexp.MustCompile(`_(sum|count|bucket)$`).ReplaceAllString(u, "")
		if known[u] == "" && known[base] == "" {
			t.Errorf("%s: there is no metric %s", rules, u)
		}
	}
	for _, want := range []string{"hamlet_alarm", "hamlet_alerts_pending", "hamlet_rebuilds_total"} {
		if !slices.Contains(used, want) {
			t.Errorf("%s does not look at %s", rules, want)
		}
	}
	for _, label := range []string{"partition", "kind", "body"} {
		if !regexp.MustCompile(`variableLabels: \{[^}]*\b` + label + `\b`).MatchString(known["hamlet_alarm"]) {
			t.Errorf("hamlet_alarm has no label %s: %s", label, known["hamlet_alarm"])
		}
	}
}
