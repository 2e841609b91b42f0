package doubtful

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/stream"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func id(n int) string { return fmt.Sprintf("%032x", n) }

func labelled(n int, label stream.Label, after time.Duration) *stream.JournalEntry {
	return &stream.JournalEntry{ID: id(n), Time: noon.Add(after), Label: label, Source: "users", Model: "default"}
}

func doubt(n int, φ float64, after time.Duration) *stream.JournalEntry {
	e := labelled(n, stream.Spam, after)
	e.Tenant, e.P, e.Doubt = "example.org", .01, &stream.Doubt{Phi: φ, Offset: int64(n)}
	return e
}

func ids(items []Item) string {
	var all []string
	for i := range items {
		all = append(all, strings.TrimLeft(items[i].ID, "0"))
	}
	return strings.Join(all, " ")
}

// A message is in the list until it gets a later label that is not doubtful, or its label is
// withdrawn. Lines may come twice, as after a restart of the learner.
func TestList(t *testing.T) {
	withdrawn := labelled(2, stream.Spam, time.Hour)
	withdrawn.Withdrawn = true
	lines := []*stream.JournalEntry{
		doubt(1, .2, 0), doubt(2, .1, time.Minute), doubt(3, .3, time.Minute), doubt(4, .4, time.Minute),
		{ID: id(5), Time: noon, Verdict: stream.DecideSpam}, labelled(6, stream.Ham, 0),
		labelled(3, stream.Spam, time.Minute),                             // the same label, as an answer's
		labelled(4, stream.Ham, 0),                                        // an earlier one
		labelled(1, stream.Ham, time.Hour),                                // turned around
		{ID: "x", Time: noon, Label: stream.Spam, Doubt: &stream.Doubt{}}, // no identity
	}
	l := NewList()
	for range 2 {
		for _, e := range lines {
			l.Add(e)
		}
		if got := ids(l.Items(Filter{})); got != "2 3 4" {
			t.Errorf("the list has %s", got)
		}
	}
	if _, ok := l.Item(id(1)); ok {
		t.Error("a settled label is an item")
	}
	if item, ok := l.Item(id(4)); !ok || item.Doubt.Offset != 4 || item.Other() != stream.Ham {
		t.Errorf("%+v, %v", item, ok)
	}
	l.Add(withdrawn)
	l.Settle(id(3), noon.Add(time.Hour))
	l.Add(doubt(1, .05, 2*time.Hour)) // doubtful again
	if got := ids(l.Items(Filter{})); got != "1 4" {
		t.Errorf("then it has %s", got)
	}
	for want, f := range map[string]Filter{
		"": {Tenant: "example.com"}, "1 4": {Tenant: "example.org", Source: "users"}, "1": {Since: noon.Add(time.Hour)},
	} {
		if got := ids(l.Items(f)); got != want {
			t.Errorf("%+v: %s, want %s", f, got, want)
		}
	}
}

func TestListIsBounded(t *testing.T) {
	l := NewList()
	for i := range 2 * mostItems {
		l.Add(doubt(i, .1, time.Duration(i)*time.Second))
	}
	items := l.Items(Filter{})
	if len(items) < mostItems || len(items) > mostItems+mostItems/4 || items[0].ID != id(2*mostItems-1) {
		t.Errorf("%d labels, the newest is %s", len(items), items[0].ID)
	}
}

func TestGroups(t *testing.T) {
	a, b := doubt(1, .1, 0), doubt(2, .1, 0)
	b.Source = "desk"
	got := Groups([]Item{{*a}, {*b}, {*b}})
	if want := []Group{{"example.org", "desk", 2}, {"example.org", "users", 1}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
