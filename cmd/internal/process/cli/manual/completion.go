package manual

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// The three shells work alike: the words before the cursor say which command is meant, and a
// table says what may stand behind it.

// function is the name of the shell's function.
func (p *page) function() string { return "_" + strings.ReplaceAll(p.Installed(), "-", "_") }

// each calls visit for every command with its words, each behind a blank: " model pin".
func (p *page) each(visit func(n *kong.Node, path string)) {
	walk(p.Root, nil, func(n *kong.Node, words []string) {
		path := ""
		for _, w := range words {
			path += " " + w
		}
		visit(n, path)
	})
}

// paths lists the words of all commands but the program itself.
func (p *page) paths() (all []string) {
	p.each(func(_ *kong.Node, path string) {
		if path != "" {
			all = append(all, path)
		}
	})
	return all
}

// names returns how a flag is written: --alarms and --no-alarms.
func names(f *kong.Flag) []string {
	all := []string{"--" + f.Name}
	if f.Tag.Negatable != "" {
		all = append(all, "--no-"+f.Name)
	}
	return all
}

// quoted returns a word in single quotes, as all three shells read it.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// allQuoted joins words in single quotes.
func allQuoted(words []string, between string) string {
	var all []string
	for _, w := range words {
		all = append(all, quoted(w))
	}
	return strings.Join(all, between)
}

func (p *page) bash() {
	f := p.function()
	p.linef("# Completions of bash for %s, made by --help-as=bash.", p.Installed())
	p.linef("%s() {", f)
	p.linef("    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at='' words='' i")
	p.linef("    [[ $cur == = ]] && cur=''") // bash makes three words of --flag=value
	p.linef("    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}")
	p.linef("    for ((i = 1; i < COMP_CWORD; i++)); do")
	if paths := p.paths(); len(paths) > 0 {
		p.linef("        case \"$at ${COMP_WORDS[i]}\" in\n        %s) at+=\" ${COMP_WORDS[i]}\" ;;\n        esac", allQuoted(paths, " | "))
	}
	p.linef("    done\n    case $at$prev in")
	p.each(func(n *kong.Node, path string) {
		var files, other []string
		for _, flag := range p.flags(n) {
			switch all := choices(flag); {
			case value(flag) == "":
			case all != nil:
				p.linef("    %s) mapfile -t COMPREPLY < <(compgen -W %s -- \"$cur\"); return ;;", quoted(path+"--"+flag.Name), quoted(strings.Join(all, " ")))
			case isFile(flag):
				files = append(files, path+"--"+flag.Name)
			default:
				other = append(other, path+"--"+flag.Name)
			}
		}
		if len(files) > 0 {
			p.linef("    %s) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;", allQuoted(files, " | "))
		}
		if len(other) > 0 {
			p.linef("    %s) return ;;", allQuoted(other, " | "))
		}
	})
	p.linef("    esac\n    case $at in")
	p.each(func(n *kong.Node, path string) {
		var flags, commands []string
		for _, flag := range p.flags(n) {
			flags = append(flags, names(flag)...)
		}
		for _, c := range children(n) {
			commands = append(commands, c.Name)
		}
		p.linef("    %s) if [[ $cur == -* ]]; then words=%s; else words=%s; fi ;;", quoted(path),
			quoted(strings.Join(flags, " ")), quoted(strings.Join(commands, " ")))
	})
	p.linef("    esac")
	p.linef("    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")")
	p.linef("}\ncomplete -o default -F %s %s", f, p.Installed())
}

func (p *page) zsh() {
	f := p.function()
	p.linef("#compdef %s\n# Completions of zsh for %[1]s, made by --help-as=zsh.", p.Installed())
	p.linef("%s() {\n    local at='' i\n    local -a flags commands", f)
	if paths := p.paths(); len(paths) > 0 {
		p.linef("    for ((i = 2; i < CURRENT; i++)); do\n        case \"$at ${words[i]}\" in\n        (%s) at+=\" ${words[i]}\" ;;\n        esac\n    done", allQuoted(paths, "|"))
	}
	p.linef("    case $at in")
	brief := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`)
	p.each(func(n *kong.Node, path string) {
		p.linef("    (%s)", quoted(path))
		var specs []string
		for _, flag := range p.flags(n) {
			for _, name := range names(flag) {
				spec := fmt.Sprintf("*%s[%s]", name, brief.Replace(p.Help(flag.Value)))
				if v := value(flag); v != "" {
					spec = fmt.Sprintf("*%s=[%s]:%s:", name, brief.Replace(p.Help(flag.Value)), brief.Replace(v))
					switch all := choices(flag); {
					case all != nil:
						spec += "(" + strings.Join(all, " ") + ")"
					case isFile(flag):
						spec += "_files"
					}
				}
				specs = append(specs, spec)
			}
		}
		p.linef("        flags=(%s)", allQuoted(specs, "\n            "))
		var commands []string
		for _, c := range children(n) {
			commands = append(commands, c.Name+":"+brief.Replace(c.Help))
		}
		p.linef("        commands=(%s) ;;", allQuoted(commands, "\n            "))
	})
	p.linef("    esac")
	p.linef("    if (($#commands)) && [[ $PREFIX != -* ]]; then\n        _describe command commands\n    else\n        _arguments $flags '*:file:_files'\n    fi\n}")
	p.linef(`if [[ $funcstack[1] == %s ]]; then %[1]s "$@"; else compdef %[1]s %s; fi`, f, p.Installed())
}

func (p *page) fish() {
	f := strings.TrimPrefix(p.function(), "_") + "_at"
	p.linef("# Completions of fish for %s, made by --help-as=fish.", p.Installed())
	p.linef("function __%s\n    set -l at ''\n    for word in (commandline -opc)[2..]", f)
	if paths := p.paths(); len(paths) > 0 {
		p.linef("        switch \"$at $word\"\n            case %s\n                set at \"$at $word\"\n        end", allQuoted(paths, " "))
	}
	p.linef("    end\n    test \"$at\" = \"$argv[1]\"\nend")
	p.each(func(n *kong.Node, path string) {
		complete := fmt.Sprintf("complete -c %s -n %s", p.Installed(), quoted(fmt.Sprintf(`__%s "%s"`, f, path)))
		if len(children(n)) > 0 {
			p.linef("%s -f", complete)
		}
		for _, c := range children(n) {
			p.linef("%s -a %s -d %s", complete, c.Name, fishQuoted(c.Help))
		}
		for _, flag := range p.flags(n) {
			for _, name := range names(flag) {
				line := complete + " -l " + strings.TrimPrefix(name, "--")
				switch all := choices(flag); {
				case value(flag) == "":
				case all != nil:
					line += " -xa " + quoted(strings.Join(all, " "))
				case isFile(flag):
					line += " -rF"
				default:
					line += " -x"
				}
				p.linef("%s -d %s", line, fishQuoted(p.Help(flag.Value)))
			}
		}
	})
}

// fishQuoted returns a text in single quotes. In them fish reads \' and \\.
func fishQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
