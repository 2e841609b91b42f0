package source

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hamlet/stream"
)

// A labelling says what the labels of text, CSV and svmlight mean, and counts them. A
// source has one, over all its inputs: spam may be in one file and ham in another.
//
// judge reads a source's labels before its first event is taken, so nothing is learnt or
// sent under wrong labels. A source that can be read only once is judged as it is read.
type labelling struct {
	spam, ham []string // the labels' texts or numbers
	refusal   string   // of another label, after the label itself
	named     bool     // --positive was given: all other labels are ham

	count   map[string]tally // by label as it is written; at most maxLabels
	others  int              // labels beyond maxLabels; they are unknown
	known   [2]int           // ham, spam
	unknown int
}

// A tally is how often a label was met.
type tally struct {
	n       int
	meaning string // spam, ham or unknown
}

const (
	// maxLabels bounds the labels that are counted apart: a wrong column may have a
	// value for each row.
	maxLabels = 1000

	// unknownShare of the labels, or more, is a mistake about all of them.
	// A single unknown label is a bad row.
	unknownShare, fewestUnknown = 0.1, 2

	// judgedEarly unknown labels end a source that can be read only once, if they are
	// more than unknownShare of those so far. A source's end judges fewer.
	judgedEarly = 50

	// oneClassRows is how many rows of one class are no accident: with a tenth of the
	// other class, fifty rows of one are met once in two hundred times.
	oneClassRows = 50
)

// A LabelsError means that a source's labels are probably misunderstood.
type LabelsError struct{ what string }

func (e *LabelsError) Error() string { return e.what }

// newLabelling returns the default meanings of a format's labels, or those of --positive.
func newLabelling(format, positive string) *labelling {
	l := new(labelling)
	switch {
	case positive != "":
		l.spam, l.named, l.refusal = list(positive), true, "says nothing"
	case format == FormatText:
		l.spam, l.ham, l.refusal = []string{"spam"}, []string{"ham"}, "is neither spam nor ham"
	case format == FormatSVMLight:
		l.spam, l.ham, l.refusal = []string{"1"}, []string{"-1", "0"}, "must be +1 or 1 (spam), -1 or 0 (ham)"
	case format == FormatCSV:
		l.spam, l.ham = []string{"spam", "1", "+1"}, []string{"ham", "0", "-1"}
		l.refusal = "is neither spam (spam, 1, +1) nor ham (ham, 0, -1); --positive names what is spam, --label the column"
	default:
		panic("source: no labels in the rows of " + format)
	}
	l.reset()
	return l
}

func (l *labelling) reset() {
	l.count, l.others, l.known, l.unknown = make(map[string]tally), 0, [2]int{}, 0
}

// of returns the meaning of a label and counts it.
func (l *labelling) of(s string) (label stream.Label, err error) {
	meaning := "unknown"
	switch {
	case sameLabel(s, l.spam):
		label, meaning = stream.Spam, "spam"
		l.known[1]++
	case l.named && s != "" && s != "?" && !strings.EqualFold(s, "nan"), sameLabel(s, l.ham):
		label, meaning = stream.Ham, "ham"
		l.known[0]++
	default:
		l.unknown++
		err = fmt.Errorf("label: %s %s", word(s), l.refusal)
	}
	if t, ok := l.count[s]; ok || len(l.count) < maxLabels {
		l.count[s] = tally{t.n + 1, meaning}
	} else {
		l.others++
	}
	return label, err
}

// mistaken returns an error if more than unknownShare of the labels so far are unknown.
func (l *labelling) mistaken(fewest int) error {
	all := l.unknown + l.known[0] + l.known[1]
	if l.unknown < fewest || float64(l.unknown) <= unknownShare*float64(all) {
		return nil
	}
	return &LabelsError{fmt.Sprintf("%d of %d labels are unknown: %s; %s", l.unknown, all, l.list(), l.advice())}
}

// oneSided returns an error if a whole source has one class alone. That may be right: it
// is taken for right if --positive was given and all labels are written alike.
func (l *labelling) oneSided() error {
	ham, spam := l.known[0], l.known[1]
	if ham > 0 && spam > 0 || ham+spam < oneClassRows || l.named && len(l.count) == 1 {
		return nil
	}
	class := "spam"
	if spam == 0 {
		class = "ham"
	}
	return &LabelsError{fmt.Sprintf("all %d known labels mean %s: %s; %s", ham+spam, class, l.list(), l.advice())}
}

// list shows the labels, the most frequent first.
func (l *labelling) list() string {
	const most = 10
	labels := slices.SortedFunc(maps.Keys(l.count), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.count[b].n, l.count[a].n), cmp.Compare(a, b))
	})
	var shown []string
	for _, s := range labels[:min(most, len(labels))] {
		shown = append(shown, fmt.Sprintf("%s %d times (%s)", word(s), l.count[s].n, l.count[s].meaning))
	}
	if more := len(labels) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, ", ")
}

// advice names the flags that would do.
func (l *labelling) advice() string {
	example := "VALUE"
	for s, t := range l.count { // the most frequent that does not mean spam; else one that does
		if best, ok := l.count[example]; s != "" && s != "?" && (!ok || better(t, best) || !better(best, t) && s < example) {
			example = s
		}
	}
	if len(example) > 16 || word(example)[0] != '"' {
		example = "VALUE"
	}
	return fmt.Sprintf("name what is spam, such as --positive %s (all other labels are then ham), "+
		"or the label's column of a CSV with --label", example)
}

// better reports whether a is a better example of what else may be spam than b.
func better(a, b tally) bool {
	if (a.meaning == "spam") != (b.meaning == "spam") {
		return b.meaning == "spam"
	}
	return a.n > b.n
}

// judge reads the labels of a source that can be read again, up to --limit.
func (s *Source) judge() error {
	l := s.labels
	l.reset()
	defer l.reset()
	n := 0
	for _, err := range s.drafts {
		if err != nil && !isRejection(err) {
			return nil // the reading that follows meets it too
		}
		if err == nil {
			n++
		}
		if s.cfg.Limit > 0 && n == s.cfg.Limit && s.cfg.Shuffle == nil {
			return s.placed(l.mistaken(fewestUnknown))
		}
	}
	return s.placed(cmp.Or(l.mistaken(fewestUnknown), l.oneSided()))
}

// placed names the source in an error about its labels.
func (s *Source) placed(err error) error {
	var labels *LabelsError
	if errors.As(err, &labels) {
		return &LabelsError{strings.Join(s.cfg.Paths, ", ") + ": " + labels.what}
	}
	return err
}
