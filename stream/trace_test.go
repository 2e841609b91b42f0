package stream

import (
	"slices"
	"strings"
	"testing"
)

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestParseTrace(t *testing.T) {
	for in, want := range map[string]Trace{
		trace: trace,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
		"cc" + trace[2:]:            trace,
		"cc" + trace[2:] + "-later": trace,
		"cc" + trace[2:53] + "fe":   Trace(trace[:53] + "00"),
		"":                          "",
		trace[:54]:                  "",
		trace + "-later":            "",
		trace + "0":                 "",
		"cc" + trace[2:] + "later":  "",
		"ff" + trace[2:]:            "",
		strings.ToUpper(trace):      "",
		" " + trace:                 "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g": "",
		"00-0af7651916cd43dd8448eb211c8031-9c-b7ad6b716920333-01": "",
		"00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01": "",
		strings.Repeat("0", 1<<20):                                "",
	} {
		if got := ParseTrace(in); got != want {
			t.Errorf("%.80q is %q, want %q", in, got, want)
		}
	}
	if ParseTrace() != "" || ParseTrace(trace, trace) != "" {
		t.Error("none and two are no trace")
	}
	if got := Trace(trace).ID(); got != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("id %s", got)
	}
	if Trace("").ID() != "" || Trace("").LogAttrs() != nil || Trace("").AppendHeader(nil) != nil {
		t.Error("an empty trace says something")
	}
}

func TestNewTrace(t *testing.T) {
	a, b := NewTrace(), NewTrace()
	if ParseTrace(string(a)) != a || a.ID() == b.ID() || !strings.HasSuffix(string(a), "-00") {
		t.Errorf("%q and %q: want two traces that nobody samples", a, b)
	}
}

func FuzzParseTrace(f *testing.F) {
	f.Add(trace)
	f.Add("cc" + trace[2:] + "-x")
	f.Fuzz(func(t *testing.T, s string) {
		got := ParseTrace(s)
		if got == "" {
			return
		}
		if ParseTrace(string(got)) != got || len(got) != len(trace) || strings.Trim(string(got), "0123456789abcdef-") != "" || !strings.Contains(s, got.ID()) {
			t.Errorf("%q is %q", s, got)
		}
	})
}

// A record carries a trace to the learner and into its dead letter.
func TestTraceOfRecords(t *testing.T) {
	headers := Trace(trace).AppendHeader([]Header{{"ce_id", []byte("1")}})
	if RecordTrace(headers) != trace {
		t.Errorf("%v has no trace", headers)
	}
	if RecordTrace(DeadLetter{Reason: "x"}.AppendHeaders(headers)) != trace {
		t.Error("a dead letter has no trace")
	}
	if got := RecordTrace(slices.Concat(headers, headers)); got != "" {
		t.Errorf("two traces are %q", got)
	}
}
