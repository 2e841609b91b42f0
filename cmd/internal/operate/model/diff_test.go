package model_test

import (
	"math"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/algos/trust"
	operate "hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/process/cli"
)

func TestDiff(t *testing.T) {
	r := newRig(t)
	words := func(cfg *model.Config) { cfg.TextExperts = []string{"text-words"} }
	r.save("spam", checkpoint(t, made(t, 60, words), 60))
	m := made(t, 100, func(cfg *model.Config) {
		cfg.TextExperts = []string{"text-words", "text-3grams"}
		cfg.Standing, cfg.SecondHead = "none", 0.99
	})
	if err := m.SetRole("bad", trust.Muted); err != nil {
		t.Fatal(err)
	}
	if err := m.SetRole("new", trust.Anchor); err != nil {
		t.Fatal(err)
	}
	r.save("spam", checkpoint(t, m, 100))
	r.write("saved", checkpoint(t, m, 0).Model)
	r.must("diff spam DIR/saved", "^the same model: sha256 ")
	r.must("diff spam@1 spam", `version +1 +2\n`, `events +60 +100 +\+40`, `standing +agreement +none`, `(?m)weight of .*, text +-?\d.* sd$`,
		`table of text-3grams +none +\d+\.\d %`, `weight of second head in the stack, text +none +\d\.\d+`,
		`source new +unknown +anchor, 0 labels`, `source bad +ordinary, 12 labels, .* muted, 20 labels`)
	d := r.object("diff spam@1 DIR/saved --limit 3")["partitions"].([]any)[0].(map[string]any)
	weights := d["weights"].([]any)
	if d["same"] != false || len(weights) != 3 || len(d["settings"].([]any)) != 3 || len(d["ensembles"].([]any)) != 2 {
		t.Errorf("in JSON: %v", d)
	}
	sd := func(i int) float64 { return math.Abs(weights[i].(map[string]any)["sd"].(float64)) }
	if sd(0) < sd(1) || sd(1) < sd(2) || sd(0) == 0 {
		t.Errorf("the largest difference is not first: %v", weights)
	}
	r.fails("diff spam", cli.StatusUsage, "<b>")
	r.fails("diff spam spam --limit -1", cli.StatusUsage, "--limit")
}

// Compare says which model lacks what, puts the largest change first, and cuts.
func TestCompare(t *testing.T) {
	weight := func(name string, mean, sd float64) model.Weight {
		return model.Weight{Body: "text", Name: name, Mean: mean, SD: sd}
	}
	a := &operate.Facts{Side: operate.Side{SHA256: "a"}, Weights: []model.Weight{weight("little", 1, 3), weight("much", 1, 0.3), weight("gone", 1, 1), weight("same", 2, 1), weight("sure", 0, 0)},
		Tables:  []model.TableUse{{Body: "text", Experts: []string{"one", "two"}, Slots: 8, Used: 2}, {Body: "text", Experts: []string{"full"}, Slots: 8, Used: 8}},
		Stacks:  []model.StackState{{Body: "vector", Members: []model.StackMember{{Name: "head", Built: true, Mean: 0.5}, {Name: "logit-trees"}, {Name: "never"}}}},
		Sources: []operate.Source{{Source: "a", Weight: 1}, {Source: "b", Weight: 1}, {Source: "c", Weight: 1}, {Source: "same", Weight: 1}}}
	b := &operate.Facts{Side: operate.Side{SHA256: "b"}, Weights: []model.Weight{weight("little", 2, 4), weight("much", 0, 0.4), weight("same", 2, 1), weight("sure", 1, 0)},
		Tables:  []model.TableUse{{Body: "text", Experts: []string{"one", "two"}, Slots: 8, Used: 4}, {Body: "text", Experts: []string{"full"}, Slots: 8, Used: 8}},
		Stacks:  []model.StackState{{Body: "vector", Members: []model.StackMember{{Name: "head", Built: true, Mean: 0.5}, {Name: "logit-trees", Built: true, Mean: 0.2}, {Name: "never"}}}},
		Sources: []operate.Source{{Source: "a", Weight: 0.9}, {Source: "b", Weight: 0.2}, {Source: "same", Weight: 1.001}}}
	d := operate.Compare(a, b, 0)
	var got []string
	for _, w := range d.Weights {
		got = append(got, w.Input)
	}
	if strings.Join(got, " ") != "much little sure" || math.Abs(d.Weights[0].SD+2) > 1e-12 || math.Abs(d.Weights[1].SD-0.2) > 1e-12 {
		t.Errorf("weights: %+v", d.Weights)
	}
	if len(d.Tables) != 1 || d.Tables[0].Name() != "one, two" || *d.Tables[0].A != 0.25 || *d.Tables[0].B != 0.5 {
		t.Errorf("tables: %+v", d.Tables)
	}
	if len(d.Stacks) != 1 || d.Stacks[0].A != nil || *d.Stacks[0].B != 0.2 {
		t.Errorf("stacks: %+v", d.Stacks)
	}
	if len(d.Sources) != 3 || d.Sources[0].Source != "c" || d.Sources[0].B != nil || d.Sources[1].Source != "b" || d.More != 0 {
		t.Errorf("sources: %+v", d.Sources)
	}
	if d := operate.Compare(a, b, 1); len(d.Weights) != 1 || len(d.Sources) != 1 || d.More != 2 {
		t.Errorf("cut: %+v", d)
	}
}
