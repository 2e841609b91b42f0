package history

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
	"hamlet/stream/nats"
)

// A Filter says which decisions are wanted. The zero Filter wants all.
type Filter struct {
	ID        string // an identity, or the id of a request
	MessageID string // with or without angle brackets
	Verdict   string // "spam", "ham" or "unsure"
	Door      string
	Tenant    string
	Label     string // Labelled or Corrected
	Since     time.Time

	Identities map[string]bool // nil: any
}

// check returns an error if a value is not one that a decision can have.
func (f *Filter) check() error {
	switch f.Verdict {
	case "", string(stream.DecideSpam), string(stream.DecideHam), string(stream.DecideUnsure):
	default:
		return fmt.Errorf("the verdict %q is not known: it must be spam, ham or unsure", f.Verdict)
	}
	switch f.Label {
	case "", Labelled, Corrected:
	default:
		return fmt.Errorf("the label %q is not known: it must be %s or %s", f.Label, Labelled, Corrected)
	}
	if f.MessageID != "" && stream.MessageIDHash(f.MessageID) == "" {
		return fmt.Errorf("the Message-ID %q is empty", f.MessageID)
	}
	return nil
}

// The values of Filter.Label.
const (
	Labelled  = "labelled"  // the message has a label
	Corrected = "corrected" // its label contradicts the verdict
)

// Match returns what tells whether a decision on a message with a label is wanted. The label is
// Unlabelled if there is none.
func (f *Filter) Match() func(e *stream.JournalEntry, label stream.Label) bool {
	messageID, tenant, request := stream.MessageIDHash(f.MessageID), stream.Unaddressed(f.Tenant), stream.Unaddressed(f.ID)
	return func(e *stream.JournalEntry, label stream.Label) bool {
		return (f.Identities == nil || f.Identities[e.ID]) &&
			(f.ID == "" || e.ID == f.ID || e.Request == request) &&
			(messageID == "" || e.MessageID == messageID) &&
			(f.Verdict == "" || string(e.Verdict) == f.Verdict) &&
			(f.Door == "" || e.Door == f.Door) &&
			(tenant == "" || e.Tenant == tenant) &&
			(f.Label == "" || label != stream.Unlabelled) &&
			(f.Label != Corrected || contradicts(e.Verdict, label))
	}
}

// holding returns what tells whether the bytes of a line hold all values that are wanted; nil if
// that tells nothing. Match decides about those that do.
func (f *Filter) holding() func(line []byte) bool {
	var values [][]byte
	for _, v := range []string{f.ID, stream.MessageIDHash(f.MessageID), f.Verdict, f.Door, f.Tenant} {
		if plain().MatchString(v) {
			values = append(values, []byte(v))
		}
	}
	if len(values) == 0 {
		return nil
	}
	return func(line []byte) bool {
		return !slices.ContainsFunc(values, func(v []byte) bool { return !bytes.Contains(line, v) })
	}
}

