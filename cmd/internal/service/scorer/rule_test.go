package scorer

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/promise"
	"hamlet/algos/text"
	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/service/strictness"
	"hamlet/cmd/internal/testkit/await"
	"hamlet/stream"
	"hamlet/stream/questions"
)

// ruledBy are rules of tenants that stay as they are.
type ruledBy strictness.Rules

func (r ruledBy) Strictness() strictness.Rules { return strictness.Rules(r) }

func (r ruledBy) Watch(ctx context.Context) error { <-ctx.Done(); return nil }

// judging returns a model that was taught spam and ham in turn. It counts so much ham of each tenant.
func judging(t testing.TB, ham map[string]int) *model.Model {
	t.Helper()
	m, err := model.New(model.Config{TableBits: 10, TextExperts: []string{text.Lean}, DuplicateWindow: 100})
	if err != nil {
		t.Fatal(err)
	}
	for tenant, n := range ham {
		for i := range 2 * n {
			teachJudged(t, m, tenant, i%2 == 0, i%2 == 0)
		}
	}
	return m
}

// teachJudged teaches a message whose label was asked for. It reads like spam or like ham.
func teachJudged(t testing.TB, m *model.Model, tenant string, like, spam bool) {
	t.Helper()
	i := m.Events()
	body := fmt.Appendf(nil, "agenda of meeting %d is attached", i%100)
	if like {
		body = fmt.Appendf(nil, "claim prize %d now, you have won", i%100)
	}
	ex := model.Example{ID: fmt.Sprint(i), Source: "review", Spam: spam, SampleWeight: 1,
		Body: model.Body{Tenant: tenant, Message: &feature.Message{Body: body, BodyBytes: len(body)}}}
	if _, err := m.Apply(&ex); err != nil {
		t.Fatal(err)
	}
}

// Which rule decides, and from when on it is spam.
func TestRuleOfATenant(t *testing.T) {
	served := servedOf(t, judging(t, map[string]int{"many": 400, "few": 200, "default": 10}))
	named := ruledBy{
		"many": {LoseAtMost: 0.01}, "few": {LoseAtMost: 0.01}, "strict": {LoseAtMost: 0.001},
		"shop": {SpamAt: 0.99, HamAt: 0.2}, "alice": {Cost: 50, HamAt: 0.1}, "even": {Cost: 1},
	}
	none := Config{SpamAt: 0.9, HamAt: 0.5, Tenants: named}
	budget, never, high := none, none, none
	budget.LoseAtMost, never.NeverUntilPromised, high.SpamAt = 0.01, true, 0.9999999
	never.LoseAtMost = 0.001
	promised := func(tenant string) float64 {
		table := served.model.Promise(tenant)
		if tenant == "" {
			table = served.model.PromiseAll()
		}
		bound := table.Threshold(0.01)
		if !bound.Promised() {
			t.Fatalf("%q: 1 %% is not promised: %+v", tenant, bound)
		}
		return probability(max(bound.LogOdds, 0))
	}
	for _, c := range []struct {
		name      string
		cfg       Config
		tenant    string
		withdrawn bool
		by        stream.RuleName // "": the scorer's fixed thresholds
		spamAt    float64         // 0: nothing is spam
		hamAt     float64
	}{
		{"no rule of its own", none, "default", false, "", 0.9, 0.5},
		{"an incident without a budget", none, "default", true, "", 0.9, 0.5},
		{"fixed thresholds", none, "shop", false, stream.RuleFixed, 0.99, 0.2},
		{"a cost", none, "alice", false, stream.RuleCost, 50. / 51, 0.1},
		{"a cost below the usual border of ham", none, "even", false, stream.RuleCost, 0.5, 0.5},
		{"a budget of a tenant", none, "many", false, stream.RuleBudget, promised("many"), 0.5},
		{"200 ham", none, "few", false, stream.RuleNotYet, 0.9, 0.5},
		{"no ham", none, "strict", false, stream.RuleNotYet, 0.9, 0.5},
		{"no ham, and nothing until then", never, "strict", false, stream.RuleNotYet, 0, 0.5},
		{"200 ham in an incident", none, "few", true, stream.RuleNotYet, 0.9, 0.5},
		{"the scorer's budget", budget, "default", false, stream.RuleBudget, promised(""), 0.5},
		{"of a request without a tenant", budget, "", false, stream.RuleBudget, promised(""), 0.5},
		{"the scorer's budget, too small", never, "default", false, stream.RuleNotYet, 0, 0.5},
		{"which a tenant's rule leaves out", budget, "shop", false, stream.RuleFixed, 0.99, 0.2},
		{"withdrawn", none, "many", true, stream.RuleWithdrawn, max(0.9, promised("many")), 0.5},
		{"withdrawn, with a stricter threshold", high, "many", true, stream.RuleWithdrawn, high.SpamAt, 0.5},
		{"withdrawn, and nothing until then", never, "many", true, stream.RuleWithdrawn, 0, 0.5},
	} {
		served.withdrawn = c.withdrawn
		served.rulings.Clear()
		rules := newRules(&c.cfg)
		r := rules.of(served, rules.ofTenants(), c.tenant)
		if again := rules.of(served, rules.ofTenants(), c.tenant); again != r {
			t.Errorf("%s: it is computed twice", c.name)
		}
		told := r.told
		if told == nil {
			told = &stream.Rule{SpamAt: r.spamAt}
		}
		if told.By != c.by || math.Abs(told.SpamAt-c.spamAt) > 1e-12 || r.hamAt != c.hamAt {
			t.Errorf("%s: %+v, ham up to %v; want %q, %v, %v", c.name, *told, r.hamAt, c.by, c.spamAt, c.hamAt)
		}
		if (told.By == stream.RuleNotYet) != (told.Missing > 0) || told.By == stream.RuleBudget && told.Ham < 400 {
			t.Errorf("%s: it rests on %v ham, and %v are missing", c.name, told.Ham, told.Missing)
		}
		// Decision and margin agree with what is told, the interval's rule apart.
		for _, logOdds := range []float64{-30, -2, -0.1, 0, 1, 2.5, 4, 9, 30} {
			p := probability(logOdds)
			d, margin := r.decide(p, logOdds, p)
			want := stream.DecideUnsure
			if c.spamAt > 0 && logOdds >= math.Log(c.spamAt/(1-c.spamAt)) && p >= 0.5 {
				want = stream.DecideSpam
			} else if p <= c.hamAt {
				want = stream.DecideHam
			}
			if edge := math.Abs(p-c.spamAt) < 1e-9 || math.Abs(p-0.5) < 1e-9; d != want && !edge || (margin >= 0) != (d == stream.DecideSpam) {
				t.Errorf("%s: p %v is %s with the margin %v, want %s", c.name, p, d, margin, want)
			}
		}
		if d, _ := r.decide(probability(9), 9, 0.4); d == stream.DecideSpam != (r.byLogOdds && 9 >= r.logOdds) {
			t.Errorf("%s: an interval below ½ makes it %s", c.name, d)
		}
	}
}

