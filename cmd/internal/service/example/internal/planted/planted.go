// Package planted lets a test plant a panic in the parser of mail. Tests reach it by package
// exampletest. Nothing is planted otherwise, which costs one atomic load.
package planted

import (
	"bytes"
	"sync/atomic"
)

var word atomic.Pointer[string]

// Set has mail with this word panic, in place of the word before, which it returns. nil: none does.
func Set(w *string) (before *string) { return word.Swap(w) }

// Parse panics if a mail has the word.
func Parse(mail []byte) {
	if w := word.Load(); w != nil && bytes.Contains(mail, []byte(*w)) {
		panic("a panic that a test has planted in the parser of mail")
	}
}
