package stream

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawEvent draws an event that a model could learn from.
func drawEvent(t *rapid.T) Event {
	name := rapid.StringMatching(`[a-zA-Z0-9ü._ -]{1,20}`)
	e := Event{
		ID:     name.Draw(t, "id"),
		Source: name.Draw(t, "source"),
		Tenant: name.Draw(t, "tenant"),
		Action: Action(rapid.IntRange(0, 2).Draw(t, "action")),
		Label:  Label(rapid.IntRange(1, 2).Draw(t, "label")),
	}
	if rapid.Bool().Draw(t, "timed") {
		e.Time = time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).UTC()
	}
	if e.Action != Learn {
		e.Of = name.Draw(t, "of")
		e.OwnOnly = rapid.Bool().Draw(t, "own only")
	}
	if e.Action != Unlearn && rapid.Bool().Draw(t, "sampled") {
		share := rapid.Float64Range(0.02, 1)
		e.Sampled = SampledShare(share.Draw(t, "probability"), rapid.SampledFrom(SampledWhys()).Draw(t, "why"))
		if rapid.Bool().Draw(t, "by policy") {
			e.Sampled.Least = share.Draw(t, "least")
		}
	}
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		e.Body = Body{Kind: Mail, Mail: rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "mail")}
	case 1:
		e.Body = Body{Kind: Text, Text: rapid.StringN(1, 50, -1).Draw(t, "text")}
	default:
		v := []Number{}
		for _, n := range rapid.SliceOfNDistinct(name, 0, 8, rapid.ID).Draw(t, "names") {
			v = append(v, Number{n, rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "value")})
		}
		if err := SortVector(v); err != nil {
			t.Fatal(err)
		}
		e.Body = Body{Kind: Vector, Vector: v}
	}
	return e
}

func TestEncodingsAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEvent(t)
		if err := e.Validate(); err != nil {
			t.Fatalf("drawn event is not valid: %v", err)
		}
		j, err := e.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := e.AppendProto(nil)
		if err != nil {
			t.Fatal(err)
		}
		value, headers, err := e.EncodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range []struct {
			name   string
			decode func() (Event, error)
		}{
			{"JSON", func() (Event, error) { return DecodeJSON(j) }},
			{"protobuf", func() (Event, error) { return DecodeProto(p) }},
			{"record", func() (Event, error) { return DecodeRecord(headers, value) }},
			{"bare protobuf", func() (Event, error) { return DecodeRecord(nil, p) }},
			{"bare JSON", func() (Event, error) { return DecodeRecord(nil, j) }},
		} {
			got, err := way.decode()
			if err != nil {
				t.Fatalf("%s: %v", way.name, err)
			}
			if d := cmp.Diff(e, got); d != "" {
				t.Fatalf("%s: what came back differs (-want +got):\n%s", way.name, d)
			}
		}
	})
}

