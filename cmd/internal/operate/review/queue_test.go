package review

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/worth"
	"hamlet/stream"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func id(n int) string { return fmt.Sprintf("%032x", n) }

// answer returns a decision with log-odds m ± 1.645·s.
func answer(n int, m, s float64, after time.Duration) *stream.JournalEntry {
	σ := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	return &stream.JournalEntry{ID: id(n), Time: noon.Add(after), P: σ(m), Low: σ(m - model.Z90*s), High: σ(m + model.Z90*s),
		Verdict: stream.DecideUnsure, Door: "milter", Tenant: "example.org", Reasons: []string{fmt.Sprint("reason ", n)}}
}

func label(n int) *stream.JournalEntry {
	return &stream.JournalEntry{ID: id(n), Time: noon, Label: stream.Spam, Source: "ann"}
}

func names(q *Queue, n int, skipped ...int) string {
	skip := map[string]bool{}
	for _, n := range skipped {
		skip[id(n)] = true
	}
	best, _ := q.Best(n, noon.Add(-time.Hour), skip, nil)
	var all []string
	for _, item := range best {
		all = append(all, strings.TrimLeft(item.ID, "0"))
	}
	return strings.Join(all, " ")
}

// The most doubtful come first; what has a label, is skipped, too old or much like another does not.
func TestQueueOrders(t *testing.T) {
	q := NewQueue()
	q.Add(answer(1, 4, .3, 0))
	q.Add(answer(2, 0, 2, 0))
	q.Add(answer(3, 1, 1, 0))
	q.Add(answer(4, 0, 3, -2*time.Hour)) // too old
	q.Add(answer(5, 0, 3, 0))
	q.Add(label(5))
	q.Add(label(6)) // comes before its answer
	q.Add(answer(6, 0, 3, 0))
	q.Add(&stream.JournalEntry{ID: "a text", Time: noon, P: .5, Low: .1, High: .9, Door: "http"})
	q.Revalue(id(7), .5, .1, .9) // what only the console asked about is nobody's mail
	if got := names(q, 10); got != "2 3 1" {
		t.Errorf("the queue is %s", got)
	}
	if got := names(q, 1, 2); got != "3" {
		t.Errorf("behind what is skipped: %s", got)
	}
	if best, waiting := q.Best(1, noon.Add(-time.Hour), nil, nil); len(best) != 1 || waiting != 3 || best[0].Door != "milter" {
		t.Errorf("%+v of %d", best, waiting)
	}
	if n := q.Waiting(noon.Add(-time.Hour)); n != 3 {
		t.Errorf("%d wait, want 3", n)
	}
	// A newer answer counts, and an older one does not.
	newer := answer(2, 5, .2, time.Minute)
	newer.Door = "http"
	q.Add(newer)
	q.Add(answer(3, 0, 9, -time.Minute))
	if got := names(q, 10); got != "3 1 2" {
		t.Errorf("after other answers: %s", got)
	}
	if item, ok := q.Item(id(2)); !ok || item.Door != "milter" || item.P != newer.P {
		t.Errorf("%+v", item)
	}
	q.Labelled(id(3))
	if _, ok := q.Item(id(3)); ok || names(q, 10) != "1 2" {
		t.Error("a labelled message is in the queue")
	}
}

// What the console asks changes the order, and neither what the journal says nor how long a message
// stays.
func TestQueueRevalues(t *testing.T) {
	q := NewQueue()
	first := answer(1, 0, 2, -50*time.Minute)
	q.Add(first)
	q.Add(answer(2, 1, 1, 0))
	again := answer(1, 5, .2, time.Minute)
	q.Revalue(id(1), again.P, again.Low, again.High)
	if got := names(q, 10); got != "2 1" {
		t.Errorf("the queue is %s", got)
	}
	item, ok := q.Item(id(1))
	if !ok || !item.Time.Equal(first.Time) || item.P != first.P || item.Low != first.Low || item.Verdict != first.Verdict || item.Door != "milter" ||
		item.Worth != worth.Of(again.P, again.Low, again.High) {
		t.Errorf("%+v", item)
	}
	if best, waiting := q.Best(10, noon.Add(-40*time.Minute), nil, nil); waiting != 1 || best[0].ID != id(2) {
		t.Errorf("%d wait when the journal's answer is too old: %+v", waiting, best)
	}
}

func TestQueueShowsOneOfMany(t *testing.T) {
	campaign := func(n int, m float64) *stream.JournalEntry {
		e := answer(n, m, 1, 0)
		e.Reasons = []string{"text words", "header words"}
		return e
	}
	q := NewQueue()
	q.Add(campaign(1, 0))
	q.Add(campaign(2, .01))
	q.Add(campaign(3, .02))
	q.Add(campaign(4, .5)) // not much like them
	other := campaign(5, 0.001)
	other.Tenant = "example.net"
	q.Add(other)
	twice := answer(6, 2, 1, 0)
	twice.MessageID = "9ae1"
	again := answer(7, 3, 1, 0)
	again.MessageID = "9ae1"
	q.Add(twice)
	q.Add(again)
	if got := names(q, 10); got != "1 5 4 6" {
		t.Errorf("the queue is %s", got)
	}
	if got := names(q, 10, 1, 6); got != "5 4" {
		t.Errorf("without what is skipped and what is like it: %s", got)
	}
	if best, _ := q.Best(2, noon.Add(-time.Hour), nil, map[string]bool{id(1): true}); best[0].ID != id(5) || best[1].ID != id(2) {
		t.Errorf("without what is missing: %+v", best)
	}
	q.Add(label(1))
	if got := names(q, 10); got != "5 4 6" {
		t.Errorf("after a label: %s", got)
	}
}

