package model_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/algos/text"
	"hamlet/algos/trust"
)

// flooded applies the first n sms of an honest source. From event 1,000 on a liar calls three
// hams spam after each. It returns the share of honest events predicted wrong since then.
func flooded(t *testing.T, m *model.Model, n int) (wrong float64) {
	t.Helper()
	events := smsEvents(t)[:n]
	ham := slices.DeleteFunc(slices.Clone(events), func(ex model.Example) bool { return ex.Spam })
	for i := range events {
		ex := events[i]
		ex.Source = "honest"
		effect, err := m.Apply(&ex)
		if err != nil {
			t.Fatal(err)
		}
		if i < 1000 {
			continue
		}
		if (effect.Prediction.LogOdds >= 0) != ex.Spam {
			wrong += 1 / float64(n-1000)
		}
		for k := range 3 {
			lie := ham[(7*i+k)%len(ham)]
			lie.ID, lie.Source, lie.Spam = fmt.Sprint("lie", i, k), "liar", true
			if _, err := m.Apply(&lie); err != nil {
				t.Fatal(err)
			}
		}
	}
	return wrong
}

// A loud liar does not outvote an honest source. Without standing it does.
func TestLoudLiarIsWithstood(t *testing.T) {
	for _, tt := range []struct {
		standing    string
		role        trust.Role
		least, most float64
	}{
		{model.StandingAgreement, trust.Ordinary, 0, 0.03},
		{model.StandingNone, trust.Ordinary, 0.3, 1},
		{model.StandingNone, trust.Muted, 0, 0.03}, // the liar's
	} {
		m := newModel(t, model.Config{TextExperts: []string{text.Lean}, Standing: tt.standing, Alarms: model.Alarms{Off: true}})
		if err := m.SetRole("liar", tt.role); err != nil {
			t.Fatal(err)
		}
		if wrong := flooded(t, m, 1400); wrong < tt.least || wrong > tt.most {
			t.Errorf("standing %s, liar %v: %.3f of the honest events are wrong, want %v to %v", tt.standing, tt.role, wrong, tt.least, tt.most)
		}
	}
}

// A label of little weight by its source's standing is withdrawn with that weight.
func TestLittleWeightIsWithdrawn(t *testing.T) {
	m := newModel(t, model.Config{TableBits: 12, TextExperts: []string{text.Lean}, Alarms: model.Alarms{Off: true}})
	learn := func(id int, source string, lie bool) model.Effect {
		ex := said(id, id%2 == 0, source)
		ex.Spam = ex.Spam != lie
		effect, err := m.Apply(&ex)
		if err != nil {
			t.Fatal(err)
		}
		return effect
	}
	for i := range 400 {
		learn(i, []string{"desk", "trap"}[i/2%2], false)
	}
	var low []int // events of little weight
	for i := 400; i < 460; i++ {
		if e := learn(i, "liar", true); e.Standing < 0.5 && len(low) < 5 {
			low = append(low, i)
		}
	}
	if len(low) == 0 {
		t.Fatal("no label had little weight")
	}
	for _, i := range low {
		ex := said(i, i%2 == 0, "liar")
		ex.ID, ex.Of, ex.Action = fmt.Sprint("un", i), fmt.Sprint(i), model.Unlearn
		effect, err := m.Apply(&ex)
		if err != nil {
			t.Fatal(err)
		}
		if r := effect.Receipt; r.Counted > 0.5 || r.Site.H > 0.1 {
			t.Errorf("event %d was withdrawn from an expert with %v and from the head with %v", i, r.Counted, r.Site.H)
		}
	}
}

