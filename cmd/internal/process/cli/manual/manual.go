// Package manual prints the help of a program in other forms: a page for man, a configuration
// file with comments, completions for shells. All are made of the flags and commands that
// the program really has, so none can go stale.
//
//	program := manual.Program{Name: "hamlet", Version: "0.1.0", Root: parser.Model.Node}
//	err := manual.Write(w, "man", program, []string{"up"})
//
// To add a form, add its line in the table forms. A file FORM.tmpl is what a form looks like.
package manual

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"
)

// forms says how each form is printed.
var forms = []struct {
	name  string
	write func(*page)
}{
	{"man", (*page).man},                             // a page for man(1)
	{"yaml", (*page).yaml},                           // a configuration file with comments
	{"bash", func(p *page) { p.execute("bash", p) }}, // completions
	{"zsh", func(p *page) { p.execute("zsh", p) }},
	{"fish", func(p *page) { p.execute("fish", p) }},
	{"commands", (*page).commands}, // the paths of all commands, one a line
}

// Forms lists the names of all forms, in order.
func Forms() (all []string) {
	for _, f := range forms {
		all = append(all, f.name)
	}
	return all
}

// A Program is what the help is about.
type Program struct {
	Name    string // as it calls itself
	Version string
	Root    *kong.Node
	Help    func(*kong.Value) string // what the help says of a flag
}

// Installed returns the name under which a package installs the program: learner alone says
// too little among all programs of a machine.
func (p Program) Installed() string {
	if p.Name == "hamlet" {
		return p.Name
	}
	return "hamlet-" + p.Name
}

// Write prints the help of a command in a form. The arguments are the words of the command,
// and flags as --name=value, which only the configuration file takes: there they are set.
func Write(w io.Writer, form string, program Program, args []string) error {
	i := slices.Index(Forms(), form)
	if i < 0 {
		return fmt.Errorf("--help-as=%s: there are %s", form, strings.Join(Forms(), ", "))
	}
	p := &page{Program: program, node: program.Root, given: map[string]string{}}
	for _, arg := range args {
		name, value, set := strings.Cut(arg, "=")
		if flag, ok := strings.CutPrefix(name, "--"); ok && set {
			p.given[flag] = value
			continue
		}
		i := slices.IndexFunc(p.node.Children, func(n *kong.Node) bool { return n.Name == arg })
		if i < 0 {
			return fmt.Errorf("--help-as=%s: there is no command %s of %s", form, arg, p.node.FullPath())
		}
		p.node = p.node.Children[i]
	}
	for name := range p.given {
		if !slices.ContainsFunc(p.flags(p.node), func(f *kong.Flag) bool { return f.Name == name }) {
			return fmt.Errorf("--help-as=%s: %s has no flag --%s", form, p.node.FullPath(), name)
		}
	}
	forms[i].write(p)
	_, err := io.WriteString(w, p.text.String())
	return err
}

// A page is a text that is being written.
type page struct {
	Program
	node  *kong.Node        // the command that it is about
	given map[string]string // flags that are set, by name
	text  strings.Builder
}

//go:embed *.tmpl
var files embed.FS

// execute writes the template of a form.
func (p *page) execute(form string, data any) {
	functions := template.FuncMap{
		"quoted": quoted, "each": each, "fish": fishQuoted,
		"join": func(words []string) string { return strings.Join(words, " ") },
		"roff": roff, "text": roffText, "lower": lowerFirst, "upper": strings.ToUpper,
	}
	t := template.Must(template.New("").Funcs(functions).ParseFS(files, form+".tmpl"))
	if err := t.ExecuteTemplate(&p.text, form+".tmpl", data); err != nil {
		panic(err) // of our templates
	}
}

func (p *page) linef(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// flags returns the flags that a command takes: its own, and those of the commands above it.
func (p *page) flags(n *kong.Node) (flags []*kong.Flag) {
	for at := n; at != nil; at = at.Parent {
		for _, f := range at.Flags {
			if !f.Hidden && !slices.ContainsFunc(flags, func(other *kong.Flag) bool { return other.Name == f.Name }) {
				flags = append(flags, f)
			}
		}
	}
	return flags
}

// children returns the commands below one that the help shows.
func children(n *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(n.Children), func(c *kong.Node) bool { return c.Hidden })
}

// walk calls visit for a command and for all below it, with the words of each.
func walk(n *kong.Node, path []string, visit func(n *kong.Node, path []string)) {
	visit(n, path)
	for _, c := range children(n) {
		walk(c, append(slices.Clone(path), c.Name), visit)
	}
}

// commands lists the words of all commands, the program itself as an empty line.
func (p *page) commands() {
	walk(p.node, nil, func(_ *kong.Node, path []string) { p.linef("%s", strings.Join(path, " ")) })
}

// group returns the title of a flag's group, "" for a flag without one.
func group(f *kong.Flag) string {
	if f.Group == nil {
		return ""
	}
	return f.Group.Title
}

// grouped returns flags group by group, those without one first.
func grouped(flags []*kong.Flag) []*kong.Flag {
	var titles []string
	for _, f := range flags {
		if !slices.Contains(titles, group(f)) {
			titles = append(titles, group(f))
		}
	}
	rank := func(f *kong.Flag) int {
		if group(f) == "" {
			return -1
		}
		return slices.Index(titles, group(f))
	}
	flags = slices.Clone(flags)
	slices.SortStableFunc(flags, func(a, b *kong.Flag) int { return rank(a) - rank(b) })
	return flags
}

// value returns the name of what a flag takes, or "" if it takes nothing.
func value(f *kong.Flag) string {
	if f.IsBool() || f.IsCounter() {
		return ""
	}
	tail := ""
	if f.IsSlice() && f.Tag.Sep != -1 {
		tail = ",..."
	}
	if placeholder := f.Tag.PlaceHolder; placeholder != "" {
		return placeholder + tail
	}
	return strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")) + tail
}

// isFile reports whether a flag takes the path of a file.
func isFile(f *kong.Flag) bool {
	switch f.Tag.Type {
	case "path", "existingfile", "existingdir":
		return true
	}
	return f.Tag.PlaceHolder == "PATH" || f.Tag.PlaceHolder == "FILE" || f.Tag.PlaceHolder == "DIR"
}

// choices returns the values that a flag takes, nil if they cannot be listed.
func choices(f *kong.Flag) []string {
	if f.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(f.EnumSlice(), func(s string) bool { return s == "" })
}
