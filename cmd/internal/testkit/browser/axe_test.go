package browser

import (
	"os"
	"path/filepath"
	"strings"

	"hamlet/cmd/internal/testkit/debian"
)

// axe is the text of axe-core, which .ci/programs fetches.
func (b *tab) axe() string {
	b.t.Helper()
	file := filepath.Join(os.Getenv(debian.Variable), "axe-core", "axe.min.js")
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatalf("%v: run .ci/programs %s axe-core", err, os.Getenv(debian.Variable))
	}
	return string(text)
}

// runAxe returns a line for each element with a violation of WCAG 2.2 AA or of good practice.
const runAxe = `axe.run(document, {
	runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
	resultTypes: ["violations"],
}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) =>
	v.id + ": " + v.help + ": " + n.target.join(" ") + ": " + n.html.slice(0, 200) + ": " + (n.failureSummary || "").slice(0, 300))))`

// accessible fails the test where axe finds a violation in the page as it is looked at.
func (b *tab) accessible() {
	b.t.Helper()
	if !evaluate[bool](b, `"axe" in window`) {
		evaluate[bool](b, b.axe()+"; true")
	}
	if found := evaluate[[]string](b, runAxe); len(found) > 0 {
		b.t.Errorf("%s: axe finds %d violations:\n%s", b.at(), len(found), strings.Join(found, "\n"))
	}
}