// Neither answers nor labels without end make the queue large.
func TestQueueIsBounded(t *testing.T) {
	q := NewQueue()
	for i := range mostItems * 2 {
		q.Add(answer(i, 0, 1+float64(i)/mostItems, 0))
	}
	if len(q.items) > mostItems+mostItems/4 || names(q, 1) == "" {
		t.Errorf("%d items", len(q.items))
	}
	if item, ok := q.Item(id(2*mostItems - 1)); !ok || item.Worth == 0 {
		t.Error("the item of the highest worth is gone")
	}
	for i := range mostLabelled + 1000 {
		q.Add(label(i))
	}
	if len(q.labelled) != mostLabelled || len(q.order.all) != mostLabelled || len(q.given.all) != mostGiven {
		t.Errorf("%d labels, %d in order, %d items", len(q.labelled), len(q.order.all), len(q.given.all))
	}
}

func TestReadMessage(t *testing.T) {
	m := Read([]byte("From: =?utf-8?q?Ann_=E2=80=AE?= <ann@example.org>\r\nTo: bob@example.org\r\nDate: Fri, 20 Nov 2026 12:00:00 +0000\r\n" +
		"Subject: =?utf-8?q?<script>alert(1)</script>?=\r\nContent-Type: text/html\r\n\r\n<p>Hello <b>you</b></p><script>x()</script>\r\n" +
		strings.Repeat("word ", MostText)))
	if m.Subject != "<script>alert(1)</script>" || !strings.Contains(m.From, "Ann") || !strings.Contains(m.From, "[U+202E]") || m.To != "bob@example.org" || !strings.HasPrefix(m.Date, "Fri, 20") {
		t.Errorf("%q, %q, %q, %q", m.Subject, m.From, m.To, m.Date)
	}
	if !strings.HasPrefix(m.Text, "Hello you") || strings.Contains(m.Text, "<") || !m.Cut || len([]rune(m.Text)) != MostText {
		t.Errorf("the text is %.100q, cut %v", m.Text, m.Cut)
	}
	if !strings.Contains(m.Header, "to: bob@example.org\n") {
		t.Errorf("the header is %q", m.Header)
	}
	if m := Read([]byte("\x00\xff")); m.Subject != "" {
		t.Errorf("%+v", m)
	}
}

// What chance has chosen stands in the queue whatever it is worth and is like, the oldest first, before each of
// the others. It stays where the queue is too long.
func TestQueueAsksByChance(t *testing.T) {
	q := NewQueue()
	q.Ask = 0.3
	var asked, others []int
	for i := range 40 {
		e := answer(i, 0, 3-0.01*float64(i), time.Duration(i)*time.Second)
		if q.Ask.Asks(e.ID) {
			e.Low, e.High, e.P, e.Reasons = .001, .001, .001, nil // worth nothing, and all alike
			asked = append(asked, i)
		} else {
			others = append(others, i)
		}
		q.Add(e)
	}
	if len(asked) < 5 || len(asked) > 20 {
		t.Fatalf("%d of 40 are chosen", len(asked))
	}
	want := ""
	for i, n := range asked {
		want += fmt.Sprintf("%x %x ", n, others[i])
	}
	if got := names(q, 2*len(asked)) + " "; got != want && got != strings.Replace(want, "0 ", " ", 1) {
		t.Errorf("the queue is %s, want %s", got, want)
	}
	q.Labelled(id(asked[0]))
	if got := names(q, 1); got != fmt.Sprintf("%x", asked[1]) {
		t.Errorf("after the first label %s comes first, want %x", got, asked[1])
	}
	for i := range mostItems * 2 {
		q.Add(answer(1000+i, 0, 3, time.Minute))
	}
	for _, n := range asked[1:] {
		if _, ok := q.Item(id(n)); !ok {
			t.Errorf("chance has chosen %x, and it is gone", n)
		}
	}
}

// Of more chosen messages than the queue holds, chance says which go, and not what the answer was.
func TestQueueTrimsByChance(t *testing.T) {
	q := NewQueue()
	q.Ask = ingest.MostAsked
	first := map[string]bool{} // whether chance chose it for the half that stays
	for i := 0; len(first) < mostItems+mostItems/4+1; i++ {
		if e := answer(i, 0, 1, 0); q.Ask.Asks(e.ID) {
			first[e.ID] = ingest.Chance(e.ID) < ingest.MostAsked/2
			if first[e.ID] { // worth nothing: a lost ham, as the answer has it
				e.P, e.Low, e.High = .999, .999, .999
			}
			q.Add(e)
		}
	}
	if len(q.items) != mostItems {
		t.Fatalf("%d items, want %d", len(q.items), mostItems)
	}
	for id, stays := range first {
		if _, ok := q.Item(id); stays && !ok {
			t.Fatal("a message of half the share is gone")
		}
	}
}
