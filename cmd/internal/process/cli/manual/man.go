package manual

import (
	"fmt"
	"go/doc/comment"
	"strings"

	"github.com/alecthomas/kong"
)

// A manText is what man.tmpl shows, in the macros of man(7), of a command.
type manText struct {
	*page
	*kong.Node
	words  []string // of the command
	Brief  string
	Detail string
}

func (p *page) man() {
	m := manText{page: p, Node: p.node, Brief: p.node.Help, Detail: p.node.Detail}
	for n := p.node; n.Parent != nil; n = n.Parent {
		m.words = append([]string{n.Name}, m.words...)
	}
	if p.node.Parent == nil { // the description of the whole program
		m.Detail = p.node.Help
		m.Brief, _, _ = strings.Cut(m.Detail, "\n")
		m.Brief = strings.TrimPrefix(m.Brief, p.Program.Name+": ")
	}
	m.Brief = strings.TrimSuffix(m.Brief, ".")
	p.execute("man", m)
}

// Title is the name of the page.
func (m manText) Title() string {
	return strings.Join(append([]string{m.Installed()}, m.words...), "-")
}

// Called is how the command is called.
func (m manText) Called() string {
	return strings.Join(append([]string{m.Installed()}, m.words...), " ")
}

// Above is the name of the page about the command above; "": that is the program.
func (m manText) Above() string {
	if len(m.words) < 2 {
		return ""
	}
	return strings.TrimSuffix(m.Title(), "-"+m.Node.Name)
}

// Commands are those below that the help shows.
func (m manText) Commands() []*kong.Node { return children(m.Node) }

// Forms lists the forms of help.
func (m manText) Forms() string { return strings.Join(Forms(), "|") }

// Arguments is what stands behind the command in the synopsis.
func (m manText) Arguments() string {
	var words []string
	if len(m.flags(m.Node)) > 0 {
		words = append(words, "[flags]")
	}
	if len(children(m.Node)) > 0 {
		words = append(words, "<command>")
	}
	for _, a := range m.Positional {
		words = append(words, a.Summary())
	}
	return strings.Join(words, " ")
}

// An option is what the page says of a flag.
type option struct {
	Heading       string // of its group, if it is the first
	Written, Text string
	IsHelp        bool
}

// Options are the flags, group by group.
func (m manText) Options() (all []option) {
	last := ""
	for _, f := range grouped(m.flags(m.Node)) {
		o := option{Written: "--" + f.Name, Text: m.page.Help(f.Value), IsHelp: f.Name == "help"}
		if g := group(f); g != last {
			o.Heading, last = g, g
		}
		if f.Short != 0 {
			o.Written = "-" + string(f.Short) + ", " + o.Written
		}
		if f.Tag.Negatable != "" {
			o.Written = "--[no-]" + f.Name
		}
		if v := value(f); v != "" {
			o.Written += "=" + v
		}
		if f.HasDefault && f.Default != "" && !f.IsBool() {
			o.Text = strings.TrimSuffix(o.Text, ".") + ". The default is " + f.Default + "."
		}
		all = append(all, o)
	}
	return all
}

// Prose is the text below the first sentence as go doc reads it: paragraphs, and examples that
// are indented.
func (m manText) Prose() string {
	var parser comment.Parser
	var printer comment.Printer
	var b strings.Builder
	for _, block := range parser.Parse(m.Detail).Content {
		b.WriteString("\n.PP")
		if code, ok := block.(*comment.Code); ok {
			b.WriteString("\n.nf\n.RS 4")
			for line := range strings.Lines(code.Text) {
				line = strings.TrimSuffix(line, "\n")
				if strings.HasPrefix(line, m.Program.Name+" ") {
					line = m.Installed() + strings.TrimPrefix(line, m.Program.Name)
				}
				b.WriteString("\n" + roff(line))
			}
			b.WriteString("\n.RE\n.fi")
			continue
		}
		words := string(printer.Text(&comment.Doc{Content: []comment.Block{block}}))
		for line := range strings.Lines(words) {
			if line = strings.TrimSpace(line); line != "" {
				b.WriteString("\n" + roff(line))
			}
		}
	}
	return b.String()
}

// roff returns a line with what troff would take for its own protected. A page is ASCII.
func roff(line string) string {
	var b strings.Builder
	for _, r := range line {
		switch r {
		case '\\':
			b.WriteString(`\e`)
		case '-':
			b.WriteString(`\-`)
		case '`':
			b.WriteString(`\(ga`)
		case '^':
			b.WriteString(`\(ha`)
		case '~':
			b.WriteString(`\(ti`)
		default:
			if r < 0x80 {
				b.WriteRune(r)
			} else {
				fmt.Fprintf(&b, `\[u%04X]`, r)
			}
		}
	}
	line = b.String()
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}

// roffText is roff for a text that may have several lines.
func roffText(text string) string { return roff(strings.Join(strings.Fields(text), " ")) }

// lowerFirst makes the first letter small where a word begins with it.
func lowerFirst(s string) string {
	if first, _, _ := strings.Cut(s, " "); strings.ToUpper(first) == first && len(first) > 1 {
		return s // HTTP
	}
	return strings.ToLower(s[:1]) + s[1:]
}
