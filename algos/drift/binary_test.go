package drift

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type alarm interface {
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
	Status() Status
}

// stage plays a synthetic stream whose labels go bad at 2,600, whose inputs move at
// 3,500 and that is calm again from 4,000 on, to some alarms.
type stage struct {
	noise *LabelNoise
	mail  *Covariate
	world *PageHinkley
	count uint64
	r     *rand.Rand
}

func newStage() *stage {
	return &stage{
		noise: withSpans(LabelNoiseConfig{Dim: 3}, func(s *spans) { s.perClass = 60 }),
		mail:  mustNew(NewCovariate(CovariateConfig{})),
		world: mustNew(NewPageHinkley(PageHinkleyConfig{})),
		r:     rand.New(rand.NewPCG(9, 9)),
	}
}

// play feeds n events; it uses no function whose bits depend on the CPU.
func (s *stage) play(n int) {
	for range n {
		s.count++
		y := float64(2*s.r.IntN(2) - 1)
		e := Event{Label: y, Prob: .99, FlipRate: .001, ID: "id", Source: "feed"}
		for range 3 {
			e.X = append(e.X, float64(y*.6)+float64(s.r.IntN(2_000)-1_000)/1_000)
		}
		bad := s.count > 2_600 && s.count <= 4_000
		loss, lev := float64(s.r.IntN(1_000))/2_500, 1+float64(s.r.IntN(1_000))/500
		if bad && s.r.IntN(5) == 0 {
			e.Label, e.Prob, loss, e.Source = -y, .01, 2.5, "bad"
		}
		if bad {
			e.FlipRate = .1
		}
		if s.count > 3_500 && s.count <= 4_000 {
			lev *= 8
		}
		s.world.Observe(s.count, loss)
		s.mail.Observe(s.count, lev)
		s.noise.Observe(e)
		if s.count%Rhythm == 0 {
			if job, ok := s.noise.Pending(); ok {
				s.noise.Finish(job.Run())
			}
			s.noise.Check(s.count)
			s.noise.Start(s.count)
		}
	}
}

func (s *stage) alarms() map[string]alarm {
	return map[string]alarm{"labelnoise": s.noise, "covariate": s.mail, "pagehinkley": s.world}
}

// fresh returns an alarm of the same configuration before any event.
func (s *stage) fresh(name string) alarm {
	switch name {
	case "labelnoise":
		return blank(s.noise.cfg, s.noise.spans)
	case "covariate":
		return &Covariate{cfg: s.mail.cfg, scale: 1}
	}
	return &PageHinkley{cfg: s.world.cfg}
}

// withSpans returns the alarm with other spans than standard.
func withSpans(cfg LabelNoiseConfig, change func(s *spans)) *LabelNoise {
	if err := cfg.Fill(); err != nil {
		panic(err)
	}
	s := standard
	change(&s)
	return blank(cfg, s)
}

