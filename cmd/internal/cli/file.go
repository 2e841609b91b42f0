package cli

import (
	"errors"
	"fmt"
	"maps"
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
	name    string   // of the program
	shared  []string // flags of other programs that the file may name
	mapping Mapping

	path   string       // of the file; find sets it
	values *koanf.Koanf // nil without a file; find sets it
}

// A Mapping is a mapping of the configuration file with settings that are no flags:
//
//	model:
//	  name: default        # the flag that is called as the mapping is
//	  vector_head:
//	    site: jj           # Set("vector_head.site", "jj")
//
// The flag's value alone may stand in its place (model: default).
type Mapping struct {
	Key string                        // of the mapping; "" is none
	Set func(key, value string) error // called for each setting
	// Gone returns what is to be used in place of a flag that was there once, as
	// wrong usage; nil for any other name. The value is the one given, or empty.
	Gone func(flag, value string) error
}

// nameKey is the key of a mapping that stands for the flag of the mapping's name.
const nameKey = "name"

// checkArgs reports flags that are gone.
func (m Mapping) checkArgs(args []string) error {
	if m.Gone == nil {
		return nil
	}
	var errs []error
	for i, arg := range args {
		if arg == "--" {
			break
		}
		name, value, given := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !strings.HasPrefix(arg, "--") {
			continue
		}
		if !given && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			value = args[i+1]
		}
		errs = append(errs, m.Gone(name, value))
	}
	return errors.Join(errs...)
}

// mapped reports whether the file has the mapping.
func (r *fileResolver) mapped() bool {
	_, ok := r.values.Get(r.mapping.Key).(map[string]any)
	return ok && r.mapping.Key != ""
}

// apply calls Set for every setting of the file's mapping.
func (r *fileResolver) apply() error {
	if !r.mapped() {
		return nil
	}
	settings := r.values.Cut(r.mapping.Key).All()
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if key == nameKey {
			continue
		}
		if err := r.mapping.Set(key, settingText(settings[key])); err != nil {
			errs = append(errs, fmt.Errorf("configuration file %s: %s: %w", r.path, r.mapping.Key, err))
		}
	}
	return errors.Join(errs...)
}

// settingText returns a value of the file as Mapping.Set takes it.
func settingText(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	if len(list) == 0 {
		return "none"
	}
	words := make([]string, len(list))
	for i, word := range list {
		words[i] = fmt.Sprint(word)
	}
	return strings.Join(words, ",")
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
// line alone, that is gone or that has no value, and applies the file's mapping.
func (r *fileResolver) check(app *kong.Application) error {
	if r.values == nil {
		return nil
	}
	known, typed := flagNames(app.Node, anyFlag), flagNames(app.Node, typedFlag)
	var unknown, empty, alone []string
	var gone []error
	for _, key := range r.values.Keys() {
		if r.values.Get(key) == nil {
			empty = append(empty, key)
		}
		section, rest, nested := strings.Cut(key, ".")
		mine := nested && r.mine(app, section)
		name := key
		if mine {
			name = rest
		}
		if (!nested || mine) && r.mapping.Gone != nil {
			if err := r.mapping.Gone(name, settingText(r.values.Get(key))); err != nil {
				gone = append(gone, fmt.Errorf("configuration file %s: %w", r.path, err))
				continue
			}
		}
		switch {
		case r.mapped() && section == r.mapping.Key:
		case (!nested || mine) && slices.Contains(typed, name):
			alone = append(alone, key)
		case !nested && (slices.Contains(known, key) || slices.Contains(r.shared, key)):
		case nested && slices.Contains(sections, section):
			if mine && !slices.Contains(known, rest) {
				unknown = append(unknown, key)
			}
		default:
			unknown = append(unknown, key)
		}
	}
	switch {
	case len(empty) > 0:
		slices.Sort(empty)
		return fmt.Errorf("configuration file %s: %s: there is no value; leave the line out, or write \"\" for an empty text",
			r.path, strings.Join(empty, ", "))
	case len(alone) > 0:
		slices.Sort(alone)
		return &TypedError{File: r.path, Keys: alone}
	case len(gone) > 0:
		return errors.Join(gone...)
	case len(unknown) > 0:
		slices.Sort(unknown)
		return fmt.Errorf("configuration file %s: no flag is called %s; what only one command knows belongs under its name (%s)",
			r.path, strings.Join(unknown, ", "), strings.Join(sections, ", "))
	}
	return r.apply()
}

// allFlags returns the flags of a node and of those below it.
func allFlags(n *kong.Node) []*kong.Flag {
	flags := slices.Clone(n.Flags)
	for _, c := range n.Children {
		flags = append(flags, allFlags(c)...)
	}
	return flags
}

// flagNames lists the flags of a node and of those below it for which keep holds.
func flagNames(n *kong.Node, keep func(*kong.Flag) bool) (names []string) {
	for _, f := range allFlags(n) {
		if keep(f) {
			names = append(names, f.Name)
		}
	}
	return names
}

func anyFlag(*kong.Flag) bool { return true }

// typedFlag reports whether only a command line sets the flag.
func typedFlag(f *kong.Flag) bool { return len(f.Envs) == 0 && f.Name != "help" }

// A TypedError names keys of a configuration file that only the command line may set.
// It is the cause of a UsageError.
type TypedError struct {
	File string
	Keys []string // as they stand in the file, sorted
}

func (e *TypedError) Error() string {
	return fmt.Sprintf("configuration file %s: %s: this is for the command line alone",
		e.File, strings.Join(e.Keys, ", "))
}

// Names reports whether one of the keys is a flag's, in whichever section.
func (e *TypedError) Names(flag string) bool {
	return slices.ContainsFunc(e.Keys, func(key string) bool { return key == flag || strings.HasSuffix(key, "."+flag) })
}

// mine reports whether a section of the file is about this program or one of its
// commands.
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
	if flag.Name == r.mapping.Key && r.mapped() {
		keys = append(keys, flag.Name+"."+nameKey)
	}
	for _, key := range keys {
		switch value := r.values.Get(key).(type) {
		case nil, map[string]any:
		case []any:
			words := make([]any, len(value)) // kong takes it element by element
			for i, v := range value {
				words[i] = fmt.Sprint(v)
			}
			return words, nil
		default:
			return fmt.Sprint(value), nil
		}
	}
	return nil, nil
}
