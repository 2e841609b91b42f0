package defect

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// recovered returns the Error of a panic in do.
func recovered(do func()) (e *Error) {
	defer func() { e = Recovered("try", recover()) }()
	do()
	return nil
}

func panics(value any) func() { return func() { panic(value) } }

type secret struct{ p *int }

// The text is a function of the panic: it has no address, no line break, and a bounded length.
func TestTextIsOfThePanicAlone(t *testing.T) {
	var none []int
	var nothing *secret
	for want, do := range map[string]func(){
		"try: text: a length that is wrong": panics("text: a length that is wrong"),
		"try: wrapped":                      panics(errors.New("wrapped")),
		"try: runtime error: index out of range [3] with length 0":              func() { _ = none[3] },
		"try: runtime error: invalid memory address or nil pointer dereference": func() { _ = nothing.p },
		"try: a panic of type defect.secret":                                    panics(secret{new(int)}),
		"try: a panic of type *int":                                             panics(new(int)),
		"try: at 0x…, and 0x1f":                                                 panics(fmt.Sprintf("at %p, and 0x1f", new(int))),
		"try: two lines":                                                        panics("two\r\nlines"),
		"try: " + strings.Repeat("x", mostText):                                 panics(strings.Repeat("x", 2*mostText)),
	} {
		e := recovered(do)
		if got := e.Error(); got != Prefix+want {
			t.Errorf("got %q, want %q", got, Prefix+want)
		}
		if !strings.Contains(string(e.Stack), "defect_test.go") {
			t.Errorf("%s: the stack does not name this file:\n%s", want, e.Stack)
		}
	}
}

// What another goroutine recovered keeps its stack.
func TestRecoveredTwice(t *testing.T) {
	first := recovered(panics("first"))
	second := recovered(panics(first))
	if second.Error() != first.Error() || string(second.Stack) != string(first.Stack) {
		t.Errorf("got %v, want %v with its stack", second, first)
	}
}