// plain matches what stands in JSON, and in a line of the journal, as it is.
var plain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9A-Za-z._-]+$`)
})

func contradicts(verdict stream.Decision, label stream.Label) bool {
	return verdict == stream.DecideSpam && label == stream.Ham || verdict == stream.DecideHam && label == stream.Spam
}

// An Entry is a decision with the last label that its message got.
type Entry struct {
	stream.JournalEntry
	Given   stream.Label // Unlabelled: none
	By      string       // the label's source
	GivenAt time.Time

	Place nats.JournalPosition
}

// Corrected reports whether the label contradicts the verdict.
func (e *Entry) Corrected() bool { return contradicts(e.Verdict, e.Given) }

// Name is the identity of the mail, or of a text or a vector the id of the request.
func (e *Entry) Name() string { return cmp.Or(e.ID, e.Request) }

// Why is the address of the page that shows why; "" if there is nothing to show.
func (e *Entry) Why() string {
	if e.Name() == "" {
		return ""
	}
	return "/why?id=" + url.QueryEscape(e.Name()) + "&at=" + FormatPlace(e.Place)
}

// FormatPlace writes a place in the journal as addresses of pages have it.
func FormatPlace(at nats.JournalPosition) string { return fmt.Sprintf("%d-%d", at.Sequence, at.Line) }

// ParsePlace reads what FormatPlace wrote.
func ParsePlace(text string) (nats.JournalPosition, error) {
	sequence, line, _ := strings.Cut(text, "-")
	s, err1 := strconv.ParseUint(sequence, 10, 63)
	l, err2 := strconv.ParseUint(line, 10, 30)
	return nats.JournalPosition{Sequence: s, Line: int(l)}, errors.Join(err1, err2)
}

// Found is what Read found.
type Found struct {
	Entries []Entry // the newest first
	Damaged int     // lines that cannot be read, among those that were looked at
	Looked  int     // decisions that were looked at

	// Older is where a next Read begins. It is zero if there is nothing more.
	Older nats.JournalPosition

	// Stopped: ctx ended before the page was full. Back is the time of the oldest decision that
	// was looked at.
	Stopped bool
	Back    time.Time

	// LabelsMissing: there are more labels than are read, so some may be missing.
	LabelsMissing bool
}

// mostLabels bounds what Read knows: some 100 MB.
const mostLabels = 500_000

// Read returns the newest decisions that a filter wants and that stand before a place in a
// model's journal, at most limit of them; 0 means all. The zero place is the end. Where ctx has a
// deadline and it passes, Read returns what it has found.
func Read(ctx context.Context, conn *natsgo.Conn, model string, f *Filter, limit int,
	before nats.JournalPosition) (Found, error) {
	if !conn.IsConnected() {
		return Found{}, fmt.Errorf("read the journal: %w", nats.ErrNoServer)
	}
	labels, complete, err := labels(ctx, conn, model, f)
	if err != nil {
		return Found{}, err
	}
	found := Found{LabelsMissing: !complete}
	match, more := f.Match(), false
	for line, err := range nats.ReadJournalBack(ctx, conn, model, before, f.Since, f.holding()) {
		if errors.As(err, new(*nats.MessageError)) {
			found.Damaged++
			continue
		}
		if err != nil {
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return Found{}, err
			}
			found.Stopped = true
			break
		}
		if more = limit > 0 && len(found.Entries) == limit; more {
			break
		}
		found.Looked++
		found.Back, found.Older = line.Time, line.Position
		if line.Passed {
			continue
		}
		given := labels[line.ID]
		if match(&line.JournalEntry, given.label) {
			found.Entries = append(found.Entries, Entry{line.JournalEntry, given.label, given.source, given.at, line.Position})
		}
	}
	if !more && !found.Stopped {
		found.Older = nats.JournalPosition{}
	}
	slices.SortStableFunc(found.Entries, func(a, b Entry) int { return b.Time.Compare(a.Time) })
	return found, nil
}

// A given is the last label of a message.
type given struct {
	label  stream.Label
	source string
	at     time.Time
}

// labels returns the last label of each message since f.Since, by identity, and whether these are
// all. Where f names identities, it keeps only theirs. It reads at most mostLabels, and for half
// of the time until ctx ends.
func labels(ctx context.Context, conn *natsgo.Conn, model string,
	f *Filter) (found map[string]given, complete bool, err error) {
	half := ctx
	if end, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		half, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	found = map[string]given{}
	for e, err := range nats.ReadJournalLabels(half, conn, model, f.Since) {
		switch {
		case errors.As(err, new(*nats.MessageError)):
		case err != nil && errors.Is(half.Err(), context.DeadlineExceeded):
			return found, false, nil
		case err != nil:
			return nil, false, err
		case f.Identities != nil && !f.Identities[e.ID]:
		default:
			found[e.ID] = given{e.Label, e.Source, e.Time}
		}
		if len(found) == mostLabels {
			return found, false, nil
		}
	}
	return found, true, nil
}