func TestDecodeJSONIsStrict(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"id":"a","label":"spam","text":"x","colour":1}`, `unknown field "colour"`},
		{`{"ID":"a","label":"spam","text":"x"}`, `unknown field "ID"`},
		{`{"id":"a","id":"b","label":"spam","text":"x"}`, `"id" is given twice`},
		{`{"id":"a","label":"Spam","text":"x"}`, `"Spam" is neither spam nor ham`},
		{`{"id":"a","label":"spam","text":"x","vector":{}}`, "only one of mail, text and vector"},
		{`{"id":"a","label":"spam","text":1}`, `field "text"`},
		{`{"id":"a","label":"spam","text":null}`, `field "text" is null`},
		{`{"id":"a","label":"spam","mail":"***"}`, "base64"},
		{`{"id":"a","label":"spam","vector":{"x":1,"x":2}}`, `name "x" is given twice`},
		{`{"id":"a","label":"spam","vector":{"x":"1"}}`, `"x" is not a number`},
		{`{"id":"a","label":"spam","vector":{"x":null}}`, `"x" is not a number`},
		{`{"id":"a","label":"spam","vector":{"x":1e999}}`, `"x" is not a number`},
		{`{"id":"a","label":"spam","vector":[1]}`, "an object of name: number"},
		{`{"id":"a","time":"yesterday","label":"spam","text":"x"}`, `field "time": not a time`},
		{`{"id":"a","action":"forget","label":"spam","text":"x"}`, `action: "forget"`},
		{`{"id":"a","action":"unlearn","of":"b","own_only":false,"text":"x"}`, `own_only: it is true`},
		{`{"id":"a","action":"unlearn","of":"b","own_only":"true","text":"x"}`, `field "own_only"`},
		{`{"id":"a","label":"ham","text":"x","sampled":{}}`, `sampled: probability: missing`},
		{`{"id":"a","label":"ham","text":"x","sampled":{"probability":0,"why":"all"}}`, `sampled: probability: missing, or 0`},
		{`{"id":"a","label":"ham","text":"x","sampled":null}`, `field "sampled" is null`},
		{`{"id":"a","label":"ham","text":"x","sampled":[0.1]}`, "sampled: an object is wanted"},
		{`{"id":"a","label":"ham","text":"x","sampled":{"probability":"1"}}`, `sampled: field "probability"`},
		{`{"id":"a","label":"ham","text":"x","sampled":{"probability":1,"least":null}}`, `sampled: field "least" is null`},
		{`{"id":"a","label":"ham","text":"x","sampled":{"probability":1,"p":1}}`, `sampled: unknown field "p"`},
		{`{"id":"a","label":"ham","text":"x","sampled":{"why":"all","why":"all"}}`, `sampled: field "why" is given twice`},
		{`{"id":"a","label":"spam","text":"x"} {}`, "something follows"},
		{`{"id":"a","label":"spam"`, "ends too early"},
		{`["id"]`, "an object is wanted"},
		{``, "ends too early"},
		{"{\"id\":\"\xff\"}", "not UTF-8"},
	} {
		_, err := DecodeJSON([]byte(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("DecodeJSON(%s): got error %v, want one with %q", c.in, err, c.want)
		}
	}
}

func TestDecodeJSONList(t *testing.T) {
	one := `{"id":"a","text":"x"}`
	for in, want := range map[string]string{
		`[]`:                          "",
		` [` + one + `,` + one + `] `: "",
		// Elements beyond the limit are not decoded.
		`[` + one + `,` + one + `,` + one + `,***`: "more than 2 events",
		`[` + one + `,{}`:                          "ends too early",
		`[` + one + `,{"x":1},***`:                 `[1]: event in JSON: unknown field "x"`,
		`[` + one + `] 1`:                          "something follows",
		`[` + one + ` ` + one + `]`:                "after array element",
		`null`:                                     "an array is wanted",
		one:                                        "an array is wanted",
		``:                                         "ends too early",
	} {
		events, err := DecodeJSONList(DefaultName, []byte(in), 2)
		if want == "" {
			if err != nil || len(events) != strings.Count(in, one) {
				t.Errorf("DecodeJSONList(%s) = %d events, %v", in, len(events), err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("DecodeJSONList(%s): got error %v, want one with %q", in, err, want)
		}
	}
	// A million elements cost no more than the limit allows.
	large := []byte("[" + strings.Repeat(one+",", 1_000_000/2) + one + "]")
	if got := testing.AllocsPerRun(1, func() { DecodeJSONList(DefaultName, large, 2) }); got > 300 {
		t.Errorf("a list far beyond the limit took %v allocations", got)
	}
}

func TestDefaultsOfJSON(t *testing.T) {
	got, err := DecodeJSON([]byte(`{"id":"a","label":"ham","text":"hello"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Event{ID: "a", Source: "default", Tenant: "default", Label: Ham, Body: Body{Kind: Text, Text: "hello"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestValidateNamesEverything(t *testing.T) {
	text := Body{Kind: Text, Text: "x"}
	for _, c := range []struct {
		name string
		e    Event
		want []string
	}{
		{"nothing", Event{}, []string{"id: missing", "label: missing", "body: exactly one"}},
		{"address", Event{ID: "a", Source: "bob@example.org", Label: Ham, Body: text}, []string{"source: an opaque name"}},
		{"control", Event{ID: "a\n", Label: Ham, Body: text}, []string{"id: holds a control character"}},
		{"long", Event{ID: strings.Repeat("a", 600), Label: Ham, Body: text}, []string{"id: 600 bytes"}},
		{"of", Event{ID: "a", Of: "b", Label: Ham, Body: text}, []string{"of: learn has none"}},
		{"own", Event{ID: "a", OwnOnly: true, Label: Ham, Body: text}, []string{"own_only: learn has none"}},
		{"no of", Event{ID: "a", Action: Relearn, Label: Ham, Body: text}, []string{"of: missing; relearn"}},
		{"unlearn", Event{ID: "a", Action: Unlearn, Sampled: SampledShare(1, SampledAll), Body: text}, []string{"sampled: unlearn has none"}},
		{"no share", Event{ID: "a", Label: Ham, Sampled: Sampled{-1, 1.5, "all"}, Body: text},
			[]string{"probability is -1", "least is 1.5"}},
		{"NaN share", Event{ID: "a", Label: Ham, Sampled: SampledShare(math.NaN(), SampledAll), Body: text}, []string{"probability is NaN"}},
		{"heavy", Event{ID: "a", Label: Ham, Sampled: Sampled{0.01, 1, "all"}, Body: text}, []string{"least/probability is 100"}},
		{"light", Event{ID: "a", Label: Ham, Sampled: Sampled{1, 1e-4, "all"}, Body: text}, []string{"least/probability is 0.0001"}},
		{"why", Event{ID: "a", Label: Ham, Sampled: SampledShare(1, ""), Body: text}, []string{"why: \"\" is not one of all, review, kept"}},
		{"NaN", Event{ID: "a", Label: Ham, Body: Body{Kind: Vector, Vector: []Number{{"x", math.NaN()}}}}, []string{`"x" is NaN`}},
		{"Inf", Event{ID: "a", Label: Ham, Body: Body{Kind: Vector, Vector: []Number{{"x", math.Inf(-1)}}}}, []string{`"x" is -Inf`}},
		{"order", Event{ID: "a", Label: Ham, Body: Body{Kind: Vector, Vector: []Number{{"b", 1}, {"a", 1}}}}, []string{`"a" is given twice or out of order`}},
		{"empty mail", Event{ID: "a", Label: Ham, Body: Body{Kind: Mail}}, []string{"mail: empty"}},
		{"empty text", Event{ID: "a", Label: Ham, Body: Body{Kind: Text}}, []string{"text: empty"}},
	} {
		err := c.e.Validate()
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, want %q in it", c.name, err, w)
			}
		}
	}
	sampled := Event{Sampled: SampledShare(1, SampledAll), Body: text}
	if err := sampled.ValidateRequest(); err == nil || !strings.Contains(err.Error(), "sampled: a score request has none") {
		t.Errorf("a sampled request: got %v", err)
	}
	request := Event{Label: Spam, Body: text}
	if err := request.ValidateRequest(); err == nil || !strings.Contains(err.Error(), "score request has none") {
		t.Errorf("a labelled request: got %v", err)
	}
}

// A bad time is refused by Validate, not by the learner after the answer 202. A valid
// time survives every encoding.
func TestTimesOfTheWire(t *testing.T) {
	for text, valid := range map[string]bool{
		"0000-12-31T23:59:59Z":      false,
		"0001-01-01T00:30:00+01:00": false, // year 0 in UTC
		"0001-01-01T00:00:00Z":      true,  // the zero time: unknown
		"0001-01-01T00:00:01Z":      true,
		"9999-12-31T23:59:59Z":      true,
		"9999-12-31T23:59:59-01:00": false, // year 10000 in UTC
	} {
		e, err := DecodeJSON([]byte(`{"id":"a","time":"` + text + `","label":"ham","text":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		err = e.Validate()
		if (err == nil) != valid {
			t.Errorf("time %s: Validate = %v", text, err)
		}
		if (e.ValidateRequest() == nil) && !valid {
			t.Errorf("time %s: a request with it is valid", text)
		}
		if err != nil {
			continue
		}
		value, headers, err := e.EncodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeRecord(headers, value)
		if err != nil || !got.Time.Equal(e.Time) {
			t.Errorf("time %s came back as %v, %v", text, got.Time, err)
		}
	}
}

func TestDecodeProtoRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"not a message", []byte{0xff, 0xff, 0xff}, "not a message"},
		{"unknown field", []byte{0xfa, 0x01, 0x00}, "unknown field number 31"},
		{"unknown action", []byte{0x28, 0x07}, "action: unknown value 7"},
		{"negative action", []byte{0x28, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, "action: unknown value -1"},
		{"unknown label", []byte{0x38, 0x80, 0x02}, "label: unknown value 256"},
		{"sampled without probability", []byte{0x62, 0x00}, "sampled: probability: missing"},
		{"sampled with more", []byte{0x62, 0x03, 0xfa, 0x01, 0x00}, "sampled: unknown field number 31"},
		{"lists differ", []byte{0x52, 0x03, 0x0a, 0x01, 'x'}, "1 names and 0 values"},
	} {
		_, err := DecodeProto(c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with %q", c.name, err, c.want)
		}
	}
}

func FuzzDecodeJSON(f *testing.F) {
	f.Add([]byte(`{"id":"a1","time":"2026-11-20T10:00:00Z","source":"abuse-desk","tenant":"example.org","action":"learn","label":"spam","text":"You won"}`))
	f.Add([]byte(`{"id":"a","label":"ham","vector":{"b":1,"a":-2e9}}`))
	f.Add([]byte(`{"mail":"RnJvbTogYQ0KDQpi"}`))
	f.Add([]byte(`{"id":"a","label":"ham","sampled":{"probability":0.5,"least":0.02,"why":"review"},"text":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeJSON(b)
		if err != nil {
			return
		}
		again, err := e.AppendJSON(nil)
		if err != nil {
			if y := e.Time.Year(); y < 0 || y > 9999 {
				return // RFC 3339 has no such year
			}
			t.Fatalf("decoded from %q, but: %v", b, err)
		}
		back, err := DecodeJSON(again)
		if err != nil {
			t.Fatalf("%q became %q, which is refused: %v", b, again, err)
		}
		if d := cmp.Diff(e, back); d != "" {
			t.Fatalf("%q: (-first +second)\n%s", b, d)
		}
	})
}

// plainEvents are of every kind that plainProto reads.
func plainEvents() []Event {
	at := time.Date(2026, 11, 30, 12, 0, 0, 5, time.UTC)
	return []Event{
		{ID: "a", Source: "s", Tenant: "t", Label: Spam, Time: at, Body: Body{Kind: Mail, Mail: []byte("Subject: a\r\n\r\nb")}},
		{ID: "a", Source: DefaultName, Tenant: DefaultName, Label: Ham, Time: at.Truncate(time.Second), Body: Body{Kind: Text, Text: "é"}},
		{ID: "a", Source: "s", Tenant: "t", Action: Correct, Of: "b", OwnOnly: true, Label: Ham, Time: time.Unix(-1, 999_999_999).UTC(),
			Body: Body{Kind: Mail, Mail: []byte{}}},
		{ID: "a", Source: "s", Tenant: "t", Label: Ham},
	}
}

func sameEvent(a, b *Event) bool {
	equal := cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
	return cmp.Equal(a, b, equal)
}

// What AppendProto writes of a mail or a text is read without the package proto, as that reads it.
func TestPlainEventsNeedNoReflection(t *testing.T) {
	for _, e := range plainEvents() {
		b, err := e.AppendProto(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := plainProto(b)
		if slow, err := decodeProto(b); !ok || err != nil || !sameEvent(&got, &slow) || !sameEvent(&got, &e) {
			t.Errorf("%+v came back as %+v, %v; the package proto says %+v, %v", e, got, ok, slow, err)
		}
	}
}

func FuzzDecodeProto(f *testing.F) {
	e := Event{ID: "a", Source: "s", Tenant: "t", Label: Spam, Body: Body{Kind: Vector, Vector: []Number{{"a", 1}}}}
	b, _ := e.AppendProto(nil)
	f.Add(b)
	f.Add([]byte{0x52, 0x03, 0x0a, 0x01, 'x'})
	e.Sampled = Sampled{0.5, 0.02, SampledReview}
	b, _ = e.AppendProto(nil)
	f.Add(b)
	for _, e := range plainEvents() {
		b, _ := e.AppendProto(nil)
		f.Add(b)
	}
	f.Add([]byte{0x12, 0x02, 0x10, 0x01, 0x12, 0x00})             // two times
	f.Add([]byte{0x42, 0x01, 'a', 0x4a, 0x01, 'b'})               // a mail and a text
	f.Add([]byte{0x42, 0x00, 0x58, 0x02})                         // own_only, not as 1
	f.Add([]byte{0x12, 0x04, 0x10, 0x01, 0x08, 0x01, 0x4a, 0x00}) // a time backwards
	f.Add([]byte{0x4a, 0x01, 0xff})                               // no UTF-8
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeProto(b)
		if slow, wrong := decodeProto(b); (err == nil) != (wrong == nil) || err == nil && !sameEvent(&e, &slow) {
			t.Fatalf("%x is %+v, %v; the package proto says %+v, %v", b, e, err, slow, wrong)
		}
		if err != nil {
			return
		}
		again, err := e.AppendProto(nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeProto(again)
		if err != nil {
			t.Fatalf("%x became %x, which is refused: %v", b, again, err)
		}
		equal := cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
		if d := cmp.Diff(e, back, equal); d != "" {
			t.Fatalf("(-first +second)\n%s", d)
		}
	})
}

// FuzzDecodeRecord: whatever is produced to the topic is either a valid event
// or an error, and an error fits into a dead letter's header.
func FuzzDecodeRecord(f *testing.F) {
	f.Add("content-type", "application/json", "ce_id", "a", []byte(`{"label":"ham","text":"x"}`))
	f.Add("ce_source", "%zz", "ce_time", "x", []byte{0x0a, 0x01, 'a'})
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string, value []byte) {
		headers := []Header{{k1, []byte(v1)}, {k2, []byte(v2)}}
		e, err := DecodeRecord(headers, value)
		if err == nil {
			if err := e.Validate(); err != nil {
				t.Fatalf("DecodeRecord let through %v", err)
			}
			return
		}
		d := DeadLetter{Reason: err.Error(), Topic: "t", Partition: 1, Offset: 2}
		back, err := ParseDeadLetter(d.AppendHeaders(nil))
		if err != nil || back.Offset != 2 || len(back.Reason) > maxReason {
			t.Fatalf("dead letter came back as %+v, %v", back, err)
		}
	})
}

// A correction may name its message or not, and has a label. Both encodings carry it.
func TestCorrectOnTheWire(t *testing.T) {
	for _, of := range []string{"", "0123456789abcdef0123456789abcdef"} {
		e := Event{ID: "c", Source: "s", Tenant: "t", Action: Correct, Of: of, OwnOnly: true, Label: Ham, Body: Body{Kind: Text, Text: "x"}}
		if err := e.Validate(); err != nil {
			t.Fatal(err)
		}
		b, err := e.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeJSON(b); err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%s: %+v, %v", b, got, err)
		}
		value, headers, err := e.EncodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeRecord(headers, value); err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("in protobuf: %+v, %v", got, err)
		}
	}
	if err := (&Event{ID: "c", Action: Correct, Body: Body{Kind: Text, Text: "x"}}).Validate(); err == nil {
		t.Error("a correction without a label is valid")
	}
}

// Without least that is the probability, in both encodings, and a sampled label is not written where there is
// none: what was written before is read and written as before.
func TestSampledOnTheWire(t *testing.T) {
	e := Event{ID: "a", Source: "s", Tenant: "t", Label: Ham, Body: Body{Kind: Text, Text: "x"}}
	for in, want := range map[string]Sampled{
		``: {},
		`,"sampled":{"probability":0.02,"why":"review"}`:             {0.02, 0.02, SampledReview},
		`,"sampled":{"probability":0.5,"least":0.02,"why":"review"}`: {0.5, 0.02, SampledReview},
		`,"sampled":{"probability":1,"why":"kept"}`:                  {1, 1, SampledKept},
	} {
		e.Sampled = want
		text := `{"id":"a","source":"s","tenant":"t","label":"ham"` + in + `,"text":"x"}`
		if got, err := DecodeJSON([]byte(text)); err != nil || cmp.Diff(e, got) != "" {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, e)
		}
		if got, err := e.AppendJSON(nil); err != nil || string(got) != text {
			t.Errorf("it is written %s, %v; want %s", got, err, text)
		}
	}
	if w := (Sampled{0.5, 0.02, SampledReview}).Weight(); w != 0.04 {
		t.Errorf("weight %v, want 0.04", w)
	}
	if w := (Sampled{}).Weight(); w != 0 {
		t.Errorf("a label that was volunteered weighs %v", w)
	}
}
