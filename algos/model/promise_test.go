package model

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/promise"
	"hamlet/algos/trust"
)

// asked returns the examples as those whose labels were asked for.
func asked(all []Example, weight float64) []Example {
	all = slices.Clone(all)
	for i := range all {
		all[i].SampleWeight = weight
	}
	return all
}

// tableBytes returns the bytes of a table.
func tableBytes(t *testing.T, table *promise.Table) []byte {
	t.Helper()
	b, err := table.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The ham that was asked for is in the tables of its tenant and of all, with the log-odds of the
// prediction before it was learnt. It is the only difference to a model of labels that were volunteered.
func TestJudgedHam(t *testing.T) {
	m, volunteered := newOf(t, Config{TableBits: 8}), newOf(t, Config{TableBits: 8})
	var all promise.Table
	own := map[string]*promise.Table{"a": {}, "b": {}, "c": {}}
	letters := named(newsletters(200, 6))
	for i := range letters {
		ex := letters[i]
		apply(t, volunteered, ex)
		ex.SampleWeight = []float64{0, 1, 0.25, 4}[i%4]
		effect := apply(t, m, ex)
		if ex.SampleWeight > 0 && !ex.Spam {
			all.Observe(effect.Prediction.LogOdds, ex.SampleWeight)
			own[ex.Body.Tenant].Observe(effect.Prediction.LogOdds, ex.SampleWeight)
		}
		apply(t, m, ex) // a copy counts for nothing
	}
	for tenant, want := range own {
		if !bytes.Equal(tableBytes(t, m.Promise(tenant)), tableBytes(t, want)) || want.Ham() < 5 {
			t.Errorf("tenant %s has %v ham, want %v", tenant, m.Promise(tenant).Ham(), want.Ham())
		}
	}
	if !bytes.Equal(tableBytes(t, m.PromiseAll()), tableBytes(t, &all)) {
		t.Errorf("all have %v ham, want %v", m.PromiseAll().Ham(), all.Ham())
	}
	if m.Promise("d").Ham() != 0 || m.Promise("d").Threshold(0.01).Promised() || len(m.Promises()) != 3 {
		t.Errorf("a tenant without ham has a promise, or there are %d tables, want 3", len(m.Promises()))
	}
	if volunteered.PromiseAll().Ham() != 0 || volunteered.Promises() != nil {
		t.Error("ham that was volunteered was counted")
	}
	with, err1 := split(image(t, m))
	without, err2 := split(image(t, volunteered))
	with[sectionJudged] = nil
	if err := errors.Join(err1, err2); err != nil || !slices.EqualFunc(with[:], without[:], bytes.Equal) {
		t.Errorf("a label that was asked for teaches something else: %v", err)
	}
	if b := image(t, volunteered); binary.LittleEndian.Uint32(b[12:]) != sectionCount {
		t.Error("a model without judged ham has a section for it")
	}
}

// Which labels count, by what became of the message before: the ham of each tenant's table at the end.
func TestWhichHamCounts(t *testing.T) {
	all := asked(named(letters(300, 31)), 1)
	ham := all[slices.IndexFunc(all[250:], func(ex Example) bool { return !ex.Spam })+250]
	ham.Body.Tenant = "of interest"
	as := func(id, source string, action Action, spam bool, weight float64) Example {
		ex := ham
		ex.ID, ex.Source, ex.Action, ex.Spam, ex.SampleWeight = id, source, action, spam, weight
		switch action {
		case Correct, Assume:
			ex.Of, ex.Identity = ham.Identity, ""
		case Relearn, Unlearn:
			ex.Of = "first"
		}
		return ex
	}
	nameless := func(ex Example) Example { ex.Identity = ""; return ex }
	for what, c := range map[string]struct {
		events []Example
		want   float64
	}{
		"ham":                    {[]Example{as("first", "desk", Learn, false, 2)}, 2},
		"spam":                   {[]Example{as("first", "desk", Learn, true, 1)}, 0},
		"volunteered":            {[]Example{as("first", "desk", Learn, false, 0)}, 0},
		"of somebody muted":      {[]Example{as("first", "muted", Learn, false, 1)}, 0},
		"of somebody left out":   {[]Example{as("first", "left out", Learn, false, 1)}, 0},
		"assumed":                {[]Example{as("first", "answers", Assume, false, 1)}, 1},
		"assumed, spam":          {[]Example{as("first", "answers", Assume, true, 1)}, 0},
		"assumed, then asked":    {[]Example{as("first", "answers", Assume, false, 0), as("2", "desk", Correct, false, 1)}, 1},
		"assumed to be spam":     {[]Example{as("first", "answers", Assume, true, 1), as("2", "desk", Correct, false, 1)}, 1},
		"by a correction":        {[]Example{as("2", "desk", Correct, false, 1)}, 1},
		"twice":                  {[]Example{as("first", "desk", Learn, false, 1), as("2", "user", Learn, false, 1)}, 1},
		"corrected to the same":  {[]Example{as("first", "desk", Learn, false, 0), as("2", "desk", Correct, false, 1)}, 0},
		"spam turned to ham":     {[]Example{as("first", "desk", Learn, true, 1), as("2", "desk", Correct, false, 1)}, 1},
		"ham turned to spam":     {[]Example{as("first", "desk", Learn, false, 1), as("2", "desk", Correct, true, 1)}, 1},
		"taken back":             {[]Example{as("first", "desk", Learn, false, 1), as("2", "desk", Unlearn, false, 0)}, 1},
		"learnt again":           {[]Example{as("first", "desk", Learn, false, 1), as("2", "desk", Relearn, false, 1)}, 1},
		"learnt again, nameless": {[]Example{nameless(as("first", "desk", Learn, false, 1)), nameless(as("2", "desk", Relearn, false, 1))}, 1},
		"spam learnt again":      {[]Example{nameless(as("first", "desk", Learn, true, 1)), nameless(as("2", "desk", Relearn, false, 1))}, 1},
		"learnt again, then ham": {[]Example{as("first", "desk", Learn, true, 1), as("2", "desk", Relearn, false, 1)}, 1},
	} {
		m := newOf(t, Config{TableBits: 8, WithoutSources: []string{"left out"}})
		if err := m.SetRole("muted", trust.Muted); err != nil {
			t.Fatal(err)
		}
		apply(t, m, all[:100]...)
		before := m.PromiseAll().Ham()
		apply(t, m, c.events...)
		if got, more := m.Promise("of interest").Ham(), m.PromiseAll().Ham()-before; got != c.want || more != c.want {
			t.Errorf("%s: %v ham of its tenant and %v of all, want %v", what, got, more, c.want)
		}
	}
}

// A vector's ham is in the table of its tenant too.
func TestJudgedVectors(t *testing.T) {
	m := newOf(t, Config{TableBits: 8, Dense: []string{"a", "b"}})
	for _, ex := range asked(circles(50, 1), 1) {
		apply(t, m, ex)
	}
	for _, ex := range asked(letters(50, 1), 1) {
		ex.ID = "l" + ex.ID
		apply(t, m, ex)
	}
	want := float64(m.Events() - m.Spam())
	if got := m.Promise("t").Ham(); got != want || len(m.Promises()) != 1 {
		t.Errorf("%v ham in %d tables, want %v in 1", got, len(m.Promises()), want)
	}
}

// A model with judged ham is saved, restored and copied whole, and goes on to the same bytes. A copy that
// does not learn keeps its tables.
func TestJudgedHamIsSaved(t *testing.T) {
	cfg := Config{TableBits: 8}
	straight, all := newOf(t, cfg), asked(newsletters(200, 6), 0.5)
	apply(t, straight, all[:100]...)
	b := image(t, straight)
	var written bytes.Buffer
	if _, err := straight.WriteTo(&written); err != nil || !bytes.Equal(written.Bytes(), b) {
		t.Errorf("WriteTo writes %d bytes, %v; AppendBinary %d", written.Len(), err, len(b))
	}
	restored, err := Restore(b)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := restored.Copy()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := restored.Copy()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Model{straight, restored, copied} {
		apply(t, m, all[100:]...)
	}
	want := image(t, straight)
	for what, m := range map[string]*Model{"restored": restored, "a copy": copied} {
		if !bytes.Equal(image(t, m), want) {
			t.Errorf("%s, it went on to other bytes", what)
		}
	}
	if !bytes.Equal(image(t, kept), b) {
		t.Error("a copy that learnt nothing has changed")
	}
	if kept.Promise("a").Ham() >= straight.Promise("a").Ham() {
		t.Errorf("%v ham at first, %v in the end", kept.Promise("a").Ham(), straight.Promise("a").Ham())
	}
}

// Of more tenants than MostPromises, those without a table wait until one of them was idle for long. The
// one that was idle for longest goes, and begins again.
func TestTenantsWithoutATable(t *testing.T) {
	var j judged
	name := func(i int) string { return fmt.Sprint("tenant ", i) }
	for i := range MostPromises + 2 {
		j.observe(name(i), -3, 1, uint64(i+1))
	}
	ham := func(i int) float64 { return (&Model{judged: j}).Promise(name(i)).Ham() }
	if len(j.tenants) != MostPromises || ham(0) != 1 || ham(MostPromises) != 0 || j.all.Ham() != MostPromises+2 {
		t.Fatalf("%d tables, %v ham of the first, %v of the last of %v", len(j.tenants), ham(0), ham(MostPromises), j.all.Ham())
	}
	j.observe(name(0), -3, 1, 2000) // it is not the idlest then
	for j.counted < promise.Forget+1 {
		j.observe(name(2), -3, 1, 2001)
	}
	j.observe(name(5000), -3, 1, 3000) // tenant 1 was the second ham, so it is idle for Forget now
	if ham(5000) != 1 || ham(1) != 0 || ham(0) != 2 || len(j.tenants) != MostPromises {
		t.Errorf("%v ham of a newcomer, %v and %v of the idle ones, %d tables", ham(5000), ham(1), ham(0), len(j.tenants))
	}
	if at, found := j.find(tenantKey(name(5000))); !found || j.tenants[at].began != 3000 {
		t.Errorf("found %t: where its table began is not told", found)
	}
	if !slices.IsSortedFunc(j.tenants, func(a, b *tenantHam) int { return cmp.Compare(a.key, b.key) }) {
		t.Error("the tenants are not in order")
	}
	for range 3 {
		j.observe(name(2), -3, 1, 3001)
	}
	j.observe(name(1), -3, 1, 4000) // tenant 3 is the next idlest, for more than Forget
	if ham(1) != 1 || ham(3) != 0 {
		t.Errorf("it has %v ham, in the place of %v", ham(1), ham(3))
	}
}

// A weight that no policy has is refused, and changes nothing.
func TestRefusesSampleWeights(t *testing.T) {
	m, all := small(t), letters(10, 1)
	apply(t, m, all[:5]...)
	before := image(t, m)
	for _, w := range []float64{-1, promise.LeastWeight / 2, 2 * promise.MostWeight, math.NaN(), math.Inf(1)} {
		ex := all[5]
		ex.SampleWeight = w
		var refused *RefusedError
		if _, err := m.Apply(&ex); !errors.As(err, &refused) || !strings.Contains(err.Error(), "sample weight") {
			t.Errorf("weight %v: %v", w, err)
		}
	}
	if !bytes.Equal(image(t, m), before) {
		t.Error("a refused weight has changed the model")
	}
	for _, w := range []float64{promise.LeastWeight, promise.MostWeight} {
		ex := asked(all[6:7], w)[0]
		ex.ID = fmt.Sprint("w", w)
		apply(t, m, ex)
	}
}

// Bytes that no learner wrote are refused, and so is a section without ham.
func TestRestoreRefusesJudgedHam(t *testing.T) {
	m := newOf(t, Config{TableBits: 8})
	apply(t, m, asked(newsletters(60, 6), 1)...)
	section, err := split(image(t, m))
	if err != nil {
		t.Fatal(err)
	}
	good := section[sectionJudged]
	first := 8 + 4 + int(binary.LittleEndian.Uint32(good[8:])) // where the first tenant stands
	second := first + 24 + 4 + int(binary.LittleEndian.Uint32(good[first+24:]))
	put := func(at int, v uint64) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint64(b[at:], v); return b }
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(good[i:]) }
	for what, change := range map[string]func([]byte) []byte{
		"no ham":                        put(0, 0),
		"more ham than events":          put(0, 61),
		"less ham than a tenant's last": put(0, 2),
		"a table of another version":    func(b []byte) []byte { b[12+4]++; return b },
		"cut short":                     func(b []byte) []byte { return b[:len(b)-1] },
		"too long":                      func(b []byte) []byte { return append(b, 0) },
		"no key":                        put(first, 0),
		"keys out of order":             put(first, at(second)),
		"a beginning in the future":     put(first+8, 61),
		"no beginning":                  put(first+8, 0),
		"no last ham":                   put(first+16, 0),
		"two with one last ham":         put(first+16, at(second+16)),
		"an empty table": func(b []byte) []byte {
			empty, _ := new(promise.Table).MarshalBinary()
			b = binary.LittleEndian.AppendUint32(b[:first+24], uint32(len(empty)))
			return append(b, empty...)
		},
	} {
		bad := section
		bad[sectionJudged] = change(bytes.Clone(good))
		if _, err := Restore(sealed(bad)); err == nil || !strings.Contains(err.Error(), "judged ham") {
			t.Errorf("%s: %v", what, err)
		}
	}
	bare := section
	bare[sectionJudged] = nil
	b := sealed(bare)
	if _, err := Restore(b); err != nil {
		t.Fatalf("without judged ham: %v", err)
	}
	section[sectionJudged] = []byte{0}
	b = sealed(section)
	b = slices.Delete(b, len(b)-9, len(b)-8) // the section's one byte
	binary.LittleEndian.PutUint64(b[16+8*sectionJudged:], 0)
	if _, err := Restore(altered(b)); err == nil || !strings.Contains(err.Error(), "without any") {
		t.Errorf("a section of nothing: %v", err)
	}
}

func BenchmarkApplyAsked(b *testing.B) {
	for _, weight := range []float64{0, 1} {
		b.Run(fmt.Sprint("weight=", weight), func(b *testing.B) {
			m, err := New(Config{})
			if err != nil {
				b.Fatal(err)
			}
			all := asked(letters(2000, 3), weight)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				ex := all[i%len(all)]
				ex.ID = fmt.Sprint(i)
				if _, err := m.Apply(&ex); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
