package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A call is one that a node has made of a port.
type call struct {
	node     string
	key      string // node, port, method, and how many of these the node has made
	at, took time.Duration
	err      error
}

// A line of the story.
type line struct {
	at   time.Duration
	who  string
	what string
}

func (l line) String() string { return fmt.Sprintf("%8.3fs %s %s", l.at.Seconds(), l.who, l.what) }

// tell adds a line to the story.
func (w *World) tell(who, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line{time.Since(w.started), who, what})
}

// note keeps a call, for the story.
func (w *World) note(made call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made = append(w.made, made)
}

// Around a line of the story stand the calls that began this long before and after, up to so many each.
const (
	callsBefore, callsAfter = 100 * time.Millisecond, 200 * time.Millisecond
	mostCalls               = 6
)

// story returns what was told, with the calls around all that went wrong by itself or by plan.
func (w *World) story() []string {
	lines := slices.Clone(w.lines)
	slices.SortStableFunc(w.made, func(a, b call) int { return int(a.at - b.at) })
	there := map[string]bool{}
	for _, l := range w.lines {
		global := l.who == "==" || l.who == violation
		if !global && !isCall(l.who) && !strings.HasPrefix(l.what, "has ended") {
			continue
		}
		node, _, _ := strings.Cut(l.who, " ")
		if global {
			node = mentions(l.what)
		}
		first, _ := slices.BinarySearchFunc(w.made, l.at-callsBefore,
			func(c call, at time.Duration) int { return int(c.at - at) })
		var before, after []call
		for _, c := range w.made[first:] {
			if c.at > l.at+callsAfter {
				break
			}
			if node != "" && c.node != node {
				continue
			}
			if c.at <= l.at {
				before = append(before, c)
			} else if len(after) < mostCalls {
				after = append(after, c)
			}
		}
		for _, c := range append(before[max(0, len(before)-mostCalls):], after...) {
			if !there[c.key] {
				there[c.key] = true
				lines = append(lines, line{c.at, "  " + c.key, c.became()})
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	story := make([]string, len(lines))
	for i, l := range lines {
		story[i] = l.String()
	}
	return story
}

// violation is who tells what does not hold.
const violation = "VIOLATION:"

// isCall reports whether a line is of a call: its key has a number behind the node, the port and the method.
func isCall(who string) bool { return strings.Count(who, " ") == 3 }

// mentions returns the node that an incident names; "": none.
func mentions(what string) string {
	for _, name := range slices.Concat(learners, scorers, ingests) {
		if strings.Contains(what, name) {
			return name
		}
	}
	return ""
}

func (c call) became() string {
	if c.err != nil {
		return fmt.Sprintf("took %v: %v", c.took, c.err)
	}
	return fmt.Sprintf("took %v", c.took)
}
