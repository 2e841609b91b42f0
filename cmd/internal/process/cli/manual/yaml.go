package manual

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
)

// yamlWidth is the width of the comments, in columns.
const yamlWidth = 90

// yaml prints a configuration file: each flag with its help and its default, as a comment.
// Flags that were given are set.
func (p *page) yaml() {
	called := p.Installed()
	if p.node.Parent != nil {
		called = p.Installed() + " " + p.node.Path()
	}
	p.comment("The configuration of " + called + ". A key is a flag by its long name: " + manPage(called) +
		" says more. A line that begins with # has no effect, and shows the default or what is wanted. " +
		"A variable of the environment, " +
		"such as HAMLET_LOG_LEVEL, wins over this file, and a flag over both.")
	last := ""
	for _, f := range grouped(p.flags(p.node)) {
		if len(f.Envs) == 0 || f.Name == "help" || f.Name == "config" {
			continue // only the command line sets it
		}
		if g := group(f); g != last {
			p.linef("\n### %s", g)
			last = g
		}
		p.linef("")
		text := p.Help(f.Value)
		if secret(f) {
			text += " In place of this line, " + f.Envs[0] + " may stand in the environment."
		}
		if all := choices(f); all != nil && !mentions(text, all) {
			text += " One of " + strings.Join(all, ", ") + "."
		}
		p.comment(text)
		if v, ok := p.given[f.Name]; ok {
			p.linef("%s: %s", f.Name, v)
		} else {
			p.linef("#%s: %s", f.Name, shown(f))
		}
	}
}

func manPage(called string) string { return strings.ReplaceAll(called, " ", "-") + "(1)" }

// comment prints a text as lines of comments.
func (p *page) comment(text string) {
	line := "#"
	for _, word := range strings.Fields(text) {
		if len([]rune(line))+1+len([]rune(word)) > yamlWidth {
			p.linef("%s", line)
			line = "#"
		}
		line += " " + word
	}
	p.linef("%s", line)
}

// secret reports whether a flag's value is one.
func secret(f *kong.Flag) bool { return f.Tag.PlaceHolder == "SECRET" }

// mentions reports whether a text names all words.
func mentions(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// shown is the value in a line that has no effect: the default, or else the name of what is
// wanted.
func shown(f *kong.Flag) string {
	text := f.Default
	if text == "" {
		text = f.Tag.PlaceHolder
	}
	switch {
	case f.IsBool() && f.Tag.Negatable != "" && text == "":
		return "true" // a flag with --no- is on
	case f.IsBool() && text == "":
		return "false"
	case text == "":
		text = strings.ToUpper(f.Name)
	}
	if f.IsSlice() {
		return "[" + scalar(text) + "]"
	}
	return scalar(text)
}

var plainScalar = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9._/][A-Za-z0-9._/-]*$`)
})

// scalar returns a value as YAML writes it. Only a plain word or number goes without quotes.
func scalar(text string) string {
	if plainScalar().MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}
