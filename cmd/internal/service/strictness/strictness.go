// Package strictness reads by which rule mail of a tenant is called spam. The operator writes it into the file of
// tenants:
//
//	strictness:
//	  example.org: {lose-at-most: 0.1%}         # a budget: of all ham at most one in a thousand is lost
//	  shop: {spam-at: 0.99, ham-at: 0.2}        # fixed thresholds
//	  alice: {cost: 50}                         # a lost ham is as bad as 50 missed spams
//
// A tenant has one rule; ham-at may stand beside each. Tenants that are not named have the scorer's own rule.
package strictness

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hamlet/stream"
)

// A Rule says when mail is called spam. Exactly one of LoseAtMost, SpamAt and Cost is not 0.
type Rule struct {
	LoseAtMost Share   // of all ham
	SpamAt     float64 // from this probability on, if the interval lies above ½
	Cost       float64 // of a lost ham, in missed spams: from the probability Cost/(1+Cost) on

	HamAt float64 // up to this probability it is ham; 0: the scorer's own
}

// Rules are those of tenants, by name. Nobody changes them.
type Rules map[string]Rule

// The keys of a rule in YAML.
const (
	keyLoseAtMost = "lose-at-most"
	keySpamAt     = "spam-at"
	keyCost       = "cost"
	keyHamAt      = "ham-at"
)

// maxCost bounds Cost. Beyond it p would have to be above 0.999999.
const maxCost = 1e6

// UnmarshalYAML reads the rules. An error names the line.
func (r *Rules) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return at(node, "strictness: a tenant's rule is written as NAME: {%s: 0.1%%}", keyLoseAtMost)
	}
	all := make(Rules, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i]
		if _, twice := all[name.Value]; twice {
			return at(name, "strictness: %s has two entries", name.Value)
		}
		if err := CheckTenant(name.Value); err != nil {
			return at(name, "strictness: %v", err)
		}
		rule, err := parseRule(node.Content[i+1])
		if err != nil {
			return fmt.Errorf("strictness of %s: %w", name.Value, err)
		}
		all[name.Value] = rule
	}
	*r = all
	return nil
}

// CheckTenant reports what an event, or a header of NATS, cannot carry as a tenant's name.
func CheckTenant(name string) error {
	switch {
	case name == "":
		return errors.New("a tenant's name is empty")
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("the tenant %q has a blank at an end", name)
	}
	return stream.ValidateTenant(name)
}

func parseRule(node *yaml.Node) (r Rule, err error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		return r, at(node, "a rule is written as {%s: 0.1%%}, {%s: 0.99} or {%s: 50}", keyLoseAtMost, keySpamAt, keyCost)
	}
	var seen []string
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch key.Value {
		case keyLoseAtMost:
			err = r.LoseAtMost.UnmarshalText([]byte(value.Value))
		case keySpamAt:
			r.SpamAt, err = number(value, 0, 1)
		case keyCost:
			r.Cost, err = number(value, 1, maxCost)
		case keyHamAt:
			r.HamAt, err = number(value, 0, 1)
		default:
			return r, at(key, "unknown key %s; known are %s, %s, %s and %s", key.Value,
				keyLoseAtMost, keySpamAt, keyCost, keyHamAt)
		}
		if err != nil {
			return r, at(value, "%s: %v", key.Value, err)
		}
		for _, before := range seen {
			switch {
			case before == key.Value:
				return r, at(key, "%s is given twice", key.Value)
			case before != keyHamAt && key.Value != keyHamAt:
				return r, at(key, "%s and %s are two rules, and a tenant has one", before, key.Value)
			}
		}
		seen = append(seen, key.Value)
	}
	switch spamAt := max(r.SpamAt, r.Cost/(1+r.Cost)); {
	case r.LoseAtMost == 0 && spamAt == 0:
		return r, at(node, "one of %s, %s and %s is wanted", keyLoseAtMost, keySpamAt, keyCost)
	case spamAt > 0 && r.HamAt > spamAt:
		return r, at(node, "%s is %v, and spam begins at %.4g already", keyHamAt, r.HamAt, spamAt)
	}
	return r, nil
}

// number reads a number above 0 from least to most.
func number(node *yaml.Node, least, most float64) (float64, error) {
	f, err := strconv.ParseFloat(node.Value, 64)
	if err != nil || !(f > 0 && f >= least && f <= most) {
		return 0, fmt.Errorf("%q is not a number from %v to %v", node.Value, least, most)
	}
	return f, nil
}

// at returns an error about a place in the file.
func at(node *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %w", node.Line, fmt.Errorf(format, args...))
}

// A Share is a part of all ham, such as 0.001. As a text it may be 0.1% too. 0: none.
type Share float64

// Bounds of a budget. Below, a table of judged ham forgets before it could promise anything. Above, nobody wants
// it: 0.1 is more likely a forgotten percent sign.
const (
	leastShare Share = 0.0001
	mostShare  Share = 0.05
)

// UnmarshalText reads a share.
func (s *Share) UnmarshalText(text []byte) error {
	digits, percent := strings.CutSuffix(string(text), "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		f /= 100
	}
	share := Share(f)
	if err != nil || !(share >= leastShare && share <= mostShare) {
		return fmt.Errorf("%q is not a share of ham from %v to %v, such as 0.1%%", text, leastShare, mostShare)
	}
	*s = share
	return nil
}

// String returns the share in percent.
func (s Share) String() string { return strconv.FormatFloat(float64(s)*100, 'g', 10, 64) + "%" }
