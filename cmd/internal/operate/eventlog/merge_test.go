package eventlog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/stream"
)

// A merge takes the partitions by time, those of a partition in their order, and is a prefix of
// the merge of a topic that has grown.
func TestMerge(t *testing.T) {
	r := newRig(t)
	const model = "m"
	const topic = "hamlet.events." + model
	at := func(partition int, seconds ...int) (records []stream.Record) {
		for i, s := range seconds {
			value := fmt.Appendf(nil, "%d/%d", partition, i)
			records = append(records, stream.Record{Value: value, Time: began.Add(time.Duration(s) * time.Second)})
		}
		return records
	}
	r.topic(topic, 4)
	r.publish(topic, 0, at(0, 5, 6, 20)...)
	r.publish(topic, 1, at(1, 3, 5, 1, 7)...) // 1 is late, and stays behind 5
	r.publish(topic, 3, at(3, 5, 9)...)
	merged := func(acceptLost bool) (values []string) {
		t.Helper()
		records, total, err := Merge(t.Context(), r.kafka, model, acceptLost)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := all(t, records)
		for _, r := range got {
			values = append(values, string(r.Value))
		}
		if int(total) != len(values) {
			t.Errorf("%d records, Merge says %d", len(values), total)
		}
		return values
	}
	want := strings.Fields("1/0 0/0 1/1 1/2 3/0 0/1 1/3 3/1 0/2")
	if got := merged(false); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	r.publish(topic, 2, at(2, 20, 21)...)
	want = append(want, "2/0", "2/1")
	if got := merged(false); !slices.Equal(got, want) {
		t.Errorf("of a topic that has grown: %q\nwant %q", got, want)
	}

	// The new log is filled in two goes.
	r.topic("hamlet.events.to", 1)
	records, _, err := Merge(t.Context(), r.kafka, model, false)
	if err != nil {
		t.Fatal(err)
	}
	some, _ := all(t, records)
	r.publish("hamlet.events.to", 0, some[:4]...)
	if done, err := r.fill("to", records, forever); err != nil || done != (Filled{11, 4, 0}) {
		t.Errorf("%+v, %v", done, err)
	}
	if got, want := digest(t, r.log("to").Records(t.Context())), digest(t, records); got != want {
		t.Errorf("the log has %s, want %s", got, want)
	}

	r.deleteBelow(topic, 3, 1)
	var lost *LostError
	_, _, err = Merge(t.Context(), r.kafka, model, false)
	if !errors.As(err, &lost) || *lost != (LostError{topic, 3, 1}) {
		t.Errorf("of a topic that has lost its beginning: %v", err)
	}
	want = slices.DeleteFunc(want, func(s string) bool { return s == "3/0" })
	if got := merged(true); !slices.Equal(got, want) {
		t.Errorf("of what is left: %q\nwant %q", got, want)
	}
	r.topic("hamlet.order."+model, 1)
	var ordered *OrderedError
	if _, _, err := Merge(t.Context(), r.kafka, model, false); !errors.As(err, &ordered) {
		t.Errorf("of a topic that one model learnt: %v", err)
	}
	if got := merged(true); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if _, _, err := Merge(t.Context(), r.kafka, "none", false); !errors.Is(err, ErrNone) {
		t.Errorf("of no topic: %v", err)
	}
}
