package learner

import (
	"errors"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example"
	"hamlet/stream"
)

// A model without a source is a function of its log too. A learner that leaves out fewer
// sources goes on with it; one that leaves out another is refused.
func TestAModelWithoutASource(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 300)
	for i := range records {
		if i%3 == 0 {
			e, err := stream.DecodeRecord(records[i].Headers, records[i].Value)
			if err != nil {
				t.Fatal(err)
			}
			e.Source = "liar"
			if records[i].Value, records[i].Headers, err = e.EncodeRecord(); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.produce(records[:200]...)
	counts := map[Outcome]int{}
	cfg := r.config()
	cfg.Model.WithoutSources = []string{"liar"}
	cfg.Observe = func(a Applied) { counts[a.Outcome]++ }
	r.learn(cfg, 200)
	if counts[Learned] != 133 || counts[LeftOut] != 67 {
		t.Errorf("counted %v", counts)
	}

	other := cfg
	other.Model.WithoutSources = []string{"liar", "desk"}
	for _, adopt := range []bool{false, true} {
		other.AdoptConfig = adopt
		err := r.try(other, 201)
		if made := (*ConfigError)(nil); errors.As(err, &made) {
			err = made.Err
		}
		if err == nil || !strings.Contains(err.Error(), `what source "desk" has taught would stay`) {
			t.Errorf("one more source (adopt: %v): %v", adopt, err)
		}
	}
	back := r.config()
	back.Model.WithoutSources = []string{}
	r.produce(records[200:]...)
	r.learn(back, 300)
	want, err := model.New(cfg.Model)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		e, err := stream.DecodeRecord(records[i].Headers, records[i].Value)
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
	if r.head().ModelSHA256 != sum(t, want) {
		t.Error("the model is not that of its log")
	}

	back.AdoptConfig = true
	r.produce(textRecord(300, true, "winner"))
	r.learn(back, 301)
	if c := r.head(); strings.Contains(string(c.Config), "without_sources") {
		t.Errorf("the source was not taken back: %s", c.Config)
	}
}
