package page_test

import (
	"testing"

	"hamlet/cmd/internal/web/page"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"Grüße\n\tan alle 日本":   "Grüße\n\tan alle 日本",
		"a\u202egnp.exe":        "a[U+202E]gnp.exe",
		"a\x00b\rc\x1b[1m":      "a[U+0000]b[U+000D]c[U+001B][1m",
		"in\u00advis\u200bible": "in[U+00AD]vis[U+200B]ible",
		"a\xffb":                "a\ufffdb",
		"\u2028x":               "[U+2028]x",
	} {
		if got := page.Visible(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}
