// Package version says which release a program is, and of which commit. It imports nothing
// that makes the start of a program slower: nothing that needs package net.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"hamlet/algos/model"
)

// Number is the version of all programs. A new one is written here, in CHANGELOG.md, in
// deploy/python/hamlet/__init__.py and where deploy names an image: TestVersion of
// deploy/package compares them.
const Number = "0.1.0"

// Text returns what --version prints of a program: [Of], and the numerics, on which the bits of a model depend.
func Text(program string) string {
	return Of(program) + "\nnumerics " + model.CurrentNumerics()
}

// Of returns what --version prints first: the program's name, the version, the commit, and
// below the version of Go and the platform.
func Of(program string) string {
	info, _ := debug.ReadBuildInfo()
	return fmt.Sprintf("%s %s (%s)\n%s %s/%s",
		program, Number, commit(info), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commit says of which commit a program was built. Go knows it of a clone, and neither of an
// archive of the sources nor of a test.
func commit(info *debug.BuildInfo) string {
	revision, changes := "unknown", ""
	if info != nil {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = fmt.Sprintf("%.12s", s.Value)
			case s.Key == "vcs.modified" && s.Value == "true":
				changes = " with changes"
			}
		}
	}
	return "commit " + revision + changes
}
