package manual

import (
	"fmt"
	"go/doc/comment"
	"strings"
)

// man prints a page in the macros of man(7).
func (p *page) man() {
	name := p.Installed()
	var words []string
	for n := p.node; n.Parent != nil; n = n.Parent {
		words = append([]string{n.Name}, words...)
	}
	title := strings.Join(append([]string{name}, words...), "-")
	called := strings.Join(append([]string{name}, words...), " ")
	brief, rest := p.node.Help, p.node.Detail
	if p.node.Parent == nil { // the description of the whole program
		rest = p.node.Help
		brief, _, _ = strings.Cut(rest, "\n")
		brief = strings.TrimPrefix(brief, p.Name+": ")
	}

	p.linef(`.TH %s 1 "" "hamlet %s" "hamlet"`, strings.ToUpper(roff(title)), roff(p.Version))
	p.linef(".nh\n.SH NAME\n%s \\- %s", roff(title), roff(lowerFirst(strings.TrimSuffix(brief, "."))))
	p.linef(".SH SYNOPSIS\n.B %s\n%s", roff(called), roff(p.arguments()))
	p.linef(".SH DESCRIPTION")
	if p.node.Parent != nil {
		p.linef("%s", roffText(brief))
	}
	p.prose(rest)
	p.manArguments()
	p.manCommands(title)
	p.manFlags()
	p.linef(".SH EXIT STATUS\n0, all went well; 1, something could not be done; 2, wrong usage;\n78, what is saved is refused, and will be at each start until somebody mends it.")
	p.linef(".SH SETTINGS\nEach setting is a flag, a variable of the environment, or a line of the YAML file that\n" +
		".B \\-\\-config\nnames. A flag wins over a variable, and a variable over the file. The variable of\n.B \\-\\-save\\-every\nis\n.BR HAMLET_SAVE_EVERY .")
	p.linef(".SH SEE ALSO")
	see := []string{"hamlet"}
	if p.node.Parent != nil && p.node.Parent.Parent != nil {
		see = append(see, strings.TrimSuffix(title, "-"+p.node.Name))
	}
	for i, s := range see {
		comma := ","
		if i == len(see)-1 {
			comma = ""
		}
		p.linef(".BR %s (1)%s", roff(s), comma)
	}
}

// arguments is what stands behind the command in the synopsis.
func (p *page) arguments() string {
	var words []string
	if len(p.flags(p.node)) > 0 {
		words = append(words, "[flags]")
	}
	if len(children(p.node)) > 0 {
		words = append(words, "<command>")
	}
	for _, a := range p.node.Positional {
		words = append(words, a.Summary())
	}
	return strings.Join(words, " ")
}

func (p *page) manArguments() {
	if len(p.node.Positional) == 0 {
		return
	}
	p.linef(".SH ARGUMENTS")
	for _, a := range p.node.Positional {
		p.linef(".TP\n.B %s\n%s", roff(a.Summary()), roffText(a.Help))
	}
}

func (p *page) manCommands(title string) {
	if len(children(p.node)) == 0 {
		return
	}
	p.linef(".SH COMMANDS")
	for _, c := range children(p.node) {
		p.linef(".TP\n.BR %s (1)\n%s", roff(title+"-"+c.Name), roffText(c.Help))
	}
}

func (p *page) manFlags() {
	p.linef(".SH OPTIONS")
	last := ""
	for _, f := range grouped(p.flags(p.node)) {
		if g := group(f); g != last {
			p.linef(".SS %s", roff(g))
			last = g
		}
		name := "--" + f.Name
		if f.Short != 0 {
			name = "-" + string(f.Short) + ", " + name
		}
		if f.Tag.Negatable != "" {
			name = "--[no-]" + f.Name
		}
		if v := value(f); v != "" {
			name += "=" + v
		}
		text := p.Help(f.Value)
		if f.HasDefault && f.Default != "" && !f.IsBool() {
			text = strings.TrimSuffix(text, ".") + ". The default is " + f.Default + "."
		}
		p.linef(".TP\n.B %s\n%s", roff(name), roffText(text))
		if f.Name == "help" {
			p.linef(".TP\n.B \\-\\-help\\-all\nPrint rare flags too.\n.TP\n.B \\-\\-help\\-as=%s\nPrint this help in another form.", strings.Join(Forms(), "|"))
		}
	}
}

// prose prints a text as go doc reads it: paragraphs, and examples that are indented.
func (p *page) prose(text string) {
	var parser comment.Parser
	var printer comment.Printer
	for _, block := range parser.Parse(text).Content {
		if code, ok := block.(*comment.Code); ok {
			p.linef(".PP\n.nf\n.RS 4")
			for line := range strings.Lines(code.Text) {
				line = strings.TrimSuffix(line, "\n")
				if strings.HasPrefix(line, p.Name+" ") {
					line = p.Installed() + strings.TrimPrefix(line, p.Name)
				}
				p.linef("%s", roff(line))
			}
			p.linef(".RE\n.fi")
			continue
		}
		words := string(printer.Text(&comment.Doc{Content: []comment.Block{block}}))
		p.linef(".PP")
		for line := range strings.Lines(words) {
			if line = strings.TrimSpace(line); line != "" {
				p.linef("%s", roff(line))
			}
		}
	}
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
