package endtoend

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/wire"
	"hamlet/stream"
)

// A place is where a record stands in the log: its offset.
type place = int64

// said is what a model says of records: what is a dead letter, and which receipts there are.
type said struct {
	letters  map[place]bool
	receipts map[place]string // the id of the event that asked for it
	alerts   []stream.Alert

	copies, withdrawals int
}

// apply has a model learn records, one after the other in this process, and returns its
// SHA-256 and what it says. It is the plain way that all learners must equal.
func (o *replicas) apply(records []stream.Record) (sum string, s said) {
	o.t.Helper()
	m, err := model.New(o.config())
	if err != nil {
		o.t.Fatal(err)
	}
	s = said{letters: map[place]bool{}, receipts: map[place]string{}}
	for i := range records {
		r := &records[i]
		at := r.Offset
		e, err := stream.DecodeRecord(r.Headers, r.Value)
		if err != nil {
			s.letters[at] = true
			continue
		}
		x, _, err := example.Of(&e)
		if err != nil {
			s.letters[at] = true
			continue
		}
		effect, err := m.Apply(&x)
		if err != nil {
			s.letters[at] = true
			continue
		}
		for i := range effect.Alerts {
			a := wire.Alert(&effect.Alerts[i])
			a.Model = o.model
			s.alerts = append(s.alerts, a)
		}
		switch {
		case effect.Duplicate:
			s.copies++
		case effect.Receipt != nil:
			s.receipts[at] = e.ID
			if effect.Receipt.Events > 0 {
				s.withdrawals++
			}
		}
	}
	b, err := m.AppendBinary(nil)
	if err != nil {
		o.t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b)), s
}

// published returns the dead letters and the receipts that Kafka holds of the model, and how many
// of these records are copies. A learner that takes over may publish what the one before has
// published. It fails the test if two records of one offset differ.
func (o *replicas) published() (letters map[place]bool, receipts map[place]string, copies int) {
	o.t.Helper()
	letters, receipts = map[place]bool{}, map[place]string{}
	whole := map[string]string{} // records, by what they are and their place
	see := func(what string, at place, r *stream.Record) {
		key, record := fmt.Sprint(what, " of offset ", at), fmt.Sprintf("%q %q %q", r.Key, r.Headers, r.Value)
		switch before, twice := whole[key]; {
		case !twice:
			whole[key] = record
		case before != record:
			o.t.Errorf("two copies of the %s differ:\n%s\n%s", key, before, record)
		default:
			copies++
		}
	}
	for _, r := range allOf(o.t, o.cfg, stream.DeadLetterTopic) {
		d, err := stream.ParseDeadLetter(r.Headers)
		if err != nil {
			o.t.Error(err)
		}
		if d.Topic == o.topic {
			letters[d.Offset] = true
			see("dead letter", d.Offset, &r)
		}
	}
	for _, r := range allOf(o.t, o.cfg, stream.ReceiptTopic) {
		var receipt stream.Receipt
		if err := json.Unmarshal(r.Value, &receipt); err != nil {
			o.t.Errorf("%q: %v", r.Value, err)
		}
		if receipt.Model == o.model {
			receipts[receipt.Offset] = receipt.ID
			see("receipt", receipt.Offset, &r)
		}
	}
	return letters, receipts, copies
}

// wantLetters fails unless Kafka holds the dead letters and the receipts of a run without
// faults: none is missing, none is of something else, and copies are equal. Unless a test is
// short, there must be copies of events, and withdrawals.
func (o *replicas) wantLetters(records []stream.Record) said {
	o.t.Helper()
	sha256, want := o.apply(records)
	if saved := fmt.Sprintf("%x", o.head().ModelSHA256); saved != sha256 {
		o.t.Errorf("the saved model is %s; the records, learnt one by one, make %s", saved, sha256)
	}
	letters, receipts, twice := o.published()
	if !maps.Equal(letters, want.letters) {
		o.t.Errorf("%d dead letters, want %d: %v", len(letters), len(want.letters), difference(letters, want.letters))
	}
	if !maps.Equal(receipts, want.receipts) {
		o.t.Errorf("%d receipts, want %d: %v", len(receipts), len(want.receipts), difference(receipts, want.receipts))
	}
	if len(records) > 500 && (want.copies == 0 || want.withdrawals == 0 || len(want.letters) == 0) {
		o.t.Errorf("%d copies and %d withdrawals and %d dead letters show nothing", want.copies, want.withdrawals, len(want.letters))
	}
	o.t.Logf("%d dead letters and %d receipts, and %d equal copies of them; %d copies of events and %d withdrawals",
		len(letters), len(receipts), twice, want.copies, want.withdrawals)
	return want
}

// difference says where two maps differ.
func difference[V comparable](got, want map[place]V) (lines []string) {
	for at := range got {
		if want[at] != got[at] {
			lines = append(lines, fmt.Sprint("too much: ", at))
		}
	}
	for at := range want {
		if want[at] != got[at] {
			lines = append(lines, fmt.Sprint("missing: ", at))
		}
	}
	slices.Sort(lines)
	return lines[:min(len(lines), 20)]
}
