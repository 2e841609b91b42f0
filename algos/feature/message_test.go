package feature_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"hamlet/algos/feature"
)

func TestTextOfAMail(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    feature.Message
		want string
	}{
		{"mail", feature.Message{Subject: []byte("Hi"), Body: []byte("text")}, "subject: Hi\n\ntext"},
		{"mail without a subject", feature.Message{Subject: []byte{}, Body: []byte("text")}, "subject: \n\ntext"},
		{"plain text", feature.Message{Body: []byte("text")}, "text"},
		{"empty", feature.Message{}, ""},
		{"long body", feature.Message{Body: []byte(strings.Repeat("x", 9000))}, strings.Repeat("x", feature.TextBytes)},
		{"long subject", feature.Message{Subject: []byte(strings.Repeat("x", 9000)), Body: []byte("text")},
			"subject: " + strings.Repeat("x", feature.TextBytes-9)},
		{"subject that leaves one byte", feature.Message{Subject: []byte(strings.Repeat("x", feature.TextBytes-12)), Body: []byte("text")},
			"subject: " + strings.Repeat("x", feature.TextBytes-12) + "\n\nt"},
	} {
		if got := string(tt.m.AppendT([]byte("before "))); got != "before "+tt.want {
			t.Errorf("%s: T = %.60q… of %d bytes, want %.60q… of %d", tt.name, got, len(got), tt.want, len(tt.want))
		}
	}
	long := feature.Message{Head: make([]byte, 5000)}
	if got := len(long.AppendH(nil, nil)); got != feature.HeadBytes {
		t.Errorf("%d bytes of a long head, want %d", got, feature.HeadBytes)
	}
}

func TestFacts(t *testing.T) {
	e7 := int(math.Round(math.Exp(7)))
	var got [feature.FactCount]float64
	feature.Facts(got[:], &feature.Message{
		Body:      []byte("ABCabc12!$"),
		BodyBytes: e7 - 1,
		HTML:      true,
		Parts:     2, Attachments: 5,
	})
	want := [feature.FactCount]float64{
		0, (math.Log(11) - 7) / 2, 1, 2. / 3, 1,
		3*3/(3+3+10.) - .5, 5 * 2 / 20., 30 * 2 / 20.,
	}
	for j := range want {
		if math.Abs(got[j]-want[j]) > 1e-3 {
			t.Errorf("%s = %v, want %v", feature.FactNames[j], got[j], want[j])
		}
	}
	feature.Facts(got[:], &feature.Message{Parts: -1, Attachments: -1, BodyBytes: -1})
	if want := [feature.FactCount]float64{-3.5, -3.5, 0, 0, 0, -.5, 0, 0}; got != want {
		t.Errorf("facts of nothing: %v, want %v", got, want)
	}
}

func ExampleHasher() {
	h := feature.NewHasher(18) // tables of 2^18 slots
	words := h.Words(nil, []byte("Cheap pills, cheap pills!"))
	fmt.Println(len(words), "features: two words, and two pairs")
	// Output: 4 features: two words, and two pairs
}
