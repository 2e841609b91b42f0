package learner

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/service/background"
	"hamlet/stream"
)

const rulesFile = "../../../../deploy/prometheus/hamlet.rules.yml"

// elsewhere reports whether a metric is another service's, which tests the rules itself.
func elsewhere(metric string) bool {
	for _, prefix := range []string{"hamlet_scorer_", "hamlet_gateway_", "hamlet_self_label_", "hamlet_oracle_",
		"hamlet_ingest_", "hamlet_log_"} {
		if strings.HasPrefix(metric, prefix) {
			return true
		}
	}
	return false
}

// The alerting rules in deploy use existing metrics and labels.
func TestAlertingRules(t *testing.T) {
	b, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := yaml.Parser().Unmarshal(b); err != nil {
		t.Fatalf("%s: %v", rulesFile, err)
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
		if known[u] == "" && known[base] == "" && !elsewhere(u) {
			t.Errorf("%s: there is no metric %s", rulesFile, u)
		}
	}
	for _, want := range []string{"hamlet_alarm", "hamlet_alerts_total", "hamlet_alerts_pending", "hamlet_rebuilds_total"} {
		if !slices.Contains(used, want) {
			t.Errorf("%s does not look at %s", rulesFile, want)
		}
	}
	for _, metric := range []string{"hamlet_alarm", "hamlet_alerts_total"} {
		for _, label := range []string{"partition", "kind", "body"} {
			if !regexp.MustCompile(`variableLabels: \{[^}]*\b` + label + `\b`).MatchString(known[metric]) {
				t.Errorf("%s has no label %s: %s", metric, label, known[metric])
			}
		}
	}
}

// A rule is one rule of the file.
type rule struct {
	Alert, Record, Expr, For string
	Labels                   map[string]string
}

func alertingRules(t *testing.T) (out []rule) {
	t.Helper()
	b, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := yaml.Parser().Unmarshal(b)
	if err != nil {
		t.Fatalf("%s: %v", rulesFile, err)
	}
	if b, err = json.Marshal(tree); err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []rule } }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

// An alarm may be over before the next scrape. So a rule with "for" must test whether
// an alarm was raised within a longer window, not whether it stands.
func TestRulesDoNotMissAShortAlarm(t *testing.T) {
	windows := map[string]time.Duration{} // of recorded alarms
	about := map[string]bool{}            // kinds that rules are about
	recorded := regexp.MustCompile(`^(hamlet:alarm:\w+)\{kind="([a-z-]+)"\}`)
	raised := regexp.MustCompile(`increase\(hamlet_alerts_total\{state="(?:raised|suspected)"\}\[(\w+)\]\)`)
	for _, r := range alertingRules(t) {
		window := raised.FindStringSubmatch(r.Expr)
		switch m := recorded.FindStringSubmatch(r.Expr); {
		case r.Record != "" && window != nil:
			d, err := time.ParseDuration(window[1])
			if err != nil {
				t.Fatal(err)
			}
			windows[r.Record] = d
		case regexp.MustCompile(`hamlet_alarm\b`).MatchString(r.Expr):
			t.Errorf("%s%s looks at alarms only as they stand when they are scraped: %s", r.Alert, r.Record, r.Expr)
		case m != nil:
			about[m[2]] = true
			wait := time.Duration(0)
			if r.For != "" {
				var err error
				if wait, err = time.ParseDuration(r.For); err != nil {
					t.Fatal(err)
				}
			}
			if windows[m[1]] <= wait {
				t.Errorf("%s waits %v for what is true for %v", r.Alert, wait, windows[m[1]])
			}
		}
	}
	for _, kind := range stream.AlertKinds {
		if !about[kind] {
			t.Errorf("no rule is about %s", kind)
		}
	}
}

// What has a name pages, and a suspicion is a ticket.
func TestNamesPage(t *testing.T) {
	about := regexp.MustCompile(`^hamlet:alarm:\w+\{kind="([a-z-]+)"\}`)
	for _, r := range alertingRules(t) {
		m := about.FindStringSubmatch(r.Expr)
		if m == nil {
			continue
		}
		want := "page"
		if m[1] == stream.AlertUnknown {
			want = "ticket"
		}
		if got := r.Labels["severity"]; got != want {
			t.Errorf("%s is a %s, want a %s", r.Alert, got, want)
		}
	}
}

// Counters whose increase rules use start at 0: Prometheus sees no increase in a series
// that begins with 1.
func TestCountersBeginAtZero(t *testing.T) {
	r := newRig(t)
	registry := prometheus.NewRegistry()
	beside := background.New(registry)
	defer beside.Close()
	cfg := r.config()
	cfg.Metrics = NewMetrics(registry)
	cfg.Model.TextEnsembles = []string{"logit-trees", "viboost"}
	opened(t, cfg)
	got := gathered(t, registry)
	there := map[string]bool{}
	for series, v := range got {
		name, _, _ := strings.Cut(series, "{")
		there[name] = true
		if strings.HasSuffix(name, "_total") && v != 0 && series != "hamlet_learner_takeovers_total{free}" { // it is active
			t.Errorf("%s begins with %v", series, v)
		}
	}
	counted := regexp.MustCompile(`(?:increase|rate)\((hamlet_\w+)`)
	for _, rule := range alertingRules(t) {
		for _, m := range counted.FindAllStringSubmatch(rule.Expr, -1) {
			name := strings.TrimSuffix(m[1], "_sum")
			if !there[name] && !elsewhere(name) {
				t.Errorf("%s%s takes the increase of %s, which has no series yet", rule.Alert, rule.Record, name)
			}
		}
	}
	for _, series := range []string{
		"hamlet_alerts_total{text,concept,0,raised}", "hamlet_alerts_total{text,unknown,0,suspected}", "hamlet_alerts_total{text,source,0,raised}",
		"hamlet_alerts_total{vector,label-noise,0,cleared}", "hamlet_alerts_total{text,covariate,0,raised}",
		"hamlet_rebuilds_total{logit-trees,failed}", "hamlet_rebuilds_total{viboost,ok}",
		"hamlet_learner_records_total{dead-letter,0}", "hamlet_learner_records_total{assumed,0}", "hamlet_learner_records_total{not-assumed,0}", "hamlet_learner_doubted_labels_total{ham}",
	} {
		if _, ok := got[series]; !ok {
			t.Errorf("there is no %s", series)
		}
	}
}
