package model_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/text"
)

// frozenOf returns an expert frozen from some letters. Other seeds make other ones.
func frozenOf(t testing.TB, seed, tableBits int) *text.Frozen {
	t.Helper()
	f, err := model.NewFreezer(tableBits)
	if err != nil {
		t.Fatal(err)
	}
	for pass := range 2 {
		if pass > 0 {
			f.NextPass()
		}
		for i := range 200 {
			if err := f.Learn(letter(i, seed)); err != nil {
				t.Fatal(err)
			}
			if err := f.Learn(letter(i, seed)); err != nil { // a copy is not counted
				t.Fatal(err)
			}
		}
	}
	frozen, err := f.Freeze(2)
	if err != nil {
		t.Fatal(err)
	}
	if ham, spam, _ := frozen.Messages(); ham != 100 || spam != 100 {
		t.Fatalf("frozen from %d ham and %d spam", ham, spam)
	}
	return frozen
}

// letter returns a text with its label.
func letter(i, seed int) *model.Example {
	spam := i%2 == 0
	kind := "minutes of the weekly meeting, agenda %d, from room %d"
	if spam {
		kind = "you have won prize %d, claim it at counter %d"
	}
	return &model.Example{
		ID: fmt.Sprint(i), Source: "desk", Spam: spam,
		Body: model.Body{Message: &feature.Message{Body: fmt.Appendf(nil, kind, i*seed%17, i%5)}},
	}
}