// Roles are part of a model's bytes. Ordinary is no role to keep, and their number is bounded.
func TestRoles(t *testing.T) {
	m := newModel(t, model.Config{TableBits: 8, TextExperts: []string{text.LeanOpening}, Alarms: model.Alarms{Off: true}})
	ex := said(0, true, "desk")
	if _, err := m.Apply(&ex); err != nil {
		t.Fatal(err)
	}
	before := bytesOf(t, m)
	for i := range model.MostRoles {
		if err := m.SetRole(fmt.Sprint("s", i), trust.Anchor); err != nil {
			t.Fatal(err)
		}
	}
	var refused *model.RefusedError
	if err := m.SetRole("more", trust.Muted); !errors.As(err, &refused) || !strings.Contains(err.Error(), "256 sources") {
		t.Errorf("one role more: %v", err)
	}
	if err := m.SetRole("s7", trust.Muted); err != nil {
		t.Errorf("another role of a source that has one: %v", err)
	}
	m, err := model.Restore(bytesOf(t, m))
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := m.Role("s6"), m.Role("s7"), m.Role("desk"); a != trust.Anchor || b != trust.Muted || c != trust.Ordinary {
		t.Errorf("restored, s6 is %v, s7 %v, desk %v", a, b, c)
	}
	for i := range model.MostRoles {
		if err := m.SetRole(fmt.Sprint("s", i), trust.Ordinary); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(bytesOf(t, m), before) {
		t.Error("with all roles taken back, the model has other bytes")
	}
}

// Traps label half of the spam, and users what the model got wrong. Users contradict the model
// with every label, and are heard all the same.
func TestCorrectionsAreHeard(t *testing.T) {
	m := newModel(t, model.Config{TextExperts: []string{text.Lean}, Alarms: model.Alarms{Off: true}})
	p := m.NewPredictor()
	wrong, users, heard := 0, 0, 0.0
	for i, ex := range smsEvents(t) {
		was, err := p.Predict(&ex.Body)
		if err != nil {
			t.Fatal(err)
		}
		mistake := (was.LogOdds >= 0) != ex.Spam
		if mistake && i >= 1000 {
			wrong++
		}
		switch {
		case i < 300:
			ex.Source = "admin"
		case ex.Spam && i%2 == 0:
			ex.Source = "trap"
		case mistake:
			ex.Source = "user"
		default:
			continue
		}
		effect, err := m.Apply(&ex)
		if err != nil {
			t.Fatal(err)
		}
		if ex.Source == "user" {
			users++
			heard += effect.Standing
		}
	}
	t.Logf("%d wrong; %d corrections count %.2f on average", wrong, users, heard/float64(users))
	if wrong > 110 || heard < 0.4*float64(users) {
		t.Errorf("%d of 4,574 are wrong; %d corrections count %.2f on average", wrong, users, heard/float64(users))
	}
}

// A role that no learner could save is refused: one such name made all later checkpoints
// unreadable.
func TestRolesThatCannotBe(t *testing.T) {
	m, err := model.New(model.Config{TableBits: 8})
	if err != nil {
		t.Fatal(err)
	}
	for name, role := range map[string]trust.Role{"\xff": trust.Anchor, strings.Repeat("x", 257): trust.Muted, "a": trust.Muted + 1} {
		var refused *model.RefusedError
		if err := m.SetRole(name, role); !errors.As(err, &refused) {
			t.Errorf("role %d of a name of %d bytes: %v", role, len(name), err)
		}
	}
	if err := m.SetRole("a", trust.Anchor); err != nil {
		t.Fatal(err)
	}
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	restored, err := model.Restore(b)
	if err != nil || restored.Role("a") != trust.Anchor {
		t.Errorf("restored: %v, %v", restored, err)
	}
}

// A relearn of the same source counts with the weight that the label was given, one of
// another source with its own. Nothing that a muted source replaces is taught.
func TestRelearnKeepsTheWeight(t *testing.T) {
	cfg := model.Config{TableBits: 12, TextExperts: []string{text.Lean}, Alarms: model.Alarms{Off: true}}
	m := newModel(t, cfg)
	learn := func(ex model.Example) model.Effect {
		effect, err := m.Apply(&ex)
		if err != nil {
			t.Fatal(err)
		}
		return effect
	}
	for i := range 400 {
		learn(said(i, i%2 == 0, []string{"desk", "trap"}[i/2%2]))
	}
	given := map[int]float64{}
	for i := 400; i < 460; i++ {
		ex := said(i, i%2 == 0, "liar")
		ex.Spam = !ex.Spam
		given[i] = learn(ex).Standing
	}
	// Told to believe it, the model learns new labels in full.
	if err := m.SetRole("liar", trust.Anchor); err != nil {
		t.Fatal(err)
	}
	relearn := func(i int, source string) float64 {
		ex := said(i, i%2 == 0, source)
		ex.ID, ex.Of, ex.Action = fmt.Sprint("re", i), fmt.Sprint(i), model.Relearn
		return learn(ex).Standing
	}
	low := 0
	for i := 430; i < 440; i++ {
		if given[i] < 1 {
			low++
		}
		if got := relearn(i, "liar"); got != given[i] {
			t.Errorf("event %d counted %v, learnt again %v", i, given[i], got)
		}
	}
	if low == 0 {
		t.Fatal("no label had little weight")
	}
	if got := relearn(440, "desk"); got != 1 {
		t.Errorf("a label of the liar that the desk has put right counts %v", got)
	}
	if err := m.SetRole("trap", trust.Muted); err != nil {
		t.Fatal(err)
	}
	if got := relearn(398, "trap"); got != 0 {
		t.Errorf("a muted source replaces a label, and it counts %v", got)
	}
}

// Sources lists who has labelled, with roles, and when each was last accused.
func TestSources(t *testing.T) {
	m := newModel(t, model.Config{TableBits: 8, TextExperts: []string{text.Lean}, Alarms: model.Alarms{Off: true}})
	long := strings.Repeat("long ", 20)
	for name, role := range map[string]trust.Role{long: trust.Muted, "nobody": trust.Anchor} {
		if err := m.SetRole(name, role); err != nil {
			t.Fatal(err)
		}
	}
	accused := uint64(0)
	for i := range 700 {
		ex := said(i, i%2 == 0, []string{"desk", "desk", "liar", long}[max(0, i-400)%4])
		if i < 401 {
			ex.Source = "desk"
		}
		ex.Spam = ex.Spam != (ex.Source == "liar")
		effect, err := m.Apply(&ex)
		if err != nil {
			t.Fatal(err)
		}
		if effect.Accused {
			accused = m.Events()
		}
	}
	restored, err := model.Restore(bytesOf(t, m))
	if err != nil {
		t.Fatal(err)
	}
	all := restored.Sources()
	if !slices.Equal(all, m.Sources()) {
		t.Errorf("restored, the sources are %+v, not %+v", all, m.Sources())
	}
	if len(all) != 4 || all[0].Name != "desk" || all[3].Name != "nobody" || all[3].Role != trust.Anchor || all[3].Body != "" {
		t.Fatalf("sources: %+v", all)
	}
	desk, liar, muted := all[0], all[1], all[2]
	if muted.Name != long {
		liar, muted = muted, liar
	}
	if desk.Weight != 1 || desk.Accused != 0 || desk.Late || desk.Newcomer || desk.Rate > 0.1 || desk.Lo > desk.Rate || desk.Hi < desk.Rate {
		t.Errorf("the honest source: %+v", desk)
	}
	if liar.Weight != 0 || liar.Accused != accused || accused == 0 || !liar.Late || liar.Lo < 0.5 || liar.Body != model.BodyText {
		t.Errorf("the liar, accused at event %d: %+v", accused, liar)
	}
	if muted.Weight != 0 || muted.Role != trust.Muted || muted.Labels != 75 {
		t.Errorf("the muted source: %+v", muted)
	}
}

// A role of "ordinary" is no role, and is not among a model's bytes.
func TestBytesWithAnOrdinaryRole(t *testing.T) {
	m := newModel(t, model.Config{TableBits: 8})
	if err := m.SetRole("sss", trust.Anchor); err != nil {
		t.Fatal(err)
	}
	bad := bytes.Replace(bytesOf(t, m), []byte(`"sss":"anchor"`), []byte(`"s":"ordinary"`), 1)
	if _, err := model.Restore(sound(bad)); err == nil || !strings.Contains(err.Error(), "a source has a role") {
		t.Errorf("error %v", err)
	}
}
