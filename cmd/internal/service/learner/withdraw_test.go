package learner

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hamlet/cmd/internal/service/example"
	"hamlet/stream"
)

// After unlearn, relearn and correct events the model equals one that applied them without a
// log. Each of them has one receipt. An event that cannot be withdrawn becomes a
// dead letter with the reason.
func TestWithdrawals(t *testing.T) {
	r := newRig(t)
	const n = 2000
	records, want := texts(t, n)
	withdrawalBy := func(source, id string, action stream.Action, of int, ownOnly bool) stream.Record {
		e, err := stream.DecodeRecord(records[of].Headers, records[of].Value)
		if err != nil {
			t.Fatal(err)
		}
		e.ID, e.Action, e.Of, e.OwnOnly = id, action, e.ID, ownOnly
		if source != "" {
			e.Source = source
		}
		if action == stream.Correct {
			e.Of, e.Label = "", stream.Ham+stream.Spam-e.Label
		}
		if action == stream.Relearn {
			e.Label = stream.Ham + stream.Spam - e.Label
		}
		value, headers, err := e.EncodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		return stream.Record{Key: []byte("t"), Value: value, Headers: headers}
	}
	withdrawal := func(id string, action stream.Action, of int) stream.Record {
		return withdrawalBy("", id, action, of, of%20 == 0)
	}
	var more []stream.Record
	for i := range 49 {
		more = append(more, withdrawal(fmt.Sprint("u", i), stream.Unlearn, n-500+10*i))
	}
	more = append(more, withdrawalBy("operator", "u49", stream.Unlearn, n-10, false))
	more = append(more, withdrawal("r", stream.Relearn, n-3))
	outcomes := []string{stream.OutcomeReplaced, stream.OutcomeUnchanged, stream.OutcomeNotAllowed, stream.OutcomeReplaced}
	more = append(more, withdrawal("c1", stream.Correct, n-7), withdrawal("c2", stream.Correct, n-7),
		withdrawalBy("stranger", "c3", stream.Correct, n-8, true), withdrawalBy("operator", "c4", stream.Correct, n-8, false))
	refused := []stream.Record{withdrawal("twice", stream.Unlearn, n-500), withdrawal("relearnt", stream.Unlearn, n-3),
		withdrawalBy("stranger", "s", stream.Unlearn, n-5, true)}
	for i := range more {
		e, err := stream.DecodeRecord(more[i].Headers, more[i].Value)
		if err != nil {
			t.Fatal(err)
		}
		ex, _, err := example.Of(&e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := want.Apply(&ex); err != nil {
			t.Fatal(err)
		}
	}
	log := append(append(records, more...), refused...)
	r.produce(log...)
	counts := map[Outcome]int{}
	cfg := r.config()
	cfg.Observe = func(a Applied) { counts[a.Outcome]++ }
	r.learn(cfg, int64(len(log)))

	c := r.head()
	if c.ModelSHA256 != sum(t, want) {
		t.Error("the model differs from the one that applied the same events without a log")
	}
	if c.Events != n+55 {
		t.Errorf("%d events, want %d: each withdrawal or correction that is applied ticks once", c.Events, n+55)
	}
	if counts[Learned] != n || counts[Unlearned] != 50 || counts[Relearned] != 1 || counts[Corrected] != 2 || counts[Uncorrected] != 2 || counts[DeadLettered] != 3 {
		t.Errorf("counted %v", counts)
	}
	receipts := all(t, r.receipts)
	if len(receipts) != 55 {
		t.Fatalf("%d receipts, want 55", len(receipts))
	}
	before := ""
	for i, record := range receipts {
		var receipt stream.Receipt
		if err := json.Unmarshal(record.Value, &receipt); err != nil {
			t.Fatal(err)
		}
		if i > 50 {
			if receipt.Outcome != outcomes[i-51] || (receipt.Events > 0) != (receipt.Outcome == stream.OutcomeReplaced) || receipt.Before != "" {
				t.Errorf("the receipt of correction %d: %+v", i-50, receipt)
			}
			continue
		}
		if receipt.KL <= 0 || receipt.Before == receipt.After || receipt.Event != uint64(n+1+i) || receipt.Offset != int64(n+i) {
			t.Errorf("receipt %d: %+v", i, receipt)
		}
		if before != "" && receipt.Before != before {
			t.Errorf("receipt %d begins with the model %s, the one before ended with %s", i, receipt.Before, before)
		}
		before = receipt.After
		if i == 50 && (receipt.Action != "relearn" || receipt.Learnt == receipt.Withdrawn || len(receipt.After) != 64 || receipt.Outcome != stream.OutcomeWithdrawn) {
			t.Errorf("the relearn's receipt: %+v", receipt)
		}
	}
	letters := all(t, r.dead)
	if len(letters) != 3 {
		t.Fatalf("%d dead letters, want 3", len(letters))
	}
	for i, record := range letters {
		want := "withdrawn already"
		if i == 2 {
			want = "another source's"
		}
		d, err := stream.ParseDeadLetter(record.Headers)
		if err != nil || !strings.Contains(d.Reason, want) || d.Offset != int64(n+55+i) {
			t.Errorf("dead letter %d: %+v, %v", i, d, err)
		}
	}
}
