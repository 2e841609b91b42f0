package model_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/text"
)

func TestDifferences(t *testing.T) {
	for _, tt := range []struct {
		here, model model.Config
		want        []string
	}{
		{model.Config{}, model.Config{}, nil},
		{model.Config{}, model.Config{TableBits: 18, LabelTrust: "text", DuplicateWindow: 100_000}, nil},
		{model.Config{Dense: []string{"b", "a"}}, model.Config{Dense: []string{"a", "b"}}, nil},
		{model.Config{TableBits: 18}, model.Config{TableBits: 20}, []string{"table_bits: 18 here, 20 in the model"}},
		{model.Config{Dense: []string{"a", "b", "c", "d", "e"}}, model.Config{Dense: []string{"e"}},
			[]string{`dense: 5 names (with "a", "b", "c", …) here, 1 name in the model`}},
		{model.Config{DuplicateWindow: 5, LabelTrust: model.TrustAll, TextExperts: []string{text.LeanOpening}}, model.Config{TextExperts: []string{text.Lean}}, []string{
			"duplicate_window: 5 here, 100000 in the model",
			"text_experts: lean-opening-4grams here, lean-header-words,lean-text-5grams,lean-text-words,lean-opening-4grams in the model",
			"label_trust: all here, text in the model",
		}},
	} {
		if diff := cmp.Diff(tt.want, tt.here.Differences(tt.model)); diff != "" {
			t.Errorf("%+v and %+v (-want +got):\n%s", tt.here, tt.model, diff)
		}
	}
}

// A field that Differences forgets is one that a learner would change silently.
func TestDifferencesKnowEveryField(t *testing.T) {
	other := model.Config{TableBits: 9, Dense: []string{"x"}, DuplicateWindow: 9, TextExperts: []string{text.LeanOpening}, LabelTrust: model.TrustNone, TrustBy: model.TrustByAll, Standing: model.StandingNone, SpamShare: true, SkipHeaders: []string{"x"}, Frozen: strings.Repeat("0", 64),
		TextHead: model.Head{HalfLife: 9}, VectorHead: model.Head{Site: model.SiteJaakkolaJordan},
		TextEnsembles: []string{"adaboost"}, VectorEnsembles: []string{"bblr", "viboost"}, SecondHead: 0.99,
		Window: 100, Rebuild: 50, Rounds: 20, Alarms: model.Alarms{Drop: 0.3}}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(other.JSON(), &fields); err != nil {
		t.Fatal(err)
	}
	d := other.Differences(model.Config{})
	for name := range fields {
		if !slices.ContainsFunc(d, func(s string) bool { return strings.HasPrefix(s, name+": ") || strings.HasPrefix(s, name+".") }) {
			t.Errorf("%s differs, and is not among %q", name, d)
		}
	}
}

// A configuration may come from damaged bytes. The time to refuse a list grows with its
// length, not with its square: this would take minutes.
func TestLongListsAreRefused(t *testing.T) {
	names := make([]string, 500_000)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	if _, err := model.New(model.Config{Dense: names}); err == nil || !strings.Contains(err.Error(), "more than 4096") {
		t.Errorf("error %v", err)
	}
	if _, err := model.New(model.Config{SkipHeaders: append(names, names[7])}); err == nil || !strings.Contains(err.Error(), `"7" is given twice`) {
		t.Errorf("error %v", err)
	}
}

// The bounds in a tag are those of package feature.
func TestTableBitsAreTheHashers(t *testing.T) {
	for bits, want := range map[int]bool{
		feature.MinTableBits - 1: false, feature.MinTableBits: true, feature.MaxTableBits - 1: true, feature.MaxTableBits: false,
	} {
		if _, err := model.New(model.Config{TableBits: bits}); (err == nil) != want {
			t.Errorf("%d table bits: %v", bits, err)
		}
	}
}

