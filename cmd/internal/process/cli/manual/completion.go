package manual

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// The three shells work alike: the words before the cursor say which command is meant, and a
// table says what may stand behind it.

// Function is the name of the shell's function.
func (p *page) Function() string { return "_" + strings.ReplaceAll(p.Installed(), "-", "_") }

// A command is what may stand behind its words.
type command struct {
	Path     string // " model pin"; the program itself: ""
	Children []*kong.Node
	Flags    []flag
}

// A flag is what completions and pages say of one.
type flag struct {
	*kong.Flag
	Value   string // the name of what it takes; "": it takes nothing
	Help    string
	Choices []string // nil: they cannot be listed
	File    bool     // it takes a path
}

// All returns all commands with their flags.
func (p *page) All() (all []command) {
	walk(p.Root, nil, func(n *kong.Node, words []string) {
		c := command{Children: children(n)}
		for _, w := range words {
			c.Path += " " + w
		}
		for _, f := range p.flags(n) {
			c.Flags = append(c.Flags, flag{f, value(f), p.Help(f.Value), choices(f), isFile(f)})
		}
		all = append(all, c)
	})
	return all
}

// Below lists the paths of all commands but the program itself.
func (p *page) Below() (all []string) {
	for _, c := range p.All()[1:] {
		all = append(all, c.Path)
	}
	return all
}

// Written returns how a flag is written: --alarms and --no-alarms.
func (f flag) Written() []string {
	all := []string{"--" + f.Name}
	if f.Tag.Negatable != "" {
		all = append(all, "--no-"+f.Name)
	}
	return all
}

// Written returns how all flags are written.
func (c command) Written() (all []string) {
	for _, f := range c.Flags {
		all = append(all, f.Written()...)
	}
	return all
}

// Commands names the commands below.
func (c command) Commands() (all []string) {
	for _, child := range c.Children {
		all = append(all, child.Name)
	}
	return all
}

// Files names the flags that take a path.
func (c command) Files() []string {
	return c.names(func(f flag) bool { return f.Choices == nil && f.File })
}

// Others names the flags that take what nobody can list.
func (c command) Others() []string {
	return c.names(func(f flag) bool { return f.Choices == nil && !f.File })
}

func (c command) names(want func(flag) bool) (all []string) {
	for _, f := range c.Flags {
		if f.Value != "" && want(f) {
			all = append(all, f.Name)
		}
	}
	return all
}

var zshBrief = strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`)

// ZshFlags are the flags as _arguments takes them.
func (c command) ZshFlags() (all []string) {
	for _, f := range c.Flags {
		for _, name := range f.Written() {
			spec := fmt.Sprintf("*%s[%s]", name, zshBrief.Replace(f.Help))
			if f.Value != "" {
				spec = fmt.Sprintf("*%s=[%s]:%s:", name, zshBrief.Replace(f.Help), zshBrief.Replace(f.Value))
				switch {
				case f.Choices != nil:
					spec += "(" + strings.Join(f.Choices, " ") + ")"
				case f.File:
					spec += "_files"
				}
			}
			all = append(all, spec)
		}
	}
	return all
}

// ZshCommands are the commands below as _describe takes them.
func (c command) ZshCommands() (all []string) {
	for _, child := range c.Children {
		all = append(all, child.Name+":"+zshBrief.Replace(child.Help))
	}
	return all
}

// quoted returns a word in single quotes, as all three shells read it.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// fishQuoted returns a text in single quotes. In them fish reads \' and \\.
func fishQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

// each joins words in single quotes, each as a format has it.
func each(format, between string, words []string) string {
	var all []string
	for _, w := range words {
		all = append(all, quoted(fmt.Sprintf(format, w)))
	}
	return strings.Join(all, between)
}
