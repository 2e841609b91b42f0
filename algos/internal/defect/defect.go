// Package defect turns a panic, which is a defect of this program, into an error. The error's
// text depends on the panic alone: it becomes the reason of a dead letter, and a replay on the
// same program must give the same one. So it has no stack and no address.
package defect

import (
	"fmt"
	"runtime"
	"strings"
)

// Prefix is how the text of every [Error] begins.
const Prefix = "a defect of hamlet: "

// An Error is a panic that was recovered.
type Error struct {
	Doing string // what this program was doing, such as "read this body"
	Value any    // of the panic
	Stack []byte // where it was, for a log: it names no content
}

// Recovered returns the Error of a value that recover has returned. It must be called by the
// deferred function, so that the stack is that of the panic. Value may be an *Error, which
// comes from another goroutine: its value and its stack are taken.
func Recovered(doing string, value any) *Error {
	if from, ok := value.(*Error); ok {
		return &Error{Doing: doing, Value: from.Value, Stack: from.Stack}
	}
	stack := make([]byte, 16<<10)
	return &Error{Doing: doing, Value: value, Stack: stack[:runtime.Stack(stack, false)]}
}

// Error says what panicked, in one line.
func (e *Error) Error() string { return Prefix + e.Doing + ": " + text(e.Value) }

const mostText = 200 // bytes of a panic's text in an error

// text returns what a panic says. Of a value that is no text it returns the type alone: its
// fields may hold addresses.
func text(value any) string {
	var s string
	switch v := value.(type) {
	case error:
		s = v.Error()
	case string:
		s = v
	case fmt.Stringer:
		s = v.String()
	default:
		s = fmt.Sprintf("a panic of type %T", value)
	}
	s = withoutAddresses(strings.ToValidUTF8(s[:min(len(s), mostText)], "�"))
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
}

// withoutAddresses replaces numbers of six and more hexadecimal digits.
func withoutAddresses(s string) string {
	parts := strings.Split(s, "0x")
	for i, part := range parts[1:] {
		digits := len(part) - len(strings.TrimLeft(part, "0123456789abcdefABCDEF"))
		if digits >= 6 {
			parts[i+1] = "…" + part[digits:]
		}
	}
	return strings.Join(parts, "0x")
}
