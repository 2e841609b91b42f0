package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
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

	LearningPause time.Duration `json:"-"` // the longest without a new event learnt
	ScoringPause  time.Duration `json:"-"` // the longest without an answer
}

// A Table is the result of a campaign.
type Table struct {
	Seed  uint64
	Rows  []Row // by kind
	Total Row

	Sent, Answers int // events acknowledged; answers checked
	Problems      []string
}

// A tally adds up rounds.
type tally struct {
	rows  map[string]*Row
	total Row

	sent, answers int
	problems      []string
}

func newTally() *tally {
	return &tally{rows: map[string]*Row{}, total: Row{Fault: "all"}}
}

// A round is what one round of a campaign found.
type round struct {
	Injected []fault
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
func (t *tally) add(r *round) {
	seen := map[string]bool{}
	for _, f := range r.Injected {
		row := t.row(f.kind())
		row.Injected++
		t.total.Injected++
		if !seen[f.kind()] {
			seen[f.kind()] = true
			row.verified(r)
		}
	}
	if r.Settled {
		for kind := range seen {
			t.row(kind).Survived += r.injected(kind) - min(r.Died[kind], r.injected(kind))
			t.total.Survived += r.injected(kind) - min(r.Died[kind], r.injected(kind))
		}
	}
	t.total.verified(r)
	for _, p := range r.Pauses {
		t.total.pause(p)
		for _, kind := range p.Kinds {
			t.row(kind).pause(p)
		}
	}
	t.sent += r.Sent
	t.answers += r.Answers
	t.problems = append(t.problems, r.Problems...)
}

func (r *round) injected(kind string) (n int) {
	for _, f := range r.Injected {
		if f.kind() == kind {
			n++
		}
	}
	return n
}

func (t *tally) row(kind string) *Row {
	if t.rows[kind] == nil {
		t.rows[kind] = &Row{Fault: kind}
	}
	return t.rows[kind]
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
	*longest = max(*longest, p.Took)
}

// table returns the sum, its rows by name.
func (t *tally) table(seed uint64) *Table {
	table := &Table{Seed: seed, Total: t.total, Sent: t.sent, Answers: t.answers, Problems: t.problems}
	for _, row := range t.rows {
		table.Rows = append(table.Rows, *row)
	}
	slices.SortFunc(table.Rows, func(a, b Row) int {
		if a.Fault < b.Fault {
			return -1
		}
		return 1
	})
	return table
}

// Err returns an error if anything was lost, wrong, not the same bytes or not survived. A
// problem is an error too where no fault explains it: a process may end long after the
// last one.
func (t *Table) Err() error {
	total := &t.Total
	if total.Lost == 0 && total.Wrong == 0 && total.Same == total.Rounds && total.Survived == total.Injected && len(t.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("the campaign failed: %d of %d faults survived, the same bytes after %d of %d rounds, %d lost, %d wrong, %d problems",
		total.Survived, total.Injected, total.Same, total.Rounds, total.Lost, total.Wrong, len(t.Problems))
}

// write prints the table for people.
func (t *Table) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "fault\tinjected\tsurvived\tsame bytes\tlost\twrong\tlearning paused\tscoring paused\t")
	for _, row := range append(slices.Clone(t.Rows), t.Total) {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d of %d\t%d\t%d\t%s\t%s\t\n", row.Fault, row.Injected, row.Survived,
			row.Same, row.Rounds, row.Lost, row.Wrong, seconds(row.LearningPause), seconds(row.ScoringPause))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d events acknowledged, %d answers checked, seed %d\n", t.Sent, t.Answers, t.Seed)
	for _, p := range t.Problems {
		if err == nil {
			_, err = fmt.Fprintf(w, "! %s\n", p)
		}
	}
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// writeJSON prints the table as one object.
func (t *Table) writeJSON(w io.Writer) error {
	type row struct {
		Row
		Learning float64 `json:"learning_pause_seconds"`
		Scoring  float64 `json:"scoring_pause_seconds"`
	}
	full := func(r Row) row { return row{r, r.LearningPause.Seconds(), r.ScoringPause.Seconds()} }
	out := struct {
		Seed     uint64   `json:"seed"`
		Faults   []row    `json:"faults"`
		Total    row      `json:"total"`
		Sent     int      `json:"acknowledged"`
		Answers  int      `json:"answers_checked"`
		Problems []string `json:"problems"`
	}{Seed: t.Seed, Total: full(t.Total), Sent: t.Sent, Answers: t.Answers, Problems: t.Problems, Faults: []row{}}
	for _, r := range t.Rows {
		out.Faults = append(out.Faults, full(r))
	}
	if out.Problems == nil {
		out.Problems = []string{}
	}
	return json.NewEncoder(w).Encode(out)
}
