package predictions_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hamlet/stream/predictions"
)

func sample() predictions.Block {
	return predictions.Block{Model: "cand", Events: "hamlet.events.default", Learnt: 302, Predictions: []predictions.Prediction{
		{Offset: 7, Spam: true, LogOdds: 1.5},
		{Offset: 8, LogOdds: -2},
		{Offset: 300, LogOdds: float32(math.Inf(-1))},
		{Offset: 301, Spam: true, LogOdds: 9},
		{Offset: 301, Spam: true, LogOdds: 9},
	}}
}

// The bytes are a format: what is written today is read for ever.
func TestBlockBytes(t *testing.T) {
	const want = "01 04 63616e64 15 68616d6c65742e6576656e74732e64656661756c74" +
		" 01 00 ae02" +
		" 00 07 03  01 0000c03f  00 000000c0  c604 000080ff  01 00001041" +
		" 00 ad02 00  01 00001041"
	b := sample()
	got, err := b.AppendBinary(nil)
	if want := strings.ReplaceAll(want, " ", ""); err != nil || hex.EncodeToString(got) != want {
		t.Errorf("%v\ngot  %x\nwant %s", err, got, want)
	}
}

func TestBlockSurvivesItsBytes(t *testing.T) {
	want := sample()
	bytes, err := want.AppendBinary([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := predictions.Decode(bytes[len("before"):])
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for n := range bytes[len("before"):] { // no prefix is a block, but those that end with a run
		if b, err := predictions.Decode(bytes[len("before"):][:n]); err == nil && len(b.Predictions) == len(want.Predictions) {
			t.Errorf("%d bytes of %d are a block", n, len(bytes)-len("before"))
		}
	}
}

func TestAnEventTakesFiveBytes(t *testing.T) {
	b := predictions.Block{Model: "default", Events: "hamlet.events.default"}
	for i := range predictions.MaxEvents {
		b.Predictions = append(b.Predictions, predictions.Prediction{Offset: 1<<40 + int64(i), LogOdds: 3})
	}
	bytes, err := b.AppendBinary(nil)
	if each := float64(len(bytes)) / predictions.MaxEvents; err != nil || each > 5.1 {
		t.Errorf("%.2f bytes an event, %v", each, err)
	}
}

func TestWhatIsNoBlockIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(b *predictions.Block){
		"no model":  func(b *predictions.Block) { b.Model = "" },
		"no events": func(b *predictions.Block) { b.Events = "" },
		"long name": func(b *predictions.Block) { b.Model = strings.Repeat("m", 250) },
		"empty":     func(b *predictions.Block) { b.Predictions, b.Learnt = nil, 0 },
		"too many":  func(b *predictions.Block) { b.Predictions = make([]predictions.Prediction, predictions.MaxEvents+1) },
		"learnt":    func(b *predictions.Block) { b.Learnt = -1 },
		"offset":    func(b *predictions.Block) { b.Predictions[0].Offset = -1 },
		"NaN":       func(b *predictions.Block) { b.Predictions[0].LogOdds = float32(math.NaN()) },
	} {
		b := sample()
		spoil(&b)
		if bytes, err := b.AppendBinary(nil); err == nil {
			t.Errorf("%s: encoded to %x", name, bytes)
		}
	}
	for _, bytes := range []string{"", "\x02", "\x01\x01m\x01e\x00", "\x01\x01m\x01e\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00"} {
		if b, err := predictions.Decode([]byte(bytes)); err == nil {
			t.Errorf("%q is %+v", bytes, b)
		}
	}
	newer, _ := hex.DecodeString("02ff")
	if _, err := predictions.Decode(newer); err == nil || !strings.Contains(err.Error(), "layout 2") {
		t.Errorf("a newer layout: %v", err)
	}
	for name, bytes := range map[string]string{
		"marks of two partitions": "\x01\x01m\x01e\x02\x00\x05\x01\x05",
		"a mark of partition 1":   "\x01\x01m\x01e\x01\x01\x05",
		"a run of partition 3":    "\x01\x01m\x01e\x00\x03\x00\x00\x01\x00\x00\x00\x00",
	} {
		if b, err := predictions.Decode([]byte(bytes)); err == nil || !strings.Contains(err.Error(), "several partitions") {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	b := sample()
	bytes, err := b.AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bytes)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		b, err := predictions.Decode(bytes)
		if err != nil {
			return
		}
		again, err := b.AppendBinary(nil)
		if err != nil {
			t.Fatalf("%+v was decoded and cannot be encoded: %v", b, err)
		}
		if got, err := predictions.Decode(again); err != nil || !cmp.Equal(got, b) {
			t.Fatalf("%v\n%s", err, cmp.Diff(b, got))
		}
	})
}

func ExampleBlock() {
	b := predictions.Block{Model: "default", Events: "hamlet.events.default",
		Predictions: []predictions.Prediction{{Offset: 7, Spam: true, LogOdds: 1.5}}}
	value, err := b.AppendBinary(nil)
	if err != nil {
		panic(err)
	}
	b, err = predictions.Decode(value)
	fmt.Println(predictions.Topic(b.Model), b.Predictions[0], err)
	// Output: hamlet.predictions.default {7 true 1.5} <nil>
}
