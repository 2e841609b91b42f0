package order_test

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"hamlet/stream/order"
)

// samples has a record of each kind, and of each field.
func samples() []order.Record {
	chain := order.Chain{1, 2, 3, 31: 4}
	return []order.Record{
		{Kind: order.Beginning, Writer: "l1", Epoch: 1, Places: []order.Place{{}, {Next: 5, Chain: chain, Before: order.Chain{9}}}, Model: [32]byte{7}},
		{Kind: order.Beginning, Writer: "l1", Epoch: 1, Places: []order.Place{{}}},
		{Kind: order.Range, Writer: "l2", Epoch: 8, Partition: 3, From: 10, To: 74, Gaps: 2, Chain: chain},
		{Kind: order.Join, Writer: "l2", Epoch: 8, Partition: 4},
		{Kind: order.Gap, Writer: "operator", Partition: 1, From: 9, To: 1 << 40},
	}
}

func TestRecordSurvivesItsBytes(t *testing.T) {
	for _, want := range samples() {
		b, err := want.AppendProto([]byte("before"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := order.Decode(b[len("before"):])
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v\n%s", want.Kind, err, cmp.Diff(want, got))
		}
	}
}

// The bytes are a format: a record of today is read for ever. n zero bytes stand as <n>.
func TestRecordBytes(t *testing.T) {
	want := []string{
		"0a026c31 1001 1ab001 0a44 1220<32> 1a20<32> 0a46 0805 1220010203<28>04 1a2009<31> 122007<31>",
		"0a026c31 1001 1a46 0a44 1220<32> 1a20<32>",
		"0a026c32 1008 222a 0803 100a 184a 2002 2a20010203<28>04",
		"0a026c32 1008 2a02 0804",
		"0a086f70657261746f72 320b 0801 1009 18808080808020",
	}
	zeros := regexp.MustCompile(`<\d+>| `)
	for i, r := range samples() {
		b, err := r.AppendProto(nil)
		want := zeros.ReplaceAllStringFunc(want[i], func(s string) string {
			n, _ := strconv.Atoi(strings.Trim(s, "<> "))
			return strings.Repeat("00", n)
		})
		if got := hex.EncodeToString(b); err != nil || got != want {
			t.Errorf("%s: %s, %v\nwant %s", r.Kind, got, err, want)
		}
	}
}

func TestWhatNoLearnerFollowsIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(r *order.Record){
		"no writer":       func(r *order.Record) { r.Writer = "" },
		"long writer":     func(r *order.Record) { r.Writer = strings.Repeat("w", 300) },
		"epoch":           func(r *order.Record) { r.Epoch = -1 },
		"partition":       func(r *order.Record) { r.Partition = order.MaxPartitions },
		"below 0":         func(r *order.Record) { r.Partition = -1 },
		"empty":           func(r *order.Record) { r.To = r.From },
		"backwards":       func(r *order.Record) { r.To = r.From - 1 },
		"negative":        func(r *order.Record) { r.From = -1 },
		"no kind":         func(r *order.Record) { r.Kind = 0 },
		"unknown kind":    func(r *order.Record) { r.Kind = order.Gap + 1 },
		"no place":        func(r *order.Record) { r.Kind = order.Beginning },
		"many places":     func(r *order.Record) { r.Kind, r.Places = order.Beginning, make([]order.Place, order.MaxPartitions+1) },
		"place below 0":   func(r *order.Record) { r.Kind, r.Places = order.Beginning, []order.Place{{Next: -1}} },
		"gap without end": func(r *order.Record) { r.Kind, r.To = order.Gap, r.From },
	} {
		r := samples()[2]
		spoil(&r)
		if b, err := r.AppendProto(nil); err == nil {
			t.Errorf("%s: encoded to %x", name, b)
		}
	}
}

// A learner that skips what it does not know differs from one that knows it.
func TestUnknownFieldsAreRefused(t *testing.T) {
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	inside := func(field protowire.Number, message []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag([]byte("\n\x01w"), field, protowire.BytesType), message)
	}
	place := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), unknown)
	valid, err := samples()[2].AppendProto(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"record": append(valid, unknown...), "beginning": inside(3, unknown), "place": inside(3, place),
		"range": inside(4, unknown), "join": inside(5, unknown), "gap": inside(6, unknown),
	} {
		if _, err := order.Decode(b); err == nil || !strings.Contains(err.Error(), "unknown field number 99") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, b := range []string{"", "\n\x01w", "x", "\n\x01w\x22\x02\x2a\x00"} {
		if r, err := order.Decode([]byte(b)); err == nil {
			t.Errorf("%q is %+v", b, r)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, r := range samples() {
		b, err := r.AppendProto(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := order.Decode(b)
		if err != nil {
			return
		}
		again, err := r.AppendProto(nil)
		if err != nil {
			t.Fatalf("%+v was decoded and cannot be encoded: %v", r, err)
		}
		if got, err := order.Decode(again); err != nil || !cmp.Equal(got, r) {
			t.Fatalf("%v\n%s", err, cmp.Diff(r, got))
		}
	})
}

func ExampleRecord() {
	r := order.Record{Kind: order.Range, Writer: "learner-1", Epoch: 7, Partition: 1, From: 0, To: 2}
	value, err := r.AppendProto(nil)
	if err != nil {
		panic(err)
	}
	r, err = order.Decode(value)
	fmt.Println(order.Topic("default"), r.Kind, r.Partition, r.From, r.To, err)
	// Output: hamlet.order.default range 1 0 2 <nil>
}
