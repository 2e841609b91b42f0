package version

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestCommit(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	for want, info := range map[string]*debug.BuildInfo{
		"commit unknown":                   nil,
		"commit 0123456789ab":              {Settings: []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}},
		"commit 0123456789ab with changes": {Settings: []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}}},
	} {
		if got := commit(info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOf(t *testing.T) {
	text := Of("scorer")
	for _, want := range []string{"scorer " + Number + " (commit ", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}