func frozenModel(t testing.TB, cfg model.Config, n int) *model.Model {
	t.Helper()
	m := newModel(t, cfg)
	for i := range n {
		if _, err := m.Apply(letter(i, 3)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

var slim = model.Config{TableBits: 10, TextExperts: []string{text.TextWords, text.Text4GramsBayes}}

// The bytes hold the table once, by the hash that the configuration names, also before the
// first event. A restored model answers and goes on as the live one, to the bit.
func TestFrozenInAModelsBytes(t *testing.T) {
	frozen := frozenOf(t, 1, 10)
	cfg := slim.WithFrozen(frozen)
	if sum := sha256.Sum256(frozen.Bytes()); cfg.Frozen != hex.EncodeToString(sum[:]) {
		t.Errorf("named %s, its SHA-256 is %x", cfg.Frozen, sum)
	}
	for _, n := range []int{0, 1, 150} {
		live := frozenModel(t, cfg, n)
		b := bytesOf(t, live)
		if k := bytes.Count(b, frozen.Bytes()); k != 1 {
			t.Errorf("%d events: the table is there %d times", n, k)
		}
		restored, err := model.Restore(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := restored.Config().Differences(live.Config()); len(d) > 0 || restored.Config().Frozen != cfg.Frozen {
			t.Errorf("restored with %v", d)
		}
		p, q := live.NewPredictor(), restored.NewPredictor()
		for i := range 40 {
			at := letter(n+i, 5)
			want, why, err1 := p.Explain(&at.Body)
			got, too, err2 := q.Explain(&at.Body)
			if err1 != nil || err2 != nil || got != want || !slices.Equal(why, too) {
				t.Fatalf("%d events: restored %+v %v %v, live %+v %v %v", n, got, too, err2, want, why, err1)
			}
			if !slices.ContainsFunc(why, func(c model.Contribution) bool {
				return c.Name == "frozen: text 4-grams" && c.Contribution != 0
			}) {
				t.Fatalf("%d events: no part of the frozen expert in %v", n, why)
			}
			if _, err := live.Apply(at); err != nil {
				t.Fatal(err)
			}
			if _, err := restored.Apply(at); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(bytesOf(t, live), bytesOf(t, restored)) {
			t.Errorf("%d events: restored and continued, other bytes", n)
		}
		if !bytes.Equal(live.Config().FrozenExpert().Bytes(), frozen.Bytes()) {
			t.Error("it has learnt")
		}
	}
}

// The frozen expert's section does not move or change, so that saves store it once.
func TestFrozenKeepsItsPlace(t *testing.T) {
	frozen := frozenOf(t, 1, 10)
	m := frozenModel(t, slim.WithFrozen(frozen), 40)
	at := bytes.Index(bytesOf(t, m), frozen.Bytes())
	for i := range 60 {
		if _, err := m.Apply(letter(100+i, 3)); err != nil {
			t.Fatal(err)
		}
	}
	if then := bytes.Index(bytesOf(t, m), frozen.Bytes()); at < 0 || then != at {
		t.Errorf("it was at %d and is at %d", at, then)
	}
}

// An expert with its own table size reads with a hasher of its own. The answer is that of
// an expert over the model's view where both sizes agree.
func TestFrozenBesideOtherExperts(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  model.Config
	}{
		{"the same view", slim},
		{"nobody reads 4-grams", model.Config{TableBits: 10, TextExperts: []string{text.TextWords}}},
		{"other table bits", model.Config{TableBits: 12, TextExperts: slim.TextExperts}},
	} {
		frozen := frozenOf(t, 1, 10)
		p := newModel(t, tt.cfg.WithFrozen(frozen)).NewPredictor()
		h := feature.NewHasher(frozen.Bits())
		opinions := float64(len(priorNames(t, tt.cfg))) + 1
		for i := range 10 {
			at := letter(i, 9)
			var v text.View
			text.FrozenReads.Read(h, &v, &text.Parts{Text: at.Body.Message.AppendT(nil)})
			_, why, err := p.Explain(&at.Body)
			if err != nil {
				t.Fatal(err)
			}
			k := slices.IndexFunc(why, func(c model.Contribution) bool { return c.Name == "frozen: text 4-grams" })
			if k < 0 {
				t.Fatalf("%s: %v", tt.name, why)
			}
			want := 1.2 / opinions * frozen.Score(&v) // by the prior, which averages the opinions
			if got := why[k].Contribution; math.Abs(got-want) > 1e-12*(1+math.Abs(want)) || want == 0 {
				t.Errorf("%s, letter %d: %v, want %v", tt.name, i, got, want)
			}
		}
	}
}

// priorNames returns the opinions of cfg's experts.
func priorNames(t *testing.T, cfg model.Config) (names []string) {
	t.Helper()
	for _, name := range cfg.TextExperts {
		for _, input := range text.ByName(name).Inputs {
			if input.Opinion {
				names = append(names, input.Name)
			}
		}
	}
	return names
}

// A model's frozen expert cannot change, and neither can a program name one that it lacks.
func TestFrozenIsRefused(t *testing.T) {
	one, other := slim.WithFrozen(frozenOf(t, 1, 10)), slim.WithFrozen(frozenOf(t, 2, 10))
	m := frozenModel(t, one, 20)
	before := bytesOf(t, m)
	for _, cfg := range []model.Config{slim, other} {
		err := m.Adopt(cfg)
		if err == nil || !strings.Contains(err.Error(), "cannot change frozen: ") || !bytes.Equal(bytesOf(t, m), before) {
			t.Errorf("adopted %q: %v", cfg.Frozen, err)
		}
	}
	if d := slim.Differences(one); len(d) != 1 || d[0] != "frozen: none here, "+one.Frozen+" in the model" {
		t.Errorf("%q", d)
	}
	if _, err := model.New(model.Config{Frozen: one.Frozen}); !errors.Is(err, model.ErrNoExpert) {
		t.Errorf("without its file: %v", err)
	}
	wrong := one
	wrong.Frozen = other.Frozen
	if _, err := model.New(wrong); err == nil || !strings.Contains(err.Error(), "is wanted, and the expert is") {
		t.Errorf("with another's name: %v", err)
	}
	if _, err := model.New(one.WithFrozen(nil)); err != nil {
		t.Errorf("with none again: %v", err)
	}
	// A key that an operator may change is adopted by name alone.
	named := slim
	named.Frozen, named.TrustBy = one.Frozen, model.TrustByAll
	if err := m.Adopt(named); err != nil || m.Config().FrozenExpert() == nil {
		t.Errorf("adopt a name: %v", err)
	}

	f, err := model.NewFreezer(10)
	if err != nil {
		t.Fatal(err)
	}
	for _, ex := range []*model.Example{
		{ID: "v", Body: model.Body{Vector: []feature.Number{}}},
		{ID: "u", Action: model.Unlearn, Of: "w", Body: letter(1, 1).Body},
		{ID: "n"},
	} {
		if err := f.Learn(ex); err == nil {
			t.Errorf("froze %+v", ex)
		}
	}
}

// A frozen expert has nothing to withdraw, and is no obstacle: unlearning an event takes its
// counts from the tables, as without a frozen expert.
func TestFrozenAndWithdrawals(t *testing.T) {
	for _, cfg := range []model.Config{slim, slim.WithFrozen(frozenOf(t, 1, 10))} {
		cfg.TextExperts = []string{text.Text4GramsBayes} // it counts, so nothing of the event stays in it
		m := frozenModel(t, cfg, 60)
		tables := func() []byte {
			b := bytesOf(t, m)
			return b[headerSize:][:binary.LittleEndian.Uint64(b[16:])]
		}
		before := tables()
		spam := letter(200, 11)
		if _, err := m.Apply(spam); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(tables(), before) {
			t.Error("the event changed no table")
		}
		gone := *spam
		gone.ID, gone.Action, gone.Of = "gone", model.Unlearn, spam.ID
		effect, err := m.Apply(&gone)
		if err != nil || effect.Receipt == nil || effect.Receipt.Counted == 0 {
			t.Fatalf("%+v, %v", effect, err)
		}
		if !bytes.Equal(tables(), before) {
			t.Errorf("%q: withdrawn, the tables are not as before", cfg.Frozen)
		}
		if f := cfg.FrozenExpert(); f != nil && !bytes.Contains(bytesOf(t, m), f.Bytes()) {
			t.Error("the frozen expert has changed")
		}
	}
}

// Wrong bytes of a frozen expert do not reach a model.
func TestRestoreChecksTheFrozenExpert(t *testing.T) {
	one, other := frozenOf(t, 1, 10), frozenOf(t, 2, 10)
	b := bytesOf(t, frozenModel(t, slim.WithFrozen(one), 20))
	swapped := bytes.Replace(b, one.Bytes(), other.Bytes(), 1)
	if _, err := model.Restore(sound(swapped)); err == nil || !strings.Contains(err.Error(), "not that of the configuration") {
		t.Errorf("another: %v", err)
	}
	unnamed := renamed(b, model.Config{}.WithFrozen(one).Frozen, "")
	if _, err := model.Restore(unnamed); err == nil || !strings.Contains(err.Error(), "does not name") {
		t.Errorf("not named: %v", err)
	}
	broken := bytes.Clone(one.Bytes())
	broken[60]++
	sum := sha256.Sum256(broken)
	named := renamed(bytes.Replace(b, one.Bytes(), broken, 1), model.Config{}.WithFrozen(one).Frozen, hex.EncodeToString(sum[:]))
	if _, err := model.Restore(named); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("broken: %v", err)
	}
}

// A copy of a model has its frozen expert, whose bytes are in memory once.
func TestCopiesShareTheFrozenExpert(t *testing.T) {
	m := frozenModel(t, slim.WithFrozen(frozenOf(t, 1, 10)), 40)
	c, err := m.Copy()
	if err != nil {
		t.Fatal(err)
	}
	if c.Config().FrozenExpert() != m.Config().FrozenExpert() || !bytes.Equal(bytesOf(t, c), bytesOf(t, m)) {
		t.Error("the copy has another frozen expert")
	}
}
