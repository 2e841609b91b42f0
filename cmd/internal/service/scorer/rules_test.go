package scorer

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The alerting rules in deploy use existing metrics of the scorer, those of pins among
// them.
func TestAlertingRules(t *testing.T) {
	const file = "../../../../deploy/prometheus/hamlet.rules.yml"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	New(Config{Registerer: registry})
	descs := make(chan *prometheus.Desc, 1000)
	registry.Describe(descs)
	close(descs)
	var known []string
	name := regexp.MustCompile(`fqName: "(\w+)"`)
	for d := range descs {
		known = append(known, name.FindStringSubmatch(d.String())[1])
	}
	used := regexp.MustCompile(`\bhamlet_scorer_\w+`).FindAllString(string(b), -1)
	for _, u := range used {
		if !slices.Contains(known, u) {
			t.Errorf("%s: there is no metric %s", file, u)
		}
	}
	for _, want := range []string{"hamlet_scorer_lost_pins", "hamlet_scorer_pinned", "hamlet_scorer_mail_failing"} {
		if !slices.Contains(used, want) {
			t.Errorf("%s does not look at %s", file, want)
		}
	}
}
