package learner

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/algotest/plant"
	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example/exampletest"
	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/servertest"
)

// poisoned returns texts and mails, of which three make this program panic: the parser at offset 20,
// and the model at 60 and 61. It returns the model of a replay, which goes back to the bytes before
// each event that makes it panic, and sets that aside.
func poisoned(t *testing.T) ([]stream.Record, *model.Model) {
	t.Helper()
	records, _ := texts(t, 120)
	exampletest.PlantParser(t, "poison")
	plant.Learning(t, "e60", "e61")
	records[20] = mail(t, "poison")
	records[40] = mail(t, "medicine")
	m, err := model.New(small)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range records {
		before, err := m.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		in := read(&records[i], false)
		if in.err == nil {
			_, in.err = m.Attempt(&in.Example)
		}
		if panicked := (*model.PanicError)(nil); errors.As(in.err, &panicked) {
			if m, err = model.Restore(before); err == nil {
				err = m.SetAside(panicked.Key)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, in.err = m.Attempt(&in.Example); !errors.Is(in.err, model.ErrSetAside) {
				t.Fatalf("at %d: %v", i, in.err)
			}
		}
		if in.err != nil {
			refused++
		}
	}
	if refused != 3 || m.Events() != 117 {
		t.Fatalf("the replay has refused %d records and learnt %d", refused, m.Events())
	}
	return records, m
}

func mail(t *testing.T, word string) stream.Record {
	t.Helper()
	e := stream.Event{ID: word, Tenant: "t", Source: "s", Label: stream.Spam,
		Body: stream.Body{Kind: stream.Mail, Mail: fmt.Appendf(nil, "Subject: hello\r\n\r\n%s\r\n", word)}}
	value, headers, err := e.EncodeRecord()
	if err != nil {
		t.Fatal(err)
	}
	return stream.Record{Value: value, Headers: headers}
}

// wantDefects wants dead letters of these offsets, each for a defect of hamlet. A learner that loads
// the model again writes again what it wrote since the last save. After the last load each is there
// once.
func (r *rig) wantDefects(offsets ...int64) {
	r.t.Helper()
	var got []int64
	for _, rec := range all(r.t, r.dead) {
		d, err := stream.ParseDeadLetter(rec.Headers)
		if err != nil || !strings.HasPrefix(d.Reason, "a defect of hamlet") {
			r.t.Errorf("%q, %v", d.Reason, err)
		}
		if n := slices.Index(got, d.Offset); n >= 0 { // learnt again from here
			got = got[:n]
		}
		got = append(got, d.Offset)
	}
	if !slices.Equal(got, offsets) {
		r.t.Errorf("dead letters of %v, want %v", got, offsets)
	}
}

// What makes this program panic is a dead letter. The learner goes on, its model is that
// of a replay, and the decision is in the checkpoint: a restart does not panic again.
func TestPoisonIsADeadLetter(t *testing.T) {
	records, want := poisoned(t)
	for name, batch := range map[string]int{"one by one": 1, "read ahead": 128} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.produce(records...)
			var said servertest.Buffer
			cfg := r.config()
			cfg.Log, cfg.Follow.MaxBatch, cfg.SaveEvery = slog.New(slog.NewTextHandler(&said, nil)), batch, 1
			r.learn(cfg, 120)
			r.wantDefects(20, 60, 61)
			if n := strings.Count(said.String(), "the model panicked"); n != 2 {
				t.Errorf("the model panicked %d times, want twice:\n%s", n, said.String())
			}
			c := r.head()
			if c.ModelSHA256 != sum(t, want) || c.Position.Next != 120 {
				t.Errorf("the head is at %d with %d events, or another model than a replay's", c.Position.Next, c.Events)
			}
			if string(c.Config) != string(want.Config().JSON()) || len(want.Config().SetAside) != 2 {
				t.Errorf("saved with %s", c.Config)
			}

			r.produce(records[60], textRecord(500, true, "winner"))
			said.Reset()
			r.learn(cfg, 122)
			r.wantDefects(20, 60, 61, 120)
			if strings.Contains(said.String(), "panicked") {
				t.Errorf("after a restart it says\n%s", said.String())
			}
			if c := r.head(); c.Events != want.Events()+1 {
				t.Errorf("%d events, want one more than %d", c.Events, want.Events())
			}
		})
	}
}

// A program that has mended the defect follows the decision of the one that panicked.
func TestAMendedProgramFollows(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 80)
	a := r.hand("a")
	a.learn(0, records[:50]...)
	a.save()
	mended := r.hand("mended")
	mended.learn(50, records[50:]...)
	t.Run("panics", func(t *testing.T) {
		plant.Learning(t, "e60")
		if err := handle(t, a.w, records[50:], 50); !errors.Is(err, follow.ErrReload) {
			t.Fatal(err)
		}
		a.open()
		a.learn(50, records[50:]...)
		a.save()
	})
	mended.look(1)
	mended.reloads("another learner")
	mended.open()
	if sum(t, mended.w.model) != r.head().ModelSHA256 || len(mended.w.model.Config().SetAside) != 1 {
		t.Errorf("it has set aside %v, or another model", mended.w.model.Config().SetAside)
	}
	mended.learn(80, records[60]) // a copy
	if got := all(t, r.dead); len(got) != 1 || mended.w.model.Events() != 79 {
		t.Errorf("%d letters, %d events", len(got), mended.w.model.Events())
	}
	mended.look(lapsedAfter)
	mended.idle(active)
	r.wantDefects(60, 80)
}

// A defect that many events meet ends the learner.
func TestTooMuchPoison(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 1)
	plant.Learning(t, "e1")
	records = append(records, textRecord(1, true, "winner"))
	a := r.hand("a")
	for i := range model.MostSetAside {
		a.l.aside = append(a.l.aside, fmt.Sprintf("%016x", i+1))
	}
	err := handle(t, a.w, records, 0)
	if err == nil {
		t.Fatal("nothing happened")
	}
	if _, err := a.l.open(t.Context()); err == nil || !strings.Contains(err.Error(), "must be mended first") {
		t.Errorf("got %v", err)
	}
}
