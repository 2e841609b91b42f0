package follow

import (
	"hamlet/state"
	"hamlet/stream"
)

// Advance returns the position behind a record that a model has absorbed.
func Advance(p state.Position, r *stream.Record) state.Position {
	return p.Advance(r.Offset, r.Key, r.Value, chained(r.Headers)...)
}

// Absorbed reports whether a record is the last one of a position.
func Absorbed(p state.Position, r *stream.Record) bool {
	return r.Offset == p.Next-1 && p.Follows(r.Key, r.Value, chained(r.Headers)...)
}

func chained(headers []stream.Header) []state.Header {
	all := make([]state.Header, len(headers))
	for i, h := range headers {
		all[i] = state.Header{Key: h.Key, Value: h.Value}
	}
	return all
}
