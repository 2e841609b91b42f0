package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/model"
)

// What is shown of judged ham is what the tables say, in words and in JSON.
func TestJudgedHam(t *testing.T) {
	m, err := model.New(model.Config{TableBits: 8, Alarms: model.Alarms{Off: true}})
	if err != nil {
		t.Fatal(err)
	}
	if all, tenants := judgedHam(m, 5); all != nil || tenants != 0 {
		t.Errorf("a model without ham shows %+v of %d tenants", all, tenants)
	}
	for i := range 900 {
		text := fmt.Sprintf("lunch %d at %d", i%7, i)
		tenant := []string{"large", "large", "small"}[i%3]
		ex := model.Example{ID: fmt.Sprint(i), Source: "s", SampleWeight: 1, Body: model.Body{Tenant: tenant,
			Message: &feature.Message{Body: []byte(text), BodyBytes: len(text)}}}
		if _, err := m.Apply(&ex); err != nil {
			t.Fatal(err)
		}
	}
	all, tenants := judgedHam(m, 1)
	if len(all) != 2 || tenants != 2 || all[0].Ham != 900 || all[1].Ham != 600 || all[1].Began != 1 || len(all[1].Tenant) != 16 {
		t.Fatalf("%+v of %d tenants", all, tenants)
	}
	bound := m.PromiseAll().Threshold(0.01)
	if got := all[0].Promises[3]; !bound.Promised() || got.LogOdds == nil || *got.LogOdds != bound.LogOdds {
		t.Errorf("at 1 %% %+v, want %+v", got, bound)
	}
	if got := all[0].Promises[0]; got.P != nil || got.Missing < 1000 {
		t.Errorf("at .1 %% %+v, want not yet", got)
	}
	for _, want := range []string{"all: 900; 0.1 %: not yet, ", "1 %: p ≥ 0."} {
		if text := all[0].text(); !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if text := all[1].text(); !strings.HasPrefix(text, "tenant "+all[1].Tenant+", since event 1: 600; ") {
		t.Error(text)
	}
	if _, err := json.Marshal(all); err != nil {
		t.Error(err)
	}
}
