package stream

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// HeaderTrace is the header of W3C Trace Context, on HTTP, NATS and Kafka alike. Each part of
// hamlet hands on what came in, and names its trace in log lines about that request or event.
// A mail server's message begins a trace where its protocol has none (see [NewTrace]). hamlet
// adds no spans of its own.
const HeaderTrace = "traceparent"

// A Trace is a value of HeaderTrace that is valid, in version 00, or empty. So it has no more
// than 55 bytes, of 0-9, a-f and -.
type Trace string

// ParseTrace reads the values of a HeaderTrace. Unless there is exactly one that is valid, it
// returns the empty Trace: what is malformed goes nowhere. Of a later version it takes what
// version 00 has.
func ParseTrace(values ...string) Trace {
	const size = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if len(values) != 1 || len(values[0]) < size {
		return ""
	}
	v, more := values[0][:size], values[0][size:]
	version, rest, _ := strings.Cut(v, "-")
	trace, rest, _ := strings.Cut(rest, "-")
	parent, flags, _ := strings.Cut(rest, "-")
	switch {
	case !hexadecimal(version, 2), !hexadecimal(trace, 32), !hexadecimal(parent, 16), !hexadecimal(flags, 2):
		return ""
	case version == "ff", strings.Trim(trace, "0") == "", strings.Trim(parent, "0") == "":
		return ""
	case version == "00" && more != "", more != "" && more[0] != '-':
		return ""
	}
	if version != "00" {
		flags = "0" + string("01"[strings.IndexByte("0123456789abcdef", flags[1])%2]) // whether it is sampled
	}
	return Trace("00-" + trace + "-" + parent + "-" + flags)
}

// NewTrace begins a trace. Its id is random, and its flags say that nobody samples it.
func NewTrace() Trace {
	var ids [16 + 8]byte
	for {
		_, _ = rand.Read(ids[:]) // never fails
		t := "00-" + hex.EncodeToString(ids[:16]) + "-" + hex.EncodeToString(ids[16:]) + "-00"
		if valid := ParseTrace(t); valid != "" { // an id of zeroes is none
			return valid
		}
	}
}

// hexadecimal reports whether s is n digits in lower case.
func hexadecimal(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}

// ID returns the trace's id as logs show it: 32 digits, or "" for an empty Trace.
func (t Trace) ID() string {
	if t == "" {
		return ""
	}
	return string(t[3:35])
}

// LogAttrs returns the attribute "trace" with the ID for a log line; none for an empty Trace.
func (t Trace) LogAttrs() []any {
	if t == "" {
		return nil
	}
	return []any{"trace", t.ID()}
}

// AppendHeader appends t to the headers of a Kafka record, unless it is empty.
func (t Trace) AppendHeader(headers []Header) []Header {
	if t == "" {
		return headers
	}
	return append(headers, Header{HeaderTrace, []byte(t)})
}

// RecordTrace returns the trace that the headers of a Kafka record name.
func RecordTrace(headers []Header) Trace {
	var values []string
	for _, h := range headers {
		if h.Key == HeaderTrace {
			values = append(values, string(h.Value))
		}
	}
	return ParseTrace(values...)
}

type traceKey struct{}

// WithTrace returns a context that carries t to what is asked with it.
func WithTrace(ctx context.Context, t Trace) context.Context {
	if t == "" {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, t)
}

// ContextTrace returns the trace that ctx carries, or the empty one.
func ContextTrace(ctx context.Context) Trace {
	t, _ := ctx.Value(traceKey{}).(Trace)
	return t
}
