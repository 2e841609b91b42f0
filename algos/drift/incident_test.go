package drift

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// openIncidents are the incidents that transitions have left open, by number.
type openIncidents map[uint64]Change

// apply checks that a transition follows from those before it.
func (s openIncidents) apply(t *testing.T, count uint64, c *Change) {
	t.Helper()
	was, open := s[c.Incident]
	ok := c.Transition == was.Transition+1 && (open || c.Incident == count) && c.Transition <= mostTransitions+1
	switch c.State {
	case Suspected:
		ok = ok && !open && c.Kind == KindUnknown && len(s) == 0
	case Raised:
		ok = ok && c.Kind != KindUnknown && (!open || was.Kind == c.Kind || was.Kind == KindUnknown)
	case Cleared:
		ok = ok && open && was.State == Raised && c.Kind == was.Kind
	case Withdrawn:
		ok = ok && open && was.State == Suspected && c.Kind == KindUnknown
	}
	if !ok || (c.Source != "") != (c.Kind == KindSource || c.Kind == KindLabelNoise && c.Source != "") {
		t.Errorf("event %d: %s %s, transition %d of %d (%q), after %+v", count, c.State, c.Kind, c.Transition, c.Incident, c.Source, was)
	}
	if c.State == Cleared || c.State == Withdrawn {
		delete(s, c.Incident)
		return
	}
	s[c.Incident] = *c
	if s.number() > 1 && s.unnamed() {
		t.Errorf("event %d: a suspicion beside a name: %v", count, s)
	}
}

func (s openIncidents) number() int { return len(s) }

func (s openIncidents) unnamed() bool {
	_, open := s.of(KindUnknown)
	return open
}

func (s openIncidents) of(kind string) (Change, bool) {
	for _, c := range s {
		if c.Kind == kind {
			return c, true
		}
	}
	return Change{}, false
}

// An actor makes the evidence of a stream of which the heads are sure.
type actor struct {
	r     *rand.Rand
	count uint64
}

func newActor(seed uint64) *actor { return &actor{r: rand.New(rand.NewPCG(seed, 15))} }

// next returns the evidence of a label. share is how often labels contradict the heads, and
// followed the probability that the credulous head then gives them.
func (a *actor) next(share, followed float64) Evidence {
	wrong := a.r.Float64() < share
	shaken := min(0.2, share) // false labels make the credulous head unsure of the true ones
	a.count++
	q := 0.96 + float64(a.r.IntN(30))/1_000
	e := Evidence{Event: a.count, Spam: a.r.IntN(2) == 0, Credulous: q - (1-followed)*shaken, Source: "desk"}
	if wrong {
		q, e.Credulous = 1-q, followed
	}
	e.Watched, e.Prob = q, q
	if !e.Spam {
		e.Prob = 1 - q
	}
	e.Doubt = 0.01 * (1 - q) / (0.99*q + 0.01*(1-q))
	return e
}

// A scene is what happens after 1,000 quiet events: for n events a share of labels is wrong.
type scene struct {
	n        int
	wrong    float64
	followed float64                  // by the credulous head
	alter    func(i int, e *Evidence) // nil: nothing
}

// play returns the transitions of scenes, as "event: state kind source".
func play(t *testing.T, n *Incidents, a *actor, scenes ...scene) (all []Change) {
	t.Helper()
	stands := openIncidents{}
	for _, s := range append([]scene{{n: 1_000}}, scenes...) {
		for i := range s.n {
			e := a.next(s.wrong, s.followed)
			if s.alter != nil {
				s.alter(i, &e)
			}
			for _, c := range n.Observe(nil, a.count, &e) {
				stands.apply(t, a.count, &c)
				all = append(all, c)
			}
		}
	}
	return all
}

func words(all []Change) (out []string) {
	for _, c := range all {
		w := c.State.String() + " " + c.Kind
		if c.Source != "" {
			w += " " + c.Source
		}
		out = append(out, w)
	}
	return out
}

