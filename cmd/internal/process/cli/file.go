package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/v2"

	"hamlet/cmd/internal/process/secretfile"
)

// sections are the names under which a configuration file may hold what only
// one command knows, so that one file can serve them all.
var sections = []string{
	"ingest", "learner", "scorer", "hamlet", "up", "gateway", "console", "eval", "score", "bench", "mail", "fit",
}

// A fileResolver gives the flags of a YAML file, written as
//
//	kafka: [kafka-1:9092, kafka-2:9092]   # any flag, by its long name
//	learner:                              # for this command alone
//	  save-every: 5s
//
// A flag of the command line and a variable of the environment win over it. A flag
// that no variable sets (env:"-") may not stand in a file either. A key that another
// command has as well is about that one.
type fileResolver struct {
	name   string   // of the program
	shared []string // flags of other programs that the file may name

	path   string       // of the file; load sets it
	values *koanf.Koanf // nil without a file; load sets it
}

// maxFile bounds a configuration file, in bytes.
const maxFile = 16 << 20

// A fileText is a [koanf.Provider].
type fileText []byte

func (t fileText) ReadBytes() ([]byte, error)    { return t, nil }
func (t fileText) Read() (map[string]any, error) { panic("a file has a parser") }

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
}

// nameKey is the key of a mapping that stands for the flag of the mapping's name.
const nameKey = "name"

// fileOf returns the path that --config or HAMLET_CONFIG gives, "" without one.
func fileOf(args []string) string {
	path := os.Getenv("HAMLET_CONFIG")
	for i, a := range args {
		if a == "--" {
			break
		}
		if v, ok := strings.CutPrefix(a, "--config="); ok {
			path = v
		} else if a == "--config" && i+1 < len(args) {
			path = args[i+1]
		}
	}
	return path
}

// load reads the file that --config or HAMLET_CONFIG names. It passes the settings of
// the mapping on and leaves its flag's value in the mapping's place.
func (r *fileResolver) load(args []string, mapping Mapping) error {
	r.path = fileOf(args)
	if r.path == "" {
		return nil
	}
	text, unfit, err := secretfile.ReadAny(r.path, maxFile)
	if err != nil {
		return r.errorf("%w", err)
	}
	r.values = koanf.New(".")
	if err := r.values.Load(fileText(text), yaml.Parser()); err != nil {
		return r.errorf("%w", err)
	}
	isSecret := func(key string) bool { return isSecret(key, fmt.Sprint(r.values.Get(key))) }
	if unfit != nil && slices.ContainsFunc(r.values.Keys(), isSecret) {
		return fmt.Errorf("configuration file %w", unfit)
	}
	var empty []string
	for _, key := range r.values.Keys() {
		if r.values.Get(key) == nil {
			empty = append(empty, key)
		}
	}
	if len(empty) > 0 {
		return r.errorf("%s: there is no value; leave the line out, or write \"\" for an empty text",
			strings.Join(empty, ", "))
	}
	if _, ok := r.values.Get(mapping.Key).(map[string]any); !ok || mapping.Key == "" {
		return nil
	}
	settings := r.values.Cut(mapping.Key)
	r.values.Delete(mapping.Key)
	var errs []error
	for _, key := range settings.Keys() {
		var err error
		if key == nameKey {
			err = r.values.Set(mapping.Key, settings.Get(key))
		} else {
			err = mapping.Set(key, settingText(settings, key))
		}
		if err != nil {
			errs = append(errs, r.errorf("%s: %w", mapping.Key, err))
		}
	}
	return errors.Join(errs...)
}

// isSecret reports whether a setting is one: a password, a token, or an address that holds one.
func isSecret(key, value string) bool {
	return strings.HasSuffix(key, "password") || strings.HasSuffix(key, "token") ||
		strings.Contains(value, "://") && strings.Contains(value, "@")
}

// settingText returns a value of the file as Mapping.Set takes it.
func settingText(values *koanf.Koanf, key string) string {
	list, ok := values.Get(key).([]any)
	switch {
	case !ok:
		return fmt.Sprint(values.Get(key))
	case len(list) == 0:
		return "none"
	}
	return strings.Join(values.Strings(key), ",")
}

func (r *fileResolver) errorf(format string, args ...any) error {
	return fmt.Errorf("configuration file %s: "+format, append([]any{r.path}, args...)...)
}

// Validate implements [kong.Resolver]. It reports every key that no flag of the program
// has, or that is for the command line alone.
func (r *fileResolver) Validate(app *kong.Application) error {
	if r.values == nil {
		return nil
	}
	allKnown, allTyped := flagNames(app.Node)
	var alone, unknown []string
	for _, key := range r.values.Keys() {
		name, known, typed := key, allKnown, allTyped
		section, rest, nested := strings.Cut(key, ".")
		if nested && r.mine(app, section) {
			name, nested = rest, false
			if i := slices.IndexFunc(app.Children, func(n *kong.Node) bool { return n.Name == section }); i >= 0 {
				_, typed = flagNames(app.Children[i])
			}
		}
		switch {
		case nested && slices.Contains(sections, section): // for another command
		case slices.Contains(typed, name):
			alone = append(alone, key)
		case !slices.Contains(known, name) && !slices.Contains(r.shared, key):
			unknown = append(unknown, key)
		}
	}
	switch {
	case len(alone) > 0:
		return &TypedError{File: r.path, Keys: alone}
	case len(unknown) > 0:
		return r.errorf("no flag is called %s; what only one command knows belongs under its name (%s)",
			strings.Join(unknown, ", "), strings.Join(sections, ", "))
	}
	return nil
}

// mine reports whether a section of the file is about this program or one of its
// commands.
func (r *fileResolver) mine(app *kong.Application, section string) bool {
	return section == r.name || slices.ContainsFunc(app.Children, func(n *kong.Node) bool { return n.Name == section })
}

// allFlags returns the flags of a node and of those below it.
func allFlags(n *kong.Node) []*kong.Flag {
	flags := slices.Clone(n.Flags)
	for _, c := range n.Children {
		flags = append(flags, allFlags(c)...)
	}
	return flags
}

// flagNames lists all flags of a node and of those below it, and the names that only a
// command line sets.
func flagNames(n *kong.Node) (all, typed []string) {
	var set []string // that a variable sets too, in one of the commands
	for _, f := range allFlags(n) {
		all = append(all, f.Name)
		if len(f.Envs) > 0 || f.Name == "help" {
			set = append(set, f.Name)
		}
	}
	for _, name := range all {
		if !slices.Contains(set, name) {
			typed = append(typed, name)
		}
	}
	return all, typed
}

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

// Resolve implements [kong.Resolver].
func (r *fileResolver) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if r.values == nil || len(flag.Envs) == 0 {
		return nil, nil
	}
	for _, env := range flag.Envs {
		if _, ok := os.LookupEnv(env); ok {
			return nil, nil
		}
	}
	var keys []string // console.listen, hamlet.listen, listen
	for node := ctx.Selected(); node != nil && node.Parent != nil; node = node.Parent {
		keys = append(keys, node.Name+"."+flag.Name)
	}
	keys = append(keys, r.name+"."+flag.Name, flag.Name)
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
