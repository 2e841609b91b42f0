package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/show/chart"
)

func exampleSection() *Section {
	s := &Section{ID: "one", Title: Text{Text: "Title"}, Lead: Plain("What was done."), Notes: Plain("A note."),
		Charts: []chart.Chart{{Title: "Picture", Series: []chart.Series{Line("<ours>", []float64{1, 2})}}},
		Foot:   []Text{{Text: "CSV", Link: "one.csv"}}}
	s.Table.Head = [][]string{{"", "ours", ""}}
	s.Table.Add("first", "1.5", "reproduced")
	s.Table.Addf("%s\t%.2f\t%s", "second, longer", 10.25, "better")
	s.Table.Rows[1].Class, s.Table.Rows[1].Link = "better", "#two"
	return s
}

// The form on a terminal: paragraphs, the table, notes. Pictures and the foot are for a page.
func TestSectionOnATerminal(t *testing.T) {
	var b strings.Builder
	if err := exampleSection().Print(&b); err != nil {
		t.Fatal(err)
	}
	const want = `Title
What was done.

                ours   
first           1.5    reproduced
second, longer  10.25  better

A note.
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	right := Table{Right: true, Head: [][]string{{"way", "ms"}}}
	right.Addf("%s\t%d", "NATS", 7)
	if err := (&Section{Table: right}).Print(&b); err != nil || b.String() != "   way  ms\n  NATS   7\n" {
		t.Errorf("to the right: %q, %v", b.String(), err)
	}
}

// A page has the same cells, escapes them, and holds the pictures and links.
func TestSectionOnAPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.html")
	page := Page{Title: "hamlet-lab <x>", Sections: []*Section{exampleSection()}, Foot: "made & kept"}
	if err := page.Write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<h1>hamlet-lab &lt;x&gt;</h1>", `<h2 id="one">Title</h2>`, "<p>What was done.</p>",
		`<tr class="better"><th scope="row"><a href="#two">second, longer</a></th><td>10.25</td><td>better</td></tr>`,
		`<a href="one.csv">CSV</a>`, "<svg", "made &amp; kept"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %s:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "<ours>") {
		t.Error("a name is not escaped")
	}
}