// What is suspected, and how it is named.
func TestSuspectThenName(t *testing.T) {
	const desk, traps = "desk", "traps"
	accuse := func(source func(i int) string, isNew bool) func(int, *Evidence) {
		return func(i int, e *Evidence) {
			if i%3 == 0 {
				e.Source, e.Accused, e.New = source(i), true, isNew
			}
		}
	}
	one := func(int) string { return traps }
	each := func(i int) string { return fmt.Sprint("new", i) }
	onlyHam := func(_ int, e *Evidence) {
		if e.Spam {
			e.Spam, e.Prob = false, 1-e.Prob
		}
	}
	loss := func(_ int, e *Evidence) { e.Concept = true }
	quiet := scene{n: 4_000}
	for name, c := range map[string]struct {
		scenes []scene
		want   []string
	}{
		"nothing":                              {[]scene{quiet}, nil},
		"one false label":                      {[]scene{{n: 1, wrong: 1, followed: .05}, quiet}, nil},
		"flips":                                {[]scene{{n: 600, wrong: .2, followed: .05}, quiet}, []string{"suspected unknown", "raised label-noise", "cleared label-noise"}},
		"another world":                        {[]scene{{n: 600, wrong: .2, followed: .9}, quiet}, []string{"suspected unknown", "raised concept", "cleared concept"}},
		"a credulous head that is only unsure": {[]scene{{n: 600, wrong: .2, followed: .45}, quiet}, []string{"suspected unknown", "withdrawn unknown"}},
		"a short time":                         {[]scene{{n: 12, wrong: .5, followed: .05}, quiet}, []string{"suspected unknown", "withdrawn unknown"}},
		"labels of one class":                  {[]scene{{n: 600, wrong: .2, followed: .05, alter: onlyHam}, quiet}, []string{"suspected unknown", "withdrawn unknown"}},
		"the alarm for label noise": {[]scene{{n: 60, alter: func(i int, e *Evidence) { e.Noise = true }}, quiet},
			[]string{"raised label-noise", "cleared label-noise"}},
		"covariate names a suspicion": {[]scene{{n: 60, wrong: .5, followed: .05, alter: func(i int, e *Evidence) { e.Covariate = i > 25 }}, quiet},
			[]string{"suspected unknown", "raised covariate", "cleared covariate"}},
		"new mail that the credulous head follows": {[]scene{{n: 380, wrong: .3, followed: .9, alter: func(i int, e *Evidence) { e.Surprise = .4 }}},
			[]string{"suspected unknown"}},
		"the loss alone": {[]scene{{n: 300, alter: loss}, quiet}, []string{"suspected unknown", "withdrawn unknown"}},
		"bad labels end, and the loss falls slowly": {[]scene{{n: 600, wrong: .2, followed: .05, alter: loss}, {n: 1_000, alter: loss}, quiet},
			[]string{"suspected unknown", "raised label-noise", "cleared label-noise"}},
		"bad labels again before the loss has fallen": {[]scene{{n: 600, wrong: .2, followed: .05, alter: loss}, {n: 1_000, alter: loss},
			{n: 300, wrong: .2, followed: .05, alter: loss}, {n: 900, alter: loss}, quiet},
			[]string{"suspected unknown", "raised label-noise", "cleared label-noise", "suspected unknown", "raised label-noise", "cleared label-noise"}},
		"another world before the loss has fallen": {[]scene{{n: 600, wrong: .2, followed: .05, alter: loss}, {n: 1_000, alter: loss},
			{n: 600, wrong: .2, followed: .9, alter: loss}, {n: 900, alter: loss}, quiet},
			[]string{"suspected unknown", "raised label-noise", "cleared label-noise", "suspected unknown", "raised concept", "cleared concept"}},
		"the loss falls and rises again": {[]scene{{n: 600, wrong: .2, followed: .05, alter: loss}, {n: 1_000, alter: loss}, {n: 300}, {n: 100, alter: loss}, quiet},
			[]string{"suspected unknown", "raised label-noise", "cleared label-noise", "suspected unknown", "withdrawn unknown"}},
		"new mail ends before the loss has fallen": {[]scene{{n: 60, alter: func(_ int, e *Evidence) { e.Covariate, e.Concept = true, true }}, {n: 300, alter: loss}, quiet},
			[]string{"raised covariate", "cleared covariate"}},
		"a liar": {[]scene{{n: 90, alter: accuse(one, false)}, quiet}, []string{"raised source traps", "cleared source traps"}},
		"a liar under suspicion": {[]scene{{n: 24, wrong: .5, followed: .05}, {n: 60, wrong: .2, followed: .05, alter: accuse(one, false)}, quiet},
			[]string{"suspected unknown", "raised source traps", "cleared source traps"}},
		"newcomers": {[]scene{{n: 90, alter: accuse(each, true)}, quiet}, []string{"raised source new0", "raised source newcomers", "cleared source newcomers"}},
		"a second source that is known": {[]scene{{n: 90, alter: func(i int, e *Evidence) { e.Accused, e.Source = true, []string{desk, traps}[i%2] }}, quiet},
			[]string{"raised source desk", "cleared source desk"}},
		"label noise joins the liar": {[]scene{{n: 90, alter: accuse(one, false)}, {n: 90, alter: func(i int, e *Evidence) { e.Noise = true }}, quiet},
			[]string{"raised source traps", "cleared source traps"}},
		"the liar joins label noise": {[]scene{{n: 90, alter: func(i int, e *Evidence) { e.Noise = true }}, {n: 9, alter: func(i int, e *Evidence) { e.Noise, e.Accused, e.Source = true, true, traps }}, quiet},
			[]string{"raised label-noise", "raised label-noise traps", "cleared label-noise traps"}},
		"two at one event": {[]scene{{n: 9, alter: func(i int, e *Evidence) { e.Noise, e.Covariate = true, true }}, quiet},
			[]string{"raised label-noise", "raised covariate", "cleared label-noise", "cleared covariate"}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				if got := words(play(t, new(Incidents), newActor(seed), c.scenes...)); !slices.Equal(got, c.want) {
					t.Errorf("seed %d: %q, want %q", seed, got, c.want)
				}
			}
		})
	}
}