func mustBytes(t testing.TB, a encoding.BinaryAppender) []byte {
	t.Helper()
	b, err := a.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Regenerate with: go test hamlet/algos/drift -run TestGoldenBytes -update
func TestGoldenBytes(t *testing.T) {
	s := newStage()
	s.play(3_670)
	for name, a := range s.alarms() {
		if !a.Status().Raised {
			t.Errorf("%s is not raised: %+v", name, a.Status())
		}
		file := filepath.Join("testdata", name+"_v1.bin")
		got := mustBytes(t, a)
		if *update {
			if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, got, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the bytes are not those of %s: %d and %d bytes", name, file, len(got), len(want))
		}
		b := s.fresh(name)
		if err := b.UnmarshalBinary(want); err != nil {
			t.Fatal(err)
		}
		if again := mustBytes(t, b); !bytes.Equal(again, want) {
			t.Errorf("%s: read and written again, the golden bytes differ", name)
		}
	}
	if got := len(mustBytes(t, s.noise)); got != s.noise.Size() {
		t.Errorf("Size is %d of %d bytes", s.noise.Size(), got)
	}
}

// Saved and loaded at any count, with a job pending or not, raised or not, the
// alarms end with the same bytes as had they never stopped.
func TestContinuation(t *testing.T) {
	whole := newStage()
	whole.play(6_000)
	parts := newStage()
	stops := rand.New(rand.NewPCG(1, 9))
	for parts.count < 6_000 {
		parts.play(min(1+stops.IntN(170), int(6_000-parts.count)))
		for name, a := range parts.alarms() {
			b := parts.fresh(name)
			if err := b.UnmarshalBinary(mustBytes(t, a)); err != nil {
				t.Fatalf("%s at %d: %v", name, parts.count, err)
			}
			switch b := b.(type) {
			case *LabelNoise:
				parts.noise = b
			case *Covariate:
				parts.mail = b
			case *PageHinkley:
				parts.world = b
			}
		}
	}
	for name, a := range parts.alarms() {
		if want := mustBytes(t, whole.alarms()[name]); !bytes.Equal(mustBytes(t, a), want) {
			t.Errorf("%s: other bytes than had it never been saved", name)
		}
		if a.Status().Raised || a.Status().Since < 2_600 {
			t.Errorf("%s at the end: %+v", name, a.Status())
		}
	}
}

func TestUnmarshalRefusesDamage(t *testing.T) {
	le := binary.LittleEndian
	s := newStage()
	s.play(3_670)
	put := func(at int, v uint64) func(b []byte) []byte {
		return func(b []byte) []byte { le.PutUint64(b[at:], v); return b }
	}
	float := func(at int, v float64) func(b []byte) []byte { return put(at, math.Float64bits(v)) }
	type damages map[string]func(b []byte) []byte
	particular := map[string]damages{
		"labelnoise": {
			"dim": put(8, 1<<21), "half": put(16, 61), "every": put(48, 251), "drop": float(96, -1), "epsilon": float(128, 2),
			"flags": put(136, 8), "no SNR": float(144, 0), "NaN level": float(160, math.NaN()), "started": put(192, 0), "started between": put(192, 3_651),
			"ham seen": put(200, 1<<40), "since": put(176, 1<<40), "history": put(216, 61), "history less": put(216, 1),
		},
		"covariate": {
			"memory": put(8, 0), "window": put(16, 1<<40), "threshold": float(32, 0.6), "reference": float(48, 1e9),
			"scale": float(56, 0), "lasting": float(64, 4), "events": put(40, 1<<63), "since": put(80, 1<<63), "level": float(72, math.Inf(1)),
		},
		"pagehinkley": {
			"clip": float(8, 0), "memory": put(32, 0), "mean": float(64, 4), "excess": float(72, 40), "spell": put(88, 4_000), "events": put(56, math.MaxUint64), "since": put(80, 1<<63),
			"later": float(96, -1), "variance": float(104, -1), "square": float(112, -1),
		},
	}
	for name, a := range s.alarms() {
		good := mustBytes(t, a)
		all := damages{
			"magic":          func(b []byte) []byte { b[0]++; return b },
			"version":        func(b []byte) []byte { b[4]++; return b },
			"flag":           func(b []byte) []byte { b[5] = 2; return b },
			"zeros":          func(b []byte) []byte { b[7]++; return b },
			"one byte more":  func(b []byte) []byte { return append(b, 0) },
			"one byte short": func(b []byte) []byte { return b[:len(b)-1] },
		}
		for what, damage := range particular[name] {
			all[what] = damage
		}
		for what, damage := range all {
			if err := a.UnmarshalBinary(damage(bytes.Clone(good))); !errors.Is(err, ErrFormat) {
				t.Errorf("%s, %s: error %v", name, what, err)
			}
			if !bytes.Equal(mustBytes(t, a), good) {
				t.Errorf("%s, %s: refused bytes changed the alarm", name, what)
			}
		}
		for n := 0; n < len(good); n += 1 + n/50 {
			if err := s.fresh(name).UnmarshalBinary(good[:n:n]); !errors.Is(err, ErrFormat) {
				t.Fatalf("%s: the first %d of %d bytes: error %v", name, n, len(good), err)
			}
		}
	}
}

// Counts that are each possible and cannot be of one stream: half a rhythm less of
// each class than the pending job has, which would leave a result overdue, and counts
// that are right together but for 2⁶⁴.
func TestUnmarshalHoldsCountsTogether(t *testing.T) {
	le := binary.LittleEndian
	s := newStage()
	s.play(3_650)
	good := mustBytes(t, s.noise)
	if _, pending := s.noise.Due(); !pending {
		t.Fatal("no job is pending")
	}
	fewer := bytes.Clone(good)
	for _, at := range []int{200, 208} {
		le.PutUint64(fewer[at:], le.Uint64(fewer[at:])-Rhythm/2)
	}
	around := bytes.Clone(good)
	ham := 224 + 8*int(le.Uint64(good[216:]))
	spam := ham + 8 + 4*3*s.noise.classes[0].held()
	const far = 110 * 1_000_000_007 // a multiple of the ring's 110 rows
	for at, by := range map[int]uint64{200: 1<<64 - far, ham: 1<<64 - far, 208: far, spam: far} {
		le.PutUint64(around[at:], le.Uint64(around[at:])+by)
	}
	for name, b := range map[string][]byte{"fewer events before the job": fewer, "counts around 2⁶⁴": around} {
		if err := s.fresh("labelnoise").UnmarshalBinary(b); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := s.fresh("labelnoise").UnmarshalBinary(good); err != nil {
		t.Error(err)
	}
}

// fuzzAlarm checks that bytes that can be read are written back unchanged, and that the
// alarm runs.
func fuzzAlarm(f *testing.F, name string, run func(a alarm)) {
	s := newStage()
	s.noise = withSpans(LabelNoiseConfig{Dim: 3}, func(s *spans) { s.perClass, s.rounds, s.recent = 2, 2, 3 }) // few bytes to mutate
	f.Add(mustBytes(f, s.alarms()[name]))
	s.play(620)
	f.Add(mustBytes(f, s.alarms()[name]))
	s.play(3_050)
	f.Add(mustBytes(f, s.alarms()[name]))
	f.Fuzz(func(t *testing.T, b []byte) {
		a := s.fresh(name)
		if err := a.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if !bytes.Equal(mustBytes(t, a), b) {
			t.Fatalf("read %d bytes, wrote others", len(b))
		}
		run(a)
		if s := a.Status(); math.IsNaN(s.Level) || math.IsNaN(s.Reference) {
			t.Fatalf("%+v", s)
		}
	})
}

func FuzzPageHinkley(f *testing.F) {
	fuzzAlarm(f, "pagehinkley", func(a alarm) {
		for i := range uint64(100) {
			a.(*PageHinkley).Observe(i, 3)
		}
	})
}

func FuzzCovariate(f *testing.F) {
	fuzzAlarm(f, "covariate", func(a alarm) {
		for i := range uint64(100) {
			a.(*Covariate).Observe(i, float64(i))
		}
	})
}

func FuzzLabelNoise(f *testing.F) {
	fuzzAlarm(f, "labelnoise", func(a alarm) {
		n := a.(*LabelNoise)
		n.Report()
		if job, ok := n.Pending(); ok {
			n.Finish(job.Run())
		}
	})
}