// Of 200 ham nothing is promised, whatever the budget up to 1 %.
func TestTwoHundredHamPromiseNothing(t *testing.T) {
	served := servedOf(t, judging(t, map[string]int{"few": 200}))
	for _, budget := range []strictness.Share{0.0001, 0.001, 0.002, 0.005, 0.01} {
		rules := newRules(&Config{SpamAt: 0.9, HamAt: 0.5, Tenants: ruledBy{"few": {LoseAtMost: budget}}})
		told := rules.of(served, rules.ofTenants(), "few").told
		if told.By != stream.RuleNotYet || told.Ham != 200 || told.Missing < 1 || told.LoseAtMost != float64(budget) {
			t.Errorf("%v: %+v", budget, told)
		}
	}
}

// Where there is ham enough and no threshold keeps a budget, nothing is called spam: it is not "not yet".
func TestBrokenBudget(t *testing.T) {
	table := new(promise.Table)
	for _, c := range []struct {
		ham    int
		like   float64 // the log-odds with which they were judged
		by     stream.RuleName
		p      float64 // is called what
		answer stream.Decision
	}{
		{250, -5, stream.RuleNotYet, 0.95, stream.DecideSpam},
		{1, 30, stream.RuleNotYet, 0.95, stream.DecideSpam},
		{70, -5, stream.RuleBroken, 1, stream.DecideUnsure},
		{300, -5, stream.RuleBudget, 1, stream.DecideSpam},
	} {
		for range c.ham {
			table.Observe(c.like, 1)
		}
		for _, withdrawn := range []bool{false, true} {
			want, answer := c.by, c.answer
			if withdrawn && want == stream.RuleBudget {
				want = stream.RuleWithdrawn
			}
			r := newRules(&Config{SpamAt: 0.9, HamAt: 0.5})
			made := r.fixed
			made.bound = table.Threshold(0.01)
			if by := r.keep(&made, withdrawn); by != want {
				t.Errorf("%v ham, incident %v: %s, want %s", table.Ham(), withdrawn, by, want)
			}
			if d, _ := made.decide(c.p, 30, c.p); d != answer {
				t.Errorf("%v ham, incident %v: p %v is %s, want %s", table.Ham(), withdrawn, c.p, d, answer)
			}
		}
	}
}