// Each field can be set from a text, and Get gives the text back. What the tags say of
// it is what New does.
func TestFields(t *testing.T) {
	texts := map[string]string{
		"dense": "a,b", "text_experts": "text-words", "personal_experts": "header-words", "skip_headers": "received", "label_trust": "none", "trust_by": "all", "standing": "none",
		"text_ensembles": "adaboost", "vector_ensembles": "viboost,bblr", "second_head": "0.99", "rebuild": "50",
		"text_head.site": "jj", "vector_head.site": "exact-rvga", "alarms.drop": "0.3", "alarms.clear": "0.01",
		"alarms.confirmed": "0.15", "alarms.flip_rate": "0.02", "alarms.covariate": "0.7", "alarms.concept": "30",
		"table_bits": "9", "spam_share": "true", "alarms.off": "true", "set_aside": "0123456789abcdef",
	}
	for _, f := range model.Fields() {
		if f.Key == "frozen" { // it needs the expert too: frozen_test.go
			continue
		}
		text := texts[f.Key]
		if text == "" {
			text = "77"
		}
		var c model.Config
		if err := c.Set(f.Key, text); err != nil {
			t.Errorf("%s: %v", f.Key, err)
			continue
		}
		if _, err := model.New(c); err != nil {
			t.Errorf("%s = %s: %v", f.Key, text, err)
		}
		got, err := c.Get(f.Key)
		if err != nil || got != text {
			t.Errorf("%s: got %q (%v), want %q", f.Key, got, err, text)
		}
		d := c.Differences(model.Config{TextExperts: []string{"lean"}})
		if !slices.ContainsFunc(d, func(s string) bool { return strings.HasPrefix(s, f.Key+": "+text+" here, ") }) {
			t.Errorf("%s = %s is not among the differences %q", f.Key, text, d)
		}
		if f.Help == "" || f.Default == "" {
			t.Errorf("%s has the help %q and the default %q", f.Key, f.Help, f.Default)
		}
		m := newModel(t, model.Config{})
		if f.Key == "without_sources" { // it can only become shorter: leftout_test.go
			m = newModel(t, model.Config{WithoutSources: []string{text}})
			c.WithoutSources = nil
		}
		if err := m.Adopt(c); (err == nil) != f.Adoptable {
			t.Errorf("%s, adoptable %v: Adopt says %v", f.Key, f.Adoptable, err)
		}
		empty, err := model.Config{}.Get(f.Key)
		if full := newModel(t, model.Config{}).Config(); err != nil {
			t.Error(err)
		} else if now, _ := full.Get(f.Key); now != empty && now != f.Default && !strings.HasPrefix(f.Default, now) &&
			!slices.Contains([]string{"text_experts", "label_trust", "alarms.clear"}, f.Key) { // said in words
			t.Errorf("%s is %s by default, its help says %s", f.Key, now, f.Default)
		}
	}
	for _, bad := range [][2]string{
		{"nothing", "1"}, {"table_bits", "many"}, {"second_head", "NaN"}, {"second_head", "1e999"}, {"spam_share", "perhaps"},
	} {
		if err := new(model.Config).Set(bad[0], bad[1]); err == nil || !strings.Contains(err.Error(), bad[0]) {
			t.Errorf("%s = %s: error %v", bad[0], bad[1], err)
		}
	}
	if err := new(model.Config).Set("text_experts", "none"); err == nil || !strings.Contains(err.Error(), "at least one of full, lean, header-words") {
		t.Errorf("no experts: error %v", err)
	}
	var none model.Config
	if err := none.Set("vector_ensembles", "none"); err != nil || none.VectorEnsembles == nil || len(none.VectorEnsembles) > 0 {
		t.Errorf("none is %v (%v), want an empty list that is not nil", none.VectorEnsembles, err)
	}
}

func TestJSONIsCanonical(t *testing.T) {
	const want = `{"table_bits":18,"dense":["a","b"],"duplicate_window":100000,` +
		`"text_experts":["header-words","text-4grams-bayes","text-words-bayes","text-words-robust",` +
		`"header-5grams","text-bytes","words-by-length","header-words-robust","text-5grams-robust","text-shapes"],"skip_headers":[],"label_trust":"all","trust_by":"source","standing":"agreement","spam_share":false,` +
		`"text_head":{"site":"rvga","half_life":0,"refresh":0},"vector_head":{"site":"rvga","half_life":0,"refresh":0},` +
		`"text_ensembles":[],"vector_ensembles":["logit-trees"],"second_head":0,"window":4000,"rebuild":500,"rounds":100,` +
		`"alarms":{"off":false,"drop":0.2,"confirmed":0.1,"flip_rate":0.01,"clear":0.05,"covariate":0.65,"concept":28}}`
	c := model.Config{Dense: []string{"b", "a"}}
	if got := string(c.JSON()); got != want {
		t.Errorf("JSON %s, want %s", got, want)
	}
	if c.Dense[0] != "b" {
		t.Error("JSON has sorted its owner's names")
	}
}

