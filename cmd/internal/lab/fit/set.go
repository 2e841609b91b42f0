package fit

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A set holds the values that a number may have.
type set struct {
	text           string // as in the tag
	lo, hi         float64
	openLo, openHi bool // the end itself is excluded
	label          bool // -1 or 1, nothing between
}

// anyNumber holds every float64.
var anyNumber = set{text: "(-∞,∞)", lo: math.Inf(-1), hi: math.Inf(1)}

// parseSet reads an interval such as [0,1] or (0,∞), or ±1.
func parseSet(text string) (set, error) {
	if text == "±1" {
		return set{text: text, lo: -1, hi: 1, label: true}, nil
	}
	var ends []string
	if len(text) > 2 && strings.ContainsAny(text[:1], "[(") && strings.ContainsAny(text[len(text)-1:], "])") {
		ends = strings.Split(text[1:len(text)-1], ",")
	}
	if len(ends) != 2 {
		return set{}, fmt.Errorf("in:%q is neither an interval nor ±1", text)
	}
	s := set{text: text, openLo: text[0] == '(', openHi: text[len(text)-1] == ')'}
	for i, dst := range []*float64{&s.lo, &s.hi} {
		v, err := strconv.ParseFloat(strings.Replace(ends[i], "∞", "Inf", 1), 64)
		if err != nil {
			return set{}, fmt.Errorf("in:%q: %w", text, err)
		}
		*dst = v
	}
	if !(s.lo <= s.hi) {
		return set{}, fmt.Errorf("in:%q is empty", text)
	}
	return s, nil
}

// has reports whether v is in s. NaN is in none.
func (s set) has(v float64) bool {
	switch {
	case s.label:
		return v == -1 || v == 1
	case s.openLo && v == s.lo, s.openHi && v == s.hi:
		return false
	}
	return v >= s.lo && v <= s.hi
}

// check returns an error if s lacks v, a number that the request spells as text.
func (s set) check(v float64, text json.Number) error {
	switch {
	case s.has(v):
		return nil
	case s.label:
		return fmt.Errorf("%s is no label; 1 and -1 are", clip(string(text)))
	}
	return fmt.Errorf("%s is not in %s", clip(string(text)), s.text)
}
