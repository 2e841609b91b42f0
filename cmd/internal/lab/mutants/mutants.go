// Package mutants plants defects, one at a time, and looks who finds them: first the laws of the
// package, then the simulator. A defect that nobody finds says which law is missing.
//
//	HAMLET_NIGHTLY=1 go test ./cmd/internal/lab/mutants -run Found -v -timeout 150m -shard 1/2
//	HAMLET_NIGHTLY=1 go test ./cmd/internal/lab/mutants -run Found -v -only filelog-
//
// A defect is a file of testdata:
//
//	what: an append is acknowledged before its fsync
//	hurts: whoever labels: a power failure takes labels that were acknowledged
//	file: stream/filelog/append.go
//	laws: ./stream/filelog -run ^TestPowerCuts$
//	old:
//		err := l.tail.Sync()
//	new:
//		var err error
//
// The old text must be in the file exactly once. There may be several pairs of old and new, and several
// lines of laws, which run in their order. Each pair is of the file that was named last. Planting
// touches no file: the compiler reads the changed text in the place of the file, by -overlay.
//
// A colleague could have made each of these. What is no defect, because nothing observable changes, is
// no mutant. MEASURED.md says who finds which.
package mutants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Mutant is a planted defect.
type Mutant struct {
	Name  string // of its file, without the ending
	What  string // is wrong
	Hurts string // whom, and how
	Edits []Edit
	Laws  []Law // that could find it; none: the simulator alone
}

// An Edit replaces a text that is in a file exactly once.
type Edit struct{ File, Old, New string }

// A Law is tests of a package.
type Law struct{ Package, Tests string }

// String is how go test is asked for it.
func (l Law) String() string { return l.Package + " -run " + l.Tests }

const ending = ".txt"

// Read reads the mutants of a folder, in order.
func Read(folder string) (all []Mutant, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*"+ending))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := parse(string(b))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m.Name = strings.TrimSuffix(filepath.Base(name), ending)
		all = append(all, m)
	}
	return all, nil
}

func parse(text string) (m Mutant, err error) {
	var file string
	var into *string // old or new, while their lines are read
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "what":
			m.What, into = value, nil
		case "hurts":
			m.Hurts, into = value, nil
		case "file":
			file, into = value, nil
		case "laws":
			path, tests, ok := strings.Cut(value, " -run ")
			if !ok {
				return m, fmt.Errorf("laws are PACKAGE -run PATTERN, and not %q", value)
			}
			m.Laws, into = append(m.Laws, Law{path, tests}), nil
		case "old":
			m.Edits = append(m.Edits, Edit{File: file})
			into = &m.Edits[len(m.Edits)-1].Old
		case "new":
			if len(m.Edits) == 0 {
				return m, errors.New("a new text without an old one")
			}
			into = &m.Edits[len(m.Edits)-1].New
		default:
			if into == nil {
				return m, fmt.Errorf("what is %q?", line)
			}
			*into += line
		}
	}
	for _, said := range []string{m.What, m.Hurts, file} {
		if said == "" {
			return m, errors.New("it must say what, hurts and file")
		}
	}
	if len(m.Edits) == 0 {
		return m, errors.New("it changes nothing")
	}
	for _, e := range m.Edits {
		if e.Old == "" || e.Old == e.New {
			return m, errors.New("old is empty, or new the same")
		}
	}
	return m, nil
}

// Plant returns the changed files: their paths below root, and their text. An old text that is not there
// exactly once is an error: the mutant is of another version of the file.
func (m *Mutant) Plant(root string) (changed map[string]string, err error) {
	changed = map[string]string{}
	for _, e := range m.Edits {
		text, again := changed[e.File]
		if !again {
			b, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("%s is stale: %s has this %d times:\n%s", m.Name, e.File, n, e.Old)
		}
		changed[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return changed, nil
}

// Shard returns the i-th of n parts of all, i from 1 to n: every n-th.
func Shard[T any](all []T, i, n int) (part []T) {
	for at := i - 1; at < len(all); at += n {
		part = append(part, all[at])
	}
	return part
}
