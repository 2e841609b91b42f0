// Package help answers `hamlet COMMAND --help` before the program's other packages are initialized: Go initializes a
// package because it is linked, and those of clients and servers cost more than all else that a help does.
//
// Invariants: the package imports os and what that imports. Go initializes the packages that are ready in the
// order of their paths. This one's path comes before those of net, strings and all that needs them. It would wait for
// them if it imported one that has a later path than its own. The texts are those that kong prints: TestHelpIsKept of
// cmd/hamlet compares them.
package help

import _ "embed"

// texts are those of all commands, each below a line "-- hamlet COMMAND --".
//
//go:embed help.txt
var texts string

// of returns the text that args ask for, if nothing but a command and --help stands there.
func of(args []string) (text string, ok bool) {
	if len(args) == 0 {
		return "", false
	}
	last := len(args) - 1
	if args[last] != "--help" && args[last] != "-h" {
		return "", false
	}
	title := "-- hamlet"
	for _, word := range args[:last] {
		for _, letter := range word {
			if letter == ' ' {
				return "", false // no command's name
			}
		}
		title += " " + word
	}
	title += " --\n"
	return section(texts, title)
}

// section returns what stands between a title and the next one. A title is a line.
func section(all, title string) (text string, ok bool) {
	begin := -1
	for at := 0; at < len(all); {
		end := at // behind the line
		for end < len(all) && all[end] != '\n' {
			end++
		}
		end = min(end+1, len(all))
		switch line := all[at:end]; {
		case begin >= 0 && isTitle(line):
			return all[begin:at], true
		case line == title:
			begin = end
		}
		at = end
	}
	if begin < 0 {
		return "", false
	}
	return all[begin:], true
}

func isTitle(line string) bool {
	const start, end = "-- hamlet", " --\n"
	return len(line) >= len(start)+len(end) && line[:len(start)] == start && line[len(line)-len(end):] == end
}
