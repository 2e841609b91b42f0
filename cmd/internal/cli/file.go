package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

// sections are the names under which a configuration file may hold what only
// one command knows, so that one file can serve them all.
var sections = []string{"ingest", "learner", "scorer", "hamlet", "up", "eval", "score", "bench", "mail", "fit"}

// A fileResolver gives the flags of a YAML file, written as
//
//	kafka: [kafka-1:9092, kafka-2:9092]   # any flag, by its long name
//	learner:                              # for this command alone
//	  save-every: 5s
//
// A flag of the command line and a variable of the environment win over it. A flag
// that no variable sets (env:"-") may not stand in a file either.
type fileResolver struct {
	name   string // of the program
	path   string
	shared []string // flags of other programs that the file may name
	values *koanf.Koanf
}

// find loads the file that --config or HAMLET_CONFIG names.
func (r *fileResolver) find(args []string) error {
	r.path = os.Getenv("HAMLET_CONFIG")
	for i, a := range args {
		if a == "--" {
			break
		}
		if v, ok := strings.CutPrefix(a, "--config="); ok {
			r.path = v
		} else if a == "--config" && i+1 < len(args) {
			r.path = args[i+1]
		}
	}
	if r.path == "" {
		return nil
	}
	k := koanf.New(".")
	if err := k.Load(file.Provider(r.path), yaml.Parser()); err != nil {
		return fmt.Errorf("configuration file %s: %w", r.path, err)
	}
	r.values = k
	return nil
}

// Validate implements [kong.Resolver]; check has done it.
func (r *fileResolver) Validate(*kong.Application) error { return nil }

// check reports every key that no flag of the program has, that is for the command
// line alone, or that has no value.
func (r *fileResolver) check(app *kong.Application) error {
	if r.values == nil {
		return nil
	}
	known, typed := flagNames(app.Node), typedNames(app.Node)
	var unknown, empty, alone []string
	for _, key := range r.values.Keys() {
		if r.values.Get(key) == nil {
			empty = append(empty, key)
		}
		section, rest, nested := strings.Cut(key, ".")
		switch {
		case !nested && slices.Contains(typed, key), nested && r.mine(app, section) && slices.Contains(typed, rest):
			alone = append(alone, key)
		case !nested && (slices.Contains(known, key) || slices.Contains(r.shared, key)):
		case nested && slices.Contains(sections, section):
			if r.mine(app, section) && !slices.Contains(known, rest) {
				unknown = append(unknown, key)
			}
		default:
			unknown = append(unknown, key)
		}
	}
	if len(empty) > 0 {
		slices.Sort(empty)
		return fmt.Errorf("configuration file %s: %s: there is no value; leave the line out, or write \"\" for an empty text",
			r.path, strings.Join(empty, ", "))
	}
	if len(alone) > 0 {
		slices.Sort(alone)
		return &TypedError{File: r.path, Keys: alone}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("configuration file %s: no flag is called %s; what only one command knows belongs under its name (%s)",
			r.path, strings.Join(unknown, ", "), strings.Join(sections, ", "))
	}
	return nil
}

// flagNames lists the flags of a node and of those below it.
func flagNames(n *kong.Node) (names []string) {
	for _, f := range n.Flags {
		names = append(names, f.Name)
	}
	for _, c := range n.Children {
		names = append(names, flagNames(c)...)
	}
	return names
}

// A TypedError names keys of a configuration file that are for the command line
// alone. It comes as the cause of a UsageError.
type TypedError struct {
	File string
	Keys []string // as they stand in the file, sorted
}

func (e *TypedError) Error() string {
	return fmt.Sprintf("configuration file %s: %s: what the command's answer looks like is for the command line alone",
		e.File, strings.Join(e.Keys, ", "))
}

// Names reports whether one of the keys is a flag's, in whichever section.
func (e *TypedError) Names(flag string) bool {
	return slices.ContainsFunc(e.Keys, func(key string) bool { return key == flag || strings.HasSuffix(key, "."+flag) })
}

// typedNames lists the flags that only a command line sets.
func typedNames(n *kong.Node) (names []string) {
	for _, f := range n.Flags {
		if len(f.Envs) == 0 && f.Name != "help" {
			names = append(names, f.Name)
		}
	}
	for _, c := range n.Children {
		names = append(names, typedNames(c)...)
	}
	return names
}

func (r *fileResolver) mine(app *kong.Application, section string) bool {
	if section == r.name {
		return true
	}
	return slices.ContainsFunc(app.Children, func(n *kong.Node) bool { return n.Name == section })
}

// Resolve implements [kong.Resolver].
func (r *fileResolver) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if r.values == nil {
		return nil, nil
	}
	for _, env := range flag.Envs {
		if _, ok := os.LookupEnv(env); ok {
			return nil, nil
		}
	}
	keys := []string{r.name + "." + flag.Name, flag.Name}
	if node := ctx.Selected(); node != nil {
		keys = slices.Insert(keys, 0, node.Name+"."+flag.Name)
	}
	for _, key := range keys {
		if !r.values.Exists(key) {
			continue
		}
		if list, ok := r.values.Get(key).([]any); ok {
			words := make([]any, len(list)) // kong takes it element by element
			for i, v := range list {
				words[i] = fmt.Sprint(v)
			}
			return words, nil
		}
		return fmt.Sprint(r.values.Get(key)), nil
	}
	return nil, nil
}