func TestNewReportsEveryBadField(t *testing.T) {
	_, err := model.New(model.Config{
		TableBits: 25, Dense: []string{"a", "", "a"}, DuplicateWindow: -1,
		TextExperts: []string{"bigrams", text.LeanOpening, text.LeanOpening}, LabelTrust: "maybe", TrustBy: "nobody",
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"table_bits: 25 is not in 8…23", "dense: a name is empty", `dense: "a" is given twice`, "duplicate_window: -1",
		`text_experts: "bigrams" is not one of full, lean, header-words`, `text_experts: "lean-opening-4grams" is given twice`, `label_trust: "maybe"`, `trust_by: "nobody"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
}

// What ensembles keep of dense names is bounded as a whole, not by each factor alone.
func TestNewBoundsWhatEnsemblesKeep(t *testing.T) {
	names := make([]string, 600)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	cfg := model.Config{TableBits: 8, Dense: names, Window: model.MaxWindow, VectorEnsembles: []string{"logit-trees"}}
	if _, err := model.New(cfg); err == nil || !strings.Contains(err.Error(), "window + rebuild: 66036 events of 600 dense names") ||
		!strings.Contains(err.Error(), "take at most 55924 events") {
		t.Errorf("%d names in a window of %d: %v", len(cfg.Dense), cfg.Window, err)
	}
	cfg.Window = 55_400
	if _, err := model.New(cfg); err != nil {
		t.Errorf("%d names in a window of %d: %v", len(cfg.Dense), cfg.Window, err)
	}
	cfg.Window, cfg.VectorEnsembles = model.MaxWindow, []string{}
	if _, err := model.New(cfg); err != nil {
		t.Errorf("without ensembles: %v", err)
	}
}

func TestAdopt(t *testing.T) {
	m := newModel(t, small)
	events := madeUp(100, 1)
	apply(t, m, events)
	before := sumOf(t, m)

	if err := m.Adopt(small); err != nil || sumOf(t, m) != before || len(m.Adoptions()) != 0 {
		t.Errorf("adopting its own configuration: %v, %d recorded", err, len(m.Adoptions()))
	}
	cfg := small
	cfg.TableBits, cfg.LabelTrust = 12, model.TrustAll
	if err := m.Adopt(cfg); err == nil || !strings.Contains(err.Error(), "table_bits: 12 here, 10 in the model") ||
		strings.Contains(err.Error(), "label_trust") {
		t.Errorf("adopting other tables: %v", err)
	}
	cfg = small
	cfg.LabelTrust = "perhaps"
	if err := m.Adopt(cfg); err == nil {
		t.Error("adopted an invalid configuration")
	}
	if sumOf(t, m) != before {
		t.Error("refused adoptions have changed the model")
	}

	cfg = small
	cfg.LabelTrust, cfg.TrustBy, cfg.DuplicateWindow = model.TrustAll, model.TrustByAll, 10
	if err := m.Adopt(cfg); err != nil {
		t.Fatal(err)
	}
	m, err := model.Restore(bytesOf(t, m))
	if err != nil {
		t.Fatal(err)
	}
	was := m.Adoptions()
	if len(was) != 1 || was[0].Events != 100 || was[0].Config.DuplicateWindow != 50 || was[0].Numerics != model.CurrentNumerics() {
		t.Errorf("recorded %+v, want the old configuration at event 100", was)
	}
	if d := cfg.Differences(m.Config()); len(d) > 0 {
		t.Errorf("after adoption: %q", d)
	}
	for i := 99; i >= 89; i-- {
		if effect, err := m.Apply(&events[i]); err != nil || effect.Duplicate != (i >= 90) {
			t.Errorf("event %d again, with the last 10 known: %+v, %v", i, effect, err)
		}
	}
}

// Learners that take turns adopt without end; the model keeps the last 32 times.
func TestAdoptionsAreBounded(t *testing.T) {
	m := newModel(t, small)
	events := madeUp(100, 1)
	for i := range events {
		apply(t, m, events[i:i+1])
		cfg := small
		cfg.TrustBy = []string{model.TrustByAll, model.TrustBySource}[i%2]
		if err := m.Adopt(cfg); err != nil {
			t.Fatal(err)
		}
	}
	all := m.Adoptions()
	if len(all) != 32 || all[0].Events != 69 || all[31].Events != 100 {
		t.Fatalf("%d adoptions, the last %+v; want 32, of events 69 to 100", len(all), all[len(all)-1])
	}
	restored, err := model.Restore(bytesOf(t, m))
	if err != nil || len(restored.Adoptions()) != 32 {
		t.Errorf("restored: %v", err)
	}
}
