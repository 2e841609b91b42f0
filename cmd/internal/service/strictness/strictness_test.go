package strictness

import (
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestRules(t *testing.T) {
	var got Rules
	err := yaml.Unmarshal([]byte(`
example.org: &usual {lose-at-most: 0.1%}
other: *usual
share: {lose-at-most: 0.001, ham-at: 0.3}
shop: {spam-at: 0.99, ham-at: 0.2}
alice:
  cost: 50
`), &got)
	want := Rules{
		"example.org": {LoseAtMost: 0.001}, "other": {LoseAtMost: 0.001}, "share": {LoseAtMost: 0.001, HamAt: 0.3},
		"shop": {SpamAt: 0.99, HamAt: 0.2}, "alice": {Cost: 50},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// A mistake names its line, and what is wrong.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"a: {}":            "line 1: one of lose-at-most, spam-at and cost is wanted",
		"a: {ham-at: 0.3}": "line 1: one of lose-at-most, spam-at and cost is wanted",
		"a: {cost: 2}\nb: {lose-at-most: 1%, cost: 2}": "of b: line 2: lose-at-most and cost are two rules",
		"a:\n  spam-at: 0.9\n  ham-at: 0.1\n  cost: 2": "line 4: spam-at and cost are two rules",
		"a: {cost: 2, cost: 2}":                        "line 1: cost is given twice",
		"a: {cost: 2}\na: {cost: 2}":                   "line 2: strictness: a has two entries",
		"a: 0.1%":                                      "line 1: a rule is written as",
		"[a]":                                          "line 1: strictness: a tenant's rule",
		"a: {lose_at_most: 1%}":                        "unknown key lose_at_most",
		"a: {lose-at-most: 0.1}":                       `"0.1" is not a share of ham from 0.01% to 5%`,
		"a: {lose-at-most: 0}":                         "not a share",
		"a: {lose-at-most: NaN}":                       "not a share",
		"a: {spam-at: 1.5}":                            `"1.5" is not a number from 0 to 1`,
		"a: {spam-at: 0}":                              "not a number",
		"a: {cost: .5}":                                "not a number from 1 to 1e+06",
		"a: {cost: .nan}":                              "not a number",
		"a: {spam-at: 0.5, ham-at: 0.6}":               "ham-at is 0.6, and spam begins at 0.5",
		"a: {cost: 1, ham-at: 0.6}":                    "ham-at is 0.6, and spam begins at 0.5",
		`" a": {cost: 1}`:                              "has a blank at an end",
		`"": {cost: 1}`:                                "a tenant's name is empty",
	} {
		var rules Rules
		if err := yaml.Unmarshal([]byte(text), &rules); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestShare(t *testing.T) {
	for text, want := range map[string]Share{"0.1%": 0.001, "0.001": 0.001, "5 %": 0.05, "0.01%": 0.0001, "1e-3": 0.001} {
		var got Share
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s is read as %v, %v", text, float64(got), err)
		}
		var again Share
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != got {
			t.Errorf("%s is written as %s, and read as %v, %v", text, got, float64(again), err)
		}
	}
}