// A change that lasts is the normal after a while, and the next one is suspected again.
func TestIncidentsEnd(t *testing.T) {
	all := play(t, new(Incidents), newActor(1), scene{n: 5_000, wrong: .1, followed: .05}, scene{n: 600, wrong: .6, followed: .05})
	want := []string{"suspected unknown", "raised label-noise", "cleared label-noise", "suspected unknown", "raised label-noise"}
	if got := words(all); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Without a credulous head a suspicion stands for 400 labels and is not named by them.
func TestNoNameWithoutACredulousHead(t *testing.T) {
	none := func(_ int, e *Evidence) { e.Credulous = math.NaN() }
	all := play(t, new(Incidents), newActor(1), scene{n: 1_000, wrong: .2, alter: none})
	if got := words(all); !slices.Equal(got, []string{"suspected unknown", "withdrawn unknown"}) {
		t.Errorf("%q", got)
	}
}

// Saved and loaded between any two events, Incidents ends with the same bytes as had it
// never stopped. A suspicion is open at some of them, and names of all kinds.
func TestIncidentsContinue(t *testing.T) {
	var evidence []Evidence
	a := newActor(3)
	for i := range 5_000 {
		share, followed := 0.0, 0.05
		switch {
		case i > 4_000:
			share, followed = 0.3, 0.9
		case i > 1_000 && i < 1_400:
			share = 0.2
		}
		e := a.next(share, followed)
		e.Accused = i > 1_200 && i < 1_300
		e.Covariate = i > 2_000 && i < 2_100
		e.Concept = i > 1_300 && i < 2_600
		if i > 1_250 {
			e.Source, e.New = "stranger", true
		}
		evidence = append(evidence, e)
	}
	whole, parts := new(Incidents), new(Incidents)
	kinds, sources := map[string]bool{}, map[string]bool{}
	explained := false
	for i := range evidence {
		count := uint64(i + 1)
		for _, c := range whole.Observe(nil, count, &evidence[i]) {
			kinds[c.Kind], sources[c.Source] = true, true
		}
		parts.Observe(nil, count, &evidence[i])
		back := new(Incidents)
		if err := back.UnmarshalBinary(mustBytes(t, parts)); err != nil {
			t.Fatalf("event %d: %v", count, err)
		}
		parts = back
		explained = explained || parts.explained
		if i%50 == 0 && !bytes.Equal(mustBytes(t, whole), mustBytes(t, parts)) {
			t.Fatalf("event %d: other bytes", count)
		}
	}
	if len(kinds) < 4 || !sources["desk"] || !sources[Newcomers] || !explained {
		t.Errorf("only %v of %v, explained %v", kinds, sources, explained)
	}
}

// suspecting returns an Incidents with an open suspicion, and one with named incidents.
func suspecting(tb testing.TB) (suspicion, named *Incidents) {
	tb.Helper()
	suspicion, named = new(Incidents), new(Incidents)
	a := newActor(5)
	for i := range 1_020 {
		share := 0.0
		if i >= 1_000 {
			share = 0.6
		}
		e := a.next(share, 0.05)
		suspicion.Observe(nil, a.count, &e)
		e.Accused = i == 1_000
		e.Covariate = i > 1_000
		named.Observe(nil, a.count, &e)
	}
	if !suspicion.suspicion.open() || !named.named[aboutLabels].open() || !named.named[aboutMail].open() {
		tb.Fatalf("%+v and %+v", suspicion.suspicion, named.named)
	}
	return suspicion, named
}

func TestIncidentsRefuseDamage(t *testing.T) {
	suspicion, named := suspecting(t)
	first := 144 + 17*len(suspicion.recent) // of the suspicion
	float := func(at int, v float64) func(b []byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint64(b[at:], math.Float64bits(v)); return b }
	}
	put := func(at int, v uint64) func(b []byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint64(b[at:], v); return b }
	}
	for name, damage := range map[string]func(b []byte) []byte{
		"magic": put(0, 0), "a walk's events": put(8, walkMemory+1), "a mean": float(16, 2), "a variance": float(24, -1),
		"an excess": float(32, 1e6), "a spell": put(40, walkSettle+1), "accused": put(128, 1<<60), "many events": put(136, 1<<40),
		"a probability": float(144, 1.5), "q of 0": float(152, 1e-9), "a label": func(b []byte) []byte { b[160] = 2; return b },
		"signs":                      func(b []byte) []byte { b[5] = 4; return b },
		"a suspicion that was spent": func(b []byte) []byte { b[5] = 1; return b }, "its number": put(first, 1<<60), "its transitions": put(first+8, 2),
		"its last": put(first+16, 0), "its accused": func(b []byte) []byte { b[first+24] = 1; return b },
		"one byte more": func(b []byte) []byte { return append(b, 0) },
	} {
		good := mustBytes(t, suspicion)
		if err := suspicion.UnmarshalBinary(damage(bytes.Clone(good))); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: error %v", name, err)
		}
		if !bytes.Equal(mustBytes(t, suspicion), good) {
			t.Errorf("%s: refused bytes changed the state", name)
		}
	}
	for _, n := range []*Incidents{suspicion, named} {
		good := mustBytes(t, n)
		for k := range good {
			if err := new(Incidents).UnmarshalBinary(good[:k:k]); !errors.Is(err, ErrFormat) {
				t.Fatalf("the first %d of %d bytes: error %v", k, len(good), err)
			}
		}
	}
}

