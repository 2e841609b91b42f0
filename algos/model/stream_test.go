package model_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/model"
)

// dense are the dense names of the made-up vectors.
var dense = []string{"age", "links", "size"}

// madeUp returns n labelled events, the same for the same seed: mails, texts and
// vectors with dense and hashed names in turn.
func madeUp(n int, seed uint64) []model.Example {
	r := rand.New(rand.NewPCG(seed, 1))
	word := func(spam bool) string {
		kind := "w"
		if r.IntN(3) == 0 {
			kind = map[bool]string{true: "Pill", false: "meet"}[spam]
		}
		return kind + strconv.Itoa(r.IntN(40))
	}
	words := func(spam bool) string {
		var s strings.Builder
		for range 3 + r.IntN(60) {
			s.WriteString(word(spam))
			s.WriteString([]string{" ", ", ", "! ", "\n"}[r.IntN(4)])
		}
		return s.String()
	}
	all := make([]model.Example, n)
	for i := range all {
		spam := r.IntN(2) == 0
		ex := model.Example{ID: fmt.Sprint("e", i), Source: "desk", Spam: spam, Body: model.Body{Tenant: "t"}}
		switch r.IntN(3) {
		case 0:
			text := words(spam)
			ex.Body.Message = &feature.Message{Body: []byte(text), BodyBytes: len(text)}
		case 1:
			text := words(spam)
			ex.Body.Message = &feature.Message{
				Head:    []byte("from: " + word(spam) + "@example.org\nsubject: hello\n"),
				Subject: []byte(word(spam)), Body: []byte(text), BodyBytes: 2 * len(text),
				HTML: r.IntN(2) == 0, Parts: r.IntN(4), Attachments: r.IntN(2),
			}
		default:
			shift := 0.5
			if spam {
				shift = -0.5
			}
			ex.Body.Vector = []feature.Number{
				{Name: "age", Value: r.NormFloat64() + shift},
				{Name: "h" + strconv.Itoa(r.IntN(9)), Value: float64(r.IntN(3))},
				{Name: "k" + fmt.Sprint(spam, r.IntN(9)), Value: 1 + r.Float64()},
				{Name: "links", Value: float64(r.IntN(100))},
				{Name: "size", Value: 1000 * r.ExpFloat64()},
				{Name: "z", Value: 1},
			}
		}
		all[i] = ex
	}
	return all
}

func newModel(t testing.TB, cfg model.Config) *model.Model {
	t.Helper()
	m, err := model.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// apply applies all events; none may be refused or a copy.
func apply(t testing.TB, m *model.Model, events []model.Example) {
	t.Helper()
	for i := range events {
		if effect, err := m.Apply(&events[i]); err != nil || effect.Duplicate {
			t.Fatalf("event %d: %+v, %v", i, effect, err)
		}
	}
}

func bytesOf(t testing.TB, m *model.Model) []byte {
	t.Helper()
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sumOf(t testing.TB, m *model.Model) string {
	t.Helper()
	sum := sha256.Sum256(bytesOf(t, m))
	return hex.EncodeToString(sum[:])
}
