package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/lab/experiment"
)

// A Row is what became of one kind of fault. Same, Lost and Wrong are those of the
// rounds that the kind was part of: several kinds may share a round.
type Row struct {
	Fault    string `json:"fault"`
	Injected int    `json:"injected"`
	Survived int    `json:"survived"` // no process ended by itself, and the round settled
	Rounds   int    `json:"rounds"`   // verified rounds with this kind
	Same     int    `json:"same_bytes"`
	Lost     int    `json:"lost"`
	Wrong    int    `json:"wrong"`
	Named    int    `json:"named"` // flips in files of the machine that it has named

	LearningPause seconds `json:"learning_pause_seconds"` // the longest without a new event learnt
	ScoringPause  seconds `json:"scoring_pause_seconds"`  // the longest without an answer
}

// seconds are a time that is shown in seconds.
type seconds time.Duration

func (s seconds) String() string { return fmt.Sprintf("%.1f s", time.Duration(s).Seconds()) }

// MarshalJSON writes a number.
func (s seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// A Table is the result of a campaign. Its rounds are added one by one.
type Table struct {
	Seed     uint64   `json:"seed"`
	Rows     []Row    `json:"faults"` // by kind
	Total    Row      `json:"total"`
	Sent     int      `json:"acknowledged"` // events
	Answers  int      `json:"answers_checked"`
	Problems []string `json:"problems"`
	Left     []Left   `json:"not_injected"`
}

// A Left is a kind of fault that was asked for, and could not be injected here.
type Left struct {
	Fault string `json:"fault"`
	Why   string `json:"why"`
}

func newTable(seed uint64) *Table {
	return &Table{Seed: seed, Rows: []Row{}, Total: Row{Fault: "all"}, Problems: []string{}, Left: []Left{}}
}

// A round is what one round of a campaign found.
type round struct {
	Injected []fault
	Named    map[string]int // by kind: faults that hamlet has named
	Died     map[string]int // by kind: faults after which a process ended by itself
	Settled  bool           // everything was learnt, saved and served again in time
	Same     bool           // the model in Redis has the bytes of a fresh replay
	Lost     int            // acknowledged events that the log lacks or that were not learnt once
	Wrong    int            // answers and events that differ from what they must be
	Answers  int            // checked
	Sent     int            // events acknowledged
	Pauses   []pausedFor
	Problems []string // a sentence for each thing that went wrong
}

// A pausedFor is a time without progress, and the kinds of fault that overlap it.
type pausedFor struct {
	Scoring bool
	Took    time.Duration
	Kinds   []string
}

// add adds a round.
func (t *Table) add(r *round) {
	seen := map[string]bool{}
	for _, f := range r.Injected {
		row := t.row(f.kind())
		row.Injected++
		t.Total.Injected++
		if !seen[f.kind()] {
			seen[f.kind()] = true
			row.verified(r)
		}
	}
	if r.Settled {
		for kind := range seen {
			t.row(kind).Survived += r.injected(kind) - min(r.Died[kind], r.injected(kind))
			t.Total.Survived += r.injected(kind) - min(r.Died[kind], r.injected(kind))
		}
	}
	for kind, n := range r.Named {
		t.row(kind).Named += n
		t.Total.Named += n
	}
	t.Total.verified(r)
	for _, p := range r.Pauses {
		t.Total.pause(p)
		for _, kind := range p.Kinds {
			t.row(kind).pause(p)
		}
	}
	t.Sent += r.Sent
	t.Answers += r.Answers
	t.Problems = append(t.Problems, r.Problems...)
}

func (r *round) injected(kind string) (n int) {
	for _, f := range r.Injected {
		if f.kind() == kind {
			n++
		}
	}
	return n
}

// row returns the row of a kind. It is valid until another kind's row is asked for.
func (t *Table) row(kind string) *Row {
	i, found := slices.BinarySearchFunc(t.Rows, kind, func(row Row, kind string) int {
		return strings.Compare(row.Fault, kind)
	})
	if !found {
		t.Rows = slices.Insert(t.Rows, i, Row{Fault: kind})
	}
	return &t.Rows[i]
}

func (row *Row) verified(r *round) {
	row.Rounds++
	if r.Same {
		row.Same++
	}
	row.Lost += r.Lost
	row.Wrong += r.Wrong
}

func (row *Row) pause(p pausedFor) {
	longest := &row.LearningPause
	if p.Scoring {
		longest = &row.ScoringPause
	}
	*longest = max(*longest, seconds(p.Took))
}

// Err returns an error if anything was lost, wrong, not the same bytes or not survived. A
// problem is an error too where no fault explains it: a process may end long after the
// last one. Where faults were named, what could not be injected is an error as well.
func (t *Table) Err(named bool) error {
	total := &t.Total
	if named && len(t.Left) > 0 {
		errs := []error{t.Err(false)}
		for _, left := range t.Left {
			errs = append(errs, fmt.Errorf("not injected: %s: %s", left.Fault, left.Why))
		}
		return errors.Join(errs...)
	}
	if total.Lost == 0 && total.Wrong == 0 && total.Same == total.Rounds && total.Survived == total.Injected &&
		len(t.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("the campaign failed: %d of %d faults survived, the same bytes after %d of %d rounds, %d lost, "+
		"%d wrong, %d problems",
		total.Survived, total.Injected, total.Same, total.Rounds, total.Lost, total.Wrong, len(t.Problems))
}

// section has a line for each kind of fault.
func (t *Table) section() *experiment.Section {
	table := experiment.Table{Right: true, Head: [][]string{{"fault", "injected", "survived", "same bytes", "lost",
		"wrong", "named", "learning paused", "scoring paused"}}}
	for _, row := range append(slices.Clone(t.Rows), t.Total) {
		table.Addf("%s\t%d\t%d\t%d of %d\t%d\t%d\t%d\t%s\t%s", row.Fault, row.Injected, row.Survived,
			row.Same, row.Rounds, row.Lost, row.Wrong, row.Named, row.LearningPause, row.ScoringPause)
	}
	notes := []string{fmt.Sprintf("%d events acknowledged, %d answers checked, seed %d", t.Sent, t.Answers, t.Seed)}
	for _, left := range t.Left {
		notes = append(notes, fmt.Sprintf("not injected: %s: %s", left.Fault, left.Why))
	}
	for _, p := range t.Problems {
		notes = append(notes, "! "+p)
	}
	return &experiment.Section{Table: table, Notes: experiment.Plain(notes...)}
}