// Only an incident that is raised withdraws a promise, and not one about a source.
func TestWithdraws(t *testing.T) {
	for kind, want := range map[string]bool{
		stream.AlertConcept: true, stream.AlertCovariate: true, stream.AlertLabelNoise: true,
		stream.AlertSource: false, stream.AlertUnknown: false,
	} {
		open := []stream.OpenIncident{{Kind: stream.AlertUnknown, State: stream.AlertSuspected}, {Kind: kind, State: stream.AlertRaised}}
		if got := withdraws(open); got != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
	if withdraws(nil) || withdraws([]stream.OpenIncident{{Kind: stream.AlertConcept, State: stream.AlertSuspected}}) {
		t.Error("a suspicion withdraws")
	}
}

// Budgets over NATS: what is promised, what becomes of it when the labels turn around, and what a file of tenants
// says once it is written again.
func TestBudgetsOverNATS(t *testing.T) {
	url, r := startNATS(t), miniredis.RunT(t)
	l := newTeacher(t, openStore(t, r))
	l.model = judging(t, map[string]int{"org": 400})
	l.predictor = l.model.NewPredictor()
	save := func() string {
		l.position = l.position.Advance(int64(l.model.Events()), nil, nil)
		return l.save()
	}
	sum := save()
	path := filepath.Join(t.TempDir(), "tenants.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte("strictness: "+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("{org: {lose-at-most: 1%}}")
	tenants, err := gateway.OpenTenants(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	start(t, Config{Questions: over(connect(t, url)), Store: openStore(t, r), LoseAtMost: 0.001, Tenants: tenants, Registerer: registry})
	c := ask(t, url)
	awaitModel(t, c, sum)
	of := func(tenant string) stream.Rule {
		t.Helper()
		verdicts, err := c.Ask(patience(t), questions.Question{Body: []byte(question), ContentType: questions.Text, Tenant: tenant})
		if err != nil || verdicts[0].Rule == nil {
			t.Fatalf("%+v, %v", verdicts, err)
		}
		return *verdicts[0].Rule
	}

	promised := of("org")
	if promised.By != stream.RuleBudget || promised.LoseAtMost != 0.01 || promised.Ham != 400 || promised.SpamAt < 0.5 {
		t.Errorf("a budget of 1 %% on 400 ham: %+v", promised)
	}
	if own := of("other"); own.By != stream.RuleNotYet || own.SpamAt != 0.9 || own.Ham != 400 || own.Missing < 2000 {
		t.Errorf("a budget of .1 %% on 400 ham: %+v", own)
	}
	info, err := c.Info(patience(t))
	if err != nil || info.Rule == nil || *info.Rule != of("other") || info.SpamAt != 0.9 {
		t.Errorf("info: %+v, %v", info, err)
	}
	want := `
# HELP hamlet_scorer_promise_kept 1 while a tenant's budget decides what is spam; 0: something stands in for it.
# TYPE hamlet_scorer_promise_kept gauge
hamlet_scorer_promise_kept{tenant=""} 0
hamlet_scorer_promise_kept{tenant="org"} 1
# HELP hamlet_scorer_promise_ham Judged ham whose label was asked for, by its weight, that a tenant's budget rests on.
# TYPE hamlet_scorer_promise_ham gauge
hamlet_scorer_promise_ham{tenant=""} 400
hamlet_scorer_promise_ham{tenant="org"} 400
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "hamlet_scorer_promise_kept", "hamlet_scorer_promise_ham"); err != nil {
		t.Error(err)
	}

	for n := 0; !withdraws(servedOf(t, l.model).info.Incidents); n++ { // the labels turn around
		if n == 40 {
			t.Fatalf("no incident was raised: %+v", l.model.Incidents())
		}
		for i := range 50 {
			teachJudged(t, l.model, "org", i%2 == 0, i%2 != 0)
		}
	}
	awaitModel(t, c, save())
	if now := of("org"); now.By != stream.RuleWithdrawn || now.SpamAt < 0.9 || now.SpamAt < promised.SpamAt {
		t.Errorf("with an incident: %+v", now)
	}

	write("{org: {cost: 50}, other: {spam-at: 0.99}}")
	await.Until(t, func() bool { return of("org").By == stream.RuleCost }, func() string { return "the file is never read again" })
	if other := of("other"); other != (stream.Rule{By: stream.RuleFixed, SpamAt: 0.99}) {
		t.Errorf("the other tenant: %+v", other)
	}
}
