package stream

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// What ordinary clients and our own encoders write.
var ordinaryEvents = []string{
	`{"mail":"RnJvbTogYUBiCgpoZWxsbwo="}`,
	` { "id" : "a1" , "time" : "2026-11-20T10:00:00+01:00" , "mail" : "QUI=" } `,
	"{\n\t\"text\": \"gr\u00fc\u00dfe\\n\\\"x\\\" \\u20ac \\ud800 \\\\\"\r\n}",
	`{"id":"a1","source":"abuse-desk","tenant":"example.org","action":"relearn","of":"a0","label":"spam","text":"\"\\"}`,
	`{"vector":{"b":1,"a":-2e9,"c":-0,"d":0.5E+2,"e":1.25e-300}}`,
	`{"vector":{}}`,
	`{"mail":""}`,
	`{"text":""}`,
	`{}`,
}

// Each of these encoding/json must judge, which accepts some.
var otherEvents = []string{
	``, ` `, `{`, `{"`, `{"text"`, `{"text":`, `{"text":"`, `{"text":"\`, `{"text":"\"`, `{"text":"x"`, `{"text":"x",}`, `{"text":"x"}}`,
	`[]`, `null`, `"x"`, `{"text":null}`, `{"text":1}`, `{"txet":"x"}`, `{"Text":"x"}`, `{"te\u0078t":"x"}`, `{"text":"x","text":"y"}`,
	`{"text":"x","mail":"QUI="}`, `{"label":"maybe","text":"x"}`, `{"own_only":true,"text":"x"}`, `{"own_only":false,"text":"x"}`,
	`{"text":"\x"}`, "{\"text\":\"a\nb\"}", "{\"text\":\"\xff\"}", "{\"text\":\"\xff\\n\"}", "{\"text\":\"x\"}\x00", "\ufeff{}", "{\"text\":\"x\"\v}",
	`{"mail":"QUI"}`, `{"mail":"QU=I"}`, `{"mail":"QUI=QUI="}`, `{"mail":"QU\u0049="}`, `{"mail":"QUI=\n"}`, "{\"mail\":\"QUJD\n\"}", "{\"mail\":\"\n\n\n\n\"}",
	`{"mail":"QUI*"}`, `{"mail":"===="}`, `{"mail":["QUI="]}`, `{"mail":"QUJD\r\n\r\n"}`,
	`{"time":"yesterday","text":"x"}`, `{"time":"2026-11-20T10:00:00\u005a","text":"x"}`, `{"time":"","text":"x"}`,
	`{"vector":{"a":01}}`, `{"vector":{"a":.5}}`, `{"vector":{"a":1.}}`, `{"vector":{"a":1e}}`, `{"vector":{"a":+1}}`, `{"vector":{"a":0x1}}`, `{"vector":{"a":1_0}}`,
	`{"vector":{"a":-}}`, `{"vector":{"a":inf}}`, `{"vector":{"a":1e999}}`, `{"vector":{"a":1,"a":2}}`, `{"vector":{"a":"1"}}`, `{"vector":[1]}`, `{"vector":{"\u0061":1}}`,
	`{"vector":{"a":null}}`, `{"vector":{"a":1e-400}}`,
}

// checkEvent compares both ways to read an event, and an array of it.
func checkEvent(t *testing.T, b []byte) {
	t.Helper()
	same := func(what string, got any, err error, want any, wantErr error) {
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() || !reflect.DeepEqual(got, want) {
			t.Errorf("%s %q: %+v, %v; encoding/json reads %+v, %v", what, b, got, err, want, wantErr)
		}
	}
	got, err := DecodeJSONOf("t", b)
	want, wantErr := decodeJSON("t", b)
	same("event", got, err, want, wantErr)
	for _, list := range [][]byte{b, []byte("[" + string(b) + "]"), []byte("[" + string(b) + "," + string(b) + "] "), []byte("[" + string(b) + "]]")} {
		got, err := DecodeJSONList("t", list, 1)
		want, wantErr := decodeJSONList("t", list, 1)
		same("array", got, err, want, wantErr)
		got, err = DecodeJSONList("t", list, 2)
		want, wantErr = decodeJSONList("t", list, 2)
		same("array", got, err, want, wantErr)
	}
}

// The scanner reads ordinary events itself, and all others as encoding/json does.
func TestJSONScanner(t *testing.T) {
	for _, text := range ordinaryEvents {
		s := jsonScanner{[]byte(text)}
		if e, ok := s.event("t"); !ok || !s.ends() {
			t.Errorf("%q: the scanner leaves it to encoding/json at %q: %+v", text, s.rest, e)
		}
		checkEvent(t, []byte(text))
		for i := range text {
			checkEvent(t, []byte(text[:i]))
		}
	}
	for _, text := range otherEvents {
		checkEvent(t, []byte(text))
	}
	if got, err := DecodeJSONList("t", []byte(` [ ] `), 0); err != nil || got == nil || len(got) > 0 {
		t.Errorf("an empty array: %v, %v", got, err)
	}
}

func FuzzJSONScanner(f *testing.F) {
	for _, text := range append(ordinaryEvents, otherEvents...) {
		f.Add([]byte(text))
	}
	f.Fuzz(checkEvent)
}

// checkVerdicts compares both ways to read verdicts.
func checkVerdicts(t *testing.T, b []byte) {
	t.Helper()
	got, err := DecodeVerdicts(b)
	want := make([]Verdict, 1)
	var wantErr error
	if len(b) > 0 && b[0] == '[' {
		wantErr = json.Unmarshal(b, &want)
	} else {
		wantErr = json.Unmarshal(b, &want[0])
	}
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() || !reflect.DeepEqual(got, want) {
		t.Errorf("%q: %+v, %v; encoding/json reads %+v, %v", b, got, err, want, wantErr)
	}
}

// A verdict's JSON is that of encoding/json, and is read back by the scanner unless it explains.
func TestVerdictJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	number := func() float64 {
		switch r.IntN(4) {
		case 0:
			return r.NormFloat64()
		case 1:
			return []float64{0, math.Copysign(0, -1), 1, 0.1, 1e-6, math.Nextafter(1e-6, 0), 1e-7, 1e-10, 1e20, 1e21, -1e22, 1e100, 1e-100, math.MaxFloat64,
				math.SmallestNonzeroFloat64}[r.IntN(15)]
		}
		for {
			if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
				return f
			}
		}
	}
	word := func() string {
		return []string{"", "a", "spam", `"\`, "<b>&amp;", "grüße\u2028", "\n\x00\x7f", "\xff", "0123456789abcdef"}[r.IntN(9)]
	}
	for i := range 20_000 {
		v := Verdict{ID: word(), P: number(), LogOdds: number(), Interval: [2]float64{number(), number()}, Decision: Decision(word()), Margin: number(),
			Identity: word(), Model: ModelRef{Name: word(), SHA256: word(), AgeMS: int64(r.Uint64())}}
		if i%2 > 0 {
			v.Model.Positions = []int64{}
			for range r.IntN(3) {
				v.Model.Positions = append(v.Model.Positions, int64(r.Uint64()))
			}
		}
		if i%3 == 0 {
			v.Rule = &Rule{By: RuleName(word()), LoseAtMost: number(), SpamAt: number(), Ham: number(), Lost: number()}
			if i%2 > 0 {
				v.Rule.Cost, v.Rule.Missing = number(), number()
			}
		}
		explains := i%5 == 0
		if explains {
			v.Reasons = append(v.Reasons, Reason{word(), number(), number()})
			v.Words = append(v.Words, Word{word(), word(), number(), i%2 > 0})
		}
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.AppendJSON([]byte("x"))
		if err != nil || string(got) != "x"+string(want) {
			t.Fatalf("%+v:\ngot  %s, %v\nwant %s", v, got[1:], err, want)
		}
		checkVerdicts(t, want)
		checkVerdicts(t, append(append(append(append([]byte{'['}, want...), ','), want...), ']'))
		s := jsonScanner{want}
		if scanned := s.verdict(new(Verdict)); scanned != (!explains && v.Model.Positions != nil) && !strings.Contains(string(want), `\ufffd`) {
			t.Fatalf("%s: the scanner reads it: %v", want, scanned)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, v := range []Verdict{{P: f}, {LogOdds: f}, {Interval: [2]float64{f, 1}}, {Interval: [2]float64{0, f}}, {Margin: f}, {Reasons: []Reason{{SD: f}}},
			{Rule: &Rule{SpamAt: f}}, {Rule: &Rule{Missing: f}}} {
			if _, err := v.AppendJSON(nil); err == nil {
				t.Errorf("%+v has a JSON", v)
			}
		}
	}
}

func FuzzDecodeVerdicts(f *testing.F) {
	for _, text := range []string{
		`{"p":0.5,"log_odds":0,"interval":[0.4,1],"verdict":"ham","margin":-1,"model":{"name":"m","sha256":"00","positions":[7],"age_ms":12}}`,
		`[]`, `[{}]`, `[{"p":1},{"p":2}]`, `[{"p":1},{"q":2}]`, `{"interval":[1]}`, `{"interval":[1,2,3]}`, `{"interval":[]}`, `{"p":1,"p":2}`, `{"P":1}`, `{"p":null}`,
		`{"model":{"positions":null}}`, `{"model":{"positions":[1e3]}}`, `{"model":{"positions":[1.0]}}`, `{"model":{"age_ms":-0}}`, `{"model":{"age_ms":99999999999999999999}}`,
		`{"model":{"name":"a"},"model":{"sha256":"b"}}`, `{"interval":[1,2],"interval":[3]}`, ``, `x`, `{} x`,
		`{"rule":{"by":"budget","lose_at_most":0.001,"spam_at":0.962,"ham":4120.5}}`, `{"rule":null}`, `{"rule":{"by":1}}`, `{"rule":{"why":""}}`,
		`{"rule":{"cost":1},"rule":{"ham":2}}`, `{"rule":{"cost":null}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(checkVerdicts)
}

var benchmarkEvents = func() []byte {
	e := Event{ID: "a1", Time: time.Unix(1e9, 0), Body: Body{Kind: Mail, Mail: []byte(strings.Repeat("The quick brown fox jumps over the lazy dog.\r\n", 115))}}
	b, err := e.AppendJSON(nil)
	if err != nil {
		panic(err)
	}
	return []byte("[" + strings.Repeat(string(b)+",", 63) + string(b) + "]")
}()

// BenchmarkDecodeJSONList reads 64 mails of 5.3 KB, in both ways.
func BenchmarkDecodeJSONList(b *testing.B) {
	for _, way := range []struct {
		name   string
		decode func(string, []byte, int) ([]Event, error)
	}{{"scanner", DecodeJSONList}, {"encoding-json", decodeJSONList}} {
		b.Run(way.name, func(b *testing.B) {
			b.SetBytes(int64(len(benchmarkEvents)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := way.decode("t", benchmarkEvents, 64); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVerdictJSON writes and reads a verdict, in both ways.
func BenchmarkVerdictJSON(b *testing.B) {
	v := Verdict{P: 0.98731234, LogOdds: 4.3562341, Interval: [2]float64{0.91234561, 0.9981234}, Decision: DecideSpam, Margin: 1.2345123,
		Identity: strings.Repeat("0a", 16), Model: ModelRef{Name: DefaultName, SHA256: strings.Repeat("0a", 32), Positions: []int64{1500}, AgeMS: 12345}}
	text, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	for _, way := range []struct {
		name string
		do   func() error
	}{
		{"append", func() error { _, err := v.AppendJSON(make([]byte, 0, 512)); return err }},
		{"marshal", func() error { _, err := json.Marshal(v); return err }},
		{"decode", func() error { _, err := DecodeVerdicts(text); return err }},
		{"unmarshal", func() error { return json.Unmarshal(text, new(Verdict)) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := way.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
