package report

import (
	"strings"
	"testing"
)

// Columns stand below each other, no cell acts on the terminal, and no line ends in blanks.
func TestTable(t *testing.T) {
	table := NewTable("name", "events", "")
	table.Add("default", 12, "")
	table.Add("a\x1b[2J\tb", 5574, "pinned")
	want := "name     events\ndefault  12\na\ufffd[2J\ufffdb  5574    pinned\n"
	if got := table.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := strings.Join(table.Titles(), "|"); got != "Name|Events|" {
		t.Errorf("titles %q", got)
	}
	right := NewTable("labels", "n")
	right.Right = true
	right.Add(7, 100)
	if got, want := right.String(), "  labels    n\n       7  100\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var b strings.Builder
	if err := PrintLines(&b, []map[string]int{{"a": 1}, {}}); err != nil || b.String() != "{\"a\":1}\n{}\n" {
		t.Errorf("lines: %q, %v", b.String(), err)
	}
}
