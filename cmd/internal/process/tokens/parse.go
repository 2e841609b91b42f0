package tokens

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"hamlet/stream"
)

// The keys of a token.
const (
	keyName      = "name"
	keySHA256    = "sha256"
	keySources   = "sources"
	keyTenants   = "tenants"
	keyActions   = "actions"
	keyAnySource = "any-source"
)

var keys = []string{keyName, keySHA256, keySources, keyTenants, keyActions, keyAnySource}

var tokenName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
})

// checkName returns an error if no token may have the name.
func checkName(name string) error {
	if !tokenName().MatchString(name) {
		return errors.New("1 to 64 of a–z, 0–9, dot, - and _ are wanted, the first a letter or a digit")
	}
	return nil
}

// parse reads a file. The error names the line of the first mistake.
func parse(data []byte) (table, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err == io.EOF {
		return nil, errors.New("it holds no token")
	} else if err != nil {
		return nil, syntaxError(err)
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, at(&second, "a second document begins here: leave out the line ---, all tokens are one list")
	} else if err != io.EOF {
		return nil, syntaxError(err)
	}
	root := document.Content[0]
	if root.Kind != yaml.SequenceNode {
		return nil, at(root, "a list is wanted: each token begins with a dash")
	}
	t, names := make(table, len(root.Content)), make(map[string]bool, len(root.Content))
	for _, node := range root.Content {
		e, err := parseEntry(node)
		if err != nil {
			return nil, err
		}
		if names[e.Name] {
			return nil, at(node, "%s: another token is called %s", keyName, e.Name)
		}
		if t[e.sum] != nil {
			return nil, at(node, "%s: %s has the hash of another token", keySHA256, e.Name)
		}
		names[e.Name], t[e.sum] = true, &e.Rights
	}
	if len(t) == 0 {
		return nil, errors.New("it holds no token")
	}
	return t, nil
}

// An entry is one token.
type entry struct {
	Rights
	sum [sha256.Size]byte // of the token
}

func parseEntry(node *yaml.Node) (e entry, err error) {
	if node.Kind != yaml.MappingNode {
		return e, at(node, "a token is written as {name: …, sha256: …, …}")
	}
	var seen []string
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case !slices.Contains(keys, key.Value):
			return e, at(key, "unknown key; known are %s", strings.Join(keys, ", "))
		case slices.Contains(seen, key.Value):
			return e, at(key, "%s is given twice", key.Value)
		}
		seen = append(seen, key.Value)
		if err := e.set(key.Value, value); err != nil {
			return e, at(value, "%s: %v", key.Value, err)
		}
	}
	for _, key := range keys {
		if key != keyAnySource && !slices.Contains(seen, key) {
			return e, at(node, "%s is missing", key)
		}
	}
	return e, nil
}

// set sets one of the keys.
func (e *entry) set(key string, value *yaml.Node) (err error) {
	switch key {
	case keyName:
		if e.Name, err = scalar(value); err != nil {
			return err
		}
		return checkName(e.Name)
	case keySHA256:
		text, err := scalar(value)
		if err != nil {
			return err
		}
		sum, err := hex.DecodeString(text)
		if err != nil || len(sum) != sha256.Size {
			return errors.New("64 hexadecimal digits are wanted: the SHA-256 of the token, and not the token")
		}
		e.sum = [sha256.Size]byte(sum)
		return nil
	case keySources:
		e.Sources, err = names(value, checkSource)
	case keyTenants:
		e.Tenants, err = names(value, stream.ValidateTenant)
	case keyActions:
		e.Actions, err = names(value, checkAction)
	case keyAnySource:
		if value.Kind != yaml.ScalarNode || value.Decode(&e.AnySource) != nil {
			return errors.New("true or false is wanted")
		}
	}
	return err
}

func scalar(node *yaml.Node) (string, error) {
	if node.Kind != yaml.ScalarNode || node.Tag == "!!null" || node.Value == "" {
		return "", errors.New("a text is wanted")
	}
	return node.Value, nil
}

// names reads a list of at least one name. All stands alone.
func names(node *yaml.Node, check func(string) error) (all []string, err error) {
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 {
		return nil, errors.New("a list of at least one name is wanted, such as [a, b]")
	}
	for _, item := range node.Content {
		name, err := scalar(item)
		if err != nil {
			return nil, err
		}
		if err := check(name); err != nil {
			return nil, err
		}
		all = append(all, name)
	}
	if slices.Contains(all, All) && len(all) > 1 {
		return nil, fmt.Errorf("%q stands for all: leave the others out", All)
	}
	return all, nil
}

// checkSource returns an error if no event may have the source.
func checkSource(source string) error {
	probe := stream.Event{ID: "x", Source: source, Label: stream.Ham, Body: stream.Body{Kind: stream.Text, Text: "x"}}
	return probe.Validate()
}

func checkAction(action string) error {
	if !slices.Contains(Actions(), action) {
		return fmt.Errorf("one is none of %s", strings.Join(Actions(), ", "))
	}
	return nil
}

// CheckRights reports every mistake in what a new token may say.
func CheckRights(r *Rights) error {
	var errs []error
	if err := checkName(r.Name); err != nil {
		errs = append(errs, fmt.Errorf("the token's name: %w", err))
	}
	for _, list := range []struct {
		all   []string
		check func(string) error
	}{{r.Sources, checkSource}, {r.Tenants, stream.ValidateTenant}, {r.Actions, checkAction}} {
		for _, name := range list.all {
			errs = append(errs, list.check(name))
		}
	}
	return errors.Join(errs...)
}

// syntaxError returns an error of package yaml with its line. In errors of its parser, unlike
// those of its scanner, the package counts lines from 0, and leaves 0 out.
func syntaxError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	var line int
	if _, err := fmt.Sscanf(text, "line %d:", &line); err == nil {
		_, text, _ = strings.Cut(text, ": ")
	}
	if line == 0 || strings.HasPrefix(text, "did not find expected") {
		line++
	}
	return fmt.Errorf("line %d: %s", line, text)
}

func at(node *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", node.Line, fmt.Sprintf(format, args...))
}

// line returns the token's line of a file, with a newline.
func line(r *Rights, sum [sha256.Size]byte) ([]byte, error) {
	type written struct {
		Name      string   `yaml:"name"`
		SHA256    string   `yaml:"sha256"`
		Sources   []string `yaml:"sources,flow"`
		Tenants   []string `yaml:"tenants,flow"`
		Actions   []string `yaml:"actions,flow"`
		AnySource bool     `yaml:"any-source,omitempty"`
	}
	var node yaml.Node
	err := node.Encode([]written{{r.Name, hex.EncodeToString(sum[:]), r.Sources, r.Tenants, r.Actions, r.AnySource}})
	if err != nil {
		return nil, err
	}
	node.Content[0].Style = yaml.FlowStyle
	text, err := yaml.Marshal(&node)
	return bytes.TrimLeft(text, " "), err
}
