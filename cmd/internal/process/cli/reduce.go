package cli

import (
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// kong reads the tags of every flag of every command by reflection before it looks at an argument. Of hamlet's many
// hundred flags that took half of the time in which --version answers. So kong gets a grammar of the command that the
// arguments name.

// reduce returns a grammar that does with args what the whole does, and the options that belong to it. It fills what
// the whole would fill, but for ProgramFlags. vars are those that the tags may name.
//
//   - A command comes first: the grammar has that command.
//   - --version or --help is all there is: the grammar has the names of the commands and what they are for.
//   - Anything else, such as a flag before the command or a wrong name: the grammar is the whole.
func reduce(grammar any, vars kong.Vars, args []string) (any, []kong.Option) {
	whole := []kong.Option{vars}
	if _, _, manual := helpAs(args); len(args) == 0 || manual {
		return grammar, whole
	}
	v := reflect.ValueOf(grammar).Elem()
	var names []kong.Option
	for i := range v.NumField() {
		f := v.Type().Field(i)
		_, command := f.Tag.Lookup("cmd")
		if f.Type == reflect.TypeFor[ProgramFlags]() && f.Anonymous {
			continue
		}
		name := commandName(f)
		switch _, hidden := f.Tag.Lookup("hidden"); {
		case !command || name == "":
			return grammar, whole
		case name == args[0]:
			return new(struct{ ProgramFlags }), []kong.Option{
				named(vars, f.Type),
				kong.DynamicCommand(name, f.Tag.Get("help"), "", v.Field(i).Addr().Interface(), string(f.Tag)),
			}
		case !hidden:
			names = append(names, kong.DynamicCommand(name, f.Tag.Get("help"), "", new(struct{})))
		}
	}
	if len(args) == 1 && slices.Contains([]string{"--version", "--help", "-h", "--help-all"}, args[0]) {
		return new(struct{ ProgramFlags }), names
	}
	return grammar, whole
}

// named returns those of vars that the tags of a command name. For each flag, kong looks into the value of each
// variable for others.
func named(vars kong.Vars, command reflect.Type) kong.Vars {
	some := kong.Vars{}
	var look func(t reflect.Type)
	look = func(t reflect.Type) {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			for name, value := range vars {
				if strings.Contains(string(f.Tag), "${"+name) {
					some[name] = value
				}
			}
			_, command := f.Tag.Lookup("cmd")
			_, embedded := f.Tag.Lookup("embed")
			if command || embedded || f.Anonymous {
				look(f.Type)
			}
		}
	}
	look(command)
	return some
}

// commandName returns the name that kong gives to a command, or "" where that takes more than a look.
func commandName(f reflect.StructField) string {
	if name, ok := f.Tag.Lookup("name"); ok {
		return name
	}
	name := strings.ToLower(f.Name)
	if f.Name[1:] != name[1:] { // several words: kong writes hyphens between them
		return ""
	}
	return name
}
