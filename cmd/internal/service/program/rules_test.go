package program

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The alerting rules in deploy use existing metrics of ingest.
func TestAlertingRules(t *testing.T) {
	const file = "../../../../deploy/prometheus/hamlet.rules.yml"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	newIngestMetrics(registry)
	descs := make(chan *prometheus.Desc, 1000)
	registry.Describe(descs)
	close(descs)
	var known []string
	for d := range descs {
		known = append(known, regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1])
	}
	used := regexp.MustCompile(`\bhamlet_ingest_\w+`).FindAllString(string(b), -1)
	if len(used) == 0 {
		t.Errorf("%s does not look at ingest", file)
	}
	for _, u := range used {
		if !slices.Contains(known, u) {
			t.Errorf("%s: there is no metric %s", file, u)
		}
	}
}
