package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/model"
)

// The first hash is that of the model's bytes, the second changes with a prediction.
func TestFingerprint(t *testing.T) {
	cfg := model.Config{TableBits: 8}
	line := func(n int, body string) string {
		var in bytes.Buffer
		out := json.NewEncoder(&in)
		for i := range n {
			text := []byte(fmt.Sprint(body, i%3))
			ex := model.Example{ID: fmt.Sprint(i), Spam: i%3 == 0, Body: model.Body{Message: &feature.Message{Head: text, Body: text}}}
			if err := out.Encode(ex); err != nil {
				t.Fatal(err)
			}
		}
		line, err := fingerprint(&Stream{Name: "texts", Config: cfg, Events: n}, json.NewDecoder(&in))
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	m, err := model.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		text := []byte(fmt.Sprint("a", i%3))
		ex := model.Example{ID: fmt.Sprint(i), Spam: i%3 == 0, Body: model.Body{Message: &feature.Message{Head: text, Body: text}}}
		if _, err := m.Apply(&ex); err != nil {
			t.Fatal(err)
		}
	}
	image, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(image)
	a := line(40, "a")
	if !strings.HasPrefix(a, hex.EncodeToString(sum[:8])+" ") {
		t.Errorf("%s: want the hash %x of the model", a, sum[:8])
	}
	b := line(40, "b and c ")
	for k, what := range []string{"model", "predictions"} {
		if strings.Fields(a)[k] == strings.Fields(b)[k] {
			t.Errorf("other texts, the same hash of the %s", what)
		}
	}
	if again := line(40, "a"); again != a {
		t.Errorf("the same texts: %s, then %s", a, again)
	}
	if _, err := fingerprint(&Stream{Config: cfg, Events: 2}, json.NewDecoder(strings.NewReader("{}"))); err == nil {
		t.Error("two events were promised, and a stream of one is no error")
	}
}