// Incidents with as many transitions as their kind can have are read. With one more, or beside
// what no event makes, they are not.
func TestIncidentsBoundTransitions(t *testing.T) {
	open := func(kind string, transitions int, source string) incident {
		return incident{number: 5, transitions: transitions, since: 9, kind: kind, accused: source != "", source: source}
	}
	for _, c := range []struct {
		slot        int
		kind        string
		source      string
		least, most int
	}{
		{aboutLabels, KindLabelNoise, "", 1, 2},
		{aboutLabels, KindLabelNoise, "desk", 2, 3},
		{aboutLabels, KindLabelNoise, Newcomers, 2, 4},
		{aboutLabels, KindSource, "desk", 1, 2},
		{aboutLabels, KindSource, Newcomers, 1, 3},
		{aboutMail, KindCovariate, "", 1, 2},
		{aboutWorld, KindConcept, "", 1, 2},
	} {
		for transitions := range 6 {
			n := new(Incidents)
			if n.named[c.slot] = open(c.kind, transitions, c.source); c.source != "" {
				n.accused = 9
			}
			want := transitions >= c.least && transitions <= c.most
			if err := new(Incidents).UnmarshalBinary(mustBytes(t, n)); (err == nil) != want {
				t.Errorf("%d transitions of %s (%q): error %v", transitions, c.kind, c.source, err)
			}
		}
	}
	twins, unaccused := new(Incidents), new(Incidents)
	twins.named[aboutMail], twins.named[aboutWorld] = open(KindCovariate, 1, ""), open(KindConcept, 1, "")
	unaccused.named[aboutLabels] = open(KindSource, 1, "desk")
	for name, n := range map[string]*Incidents{"two of one number": twins, "accused at no event": unaccused} {
		if err := new(Incidents).UnmarshalBinary(mustBytes(t, n)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// What can be read is written back unchanged, and goes on without a panic to bytes that can be
// read.
func FuzzIncidents(f *testing.F) {
	suspicion, named := suspecting(f)
	for _, n := range []*Incidents{new(Incidents), suspicion, named} {
		f.Add(mustBytes(f, n))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n := new(Incidents)
		if err := n.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if !bytes.Equal(mustBytes(t, n), b) {
			t.Fatalf("read %d bytes, wrote others", len(b))
		}
		a := newActor(1)
		for _, i := range n.incidents() { // the events go on after those that made n
			a.count = max(a.count, i.number, i.since, n.accused)
		}
		if a.count > mostSeen-1_000 {
			return
		}
		for i := range 500 {
			e := a.next(0.3, 0.05)
			e.Noise, e.Covariate, e.Concept, e.Accused = i%100 >= 90, i%150 >= 140, i%250 >= 100, i%40 >= 38
			if i%40 == 39 {
				e.Source, e.New = "stranger", true
			}
			n.Observe(nil, a.count, &e)
		}
		if err := new(Incidents).UnmarshalBinary(mustBytes(t, n)); err != nil {
			t.Fatalf("after 500 events: %v", err)
		}
		if s := n.suspected(); !(s.Level >= 0 && s.Level <= 1) {
			t.Fatalf("%+v", s)
		}
	})
}
