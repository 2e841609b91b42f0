package learner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hamlet/cmd/internal/follow"
	"hamlet/state"
	"hamlet/stream"
)

// threeVersions has learnt 900 texts and saved after 300, 600 and 900. All three versions are kept.
func threeVersions(t *testing.T) (r *rig, records []stream.Record) {
	t.Helper()
	r = newRig(t)
	records, _ = texts(t, 900)
	r.produce(records...)
	a := r.hand("a")
	for from := 0; from < 900; from += 300 {
		a.learn(int64(from), records[from:from+300]...)
		a.save()
	}
	a.l.release()
	kept, err := r.store.History(t.Context())
	if err != nil || len(kept) != 3 || kept[1].Position.Next != 600 {
		t.Fatalf("kept %+v, %v", kept, err)
	}
	return r, records
}

// others returns n records that texts does not.
func others(n int) []stream.Record {
	records := make([]stream.Record, n)
	for i := range records {
		records[i] = textRecord(1000+i, i%2 == 0, "other mail "+strconv.Itoa(i))
	}
	return records
}

// stepBack has a worker step back, as the follower would, and returns its error.
func (h *hand) stepBack(r *rig) error {
	h.t.Helper()
	bounds, err := r.events.Bounds(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return h.w.StepBack(h.t.Context(), bounds, follow.ErrBehind, func(ctx context.Context, offset int64) (stream.Record, bool, error) {
		records, _, err := r.events.Read(ctx, offset, stream.Limit{Records: 1}, 0)
		if errors.Is(err, stream.ErrBeyond) || errors.Is(err, stream.ErrGone) || err == nil && (len(records) == 0 || records[0].Offset != offset) {
			return stream.Record{}, false, nil
		}
		if err != nil {
			return stream.Record{}, false, err
		}
		return records[0], true, nil
	})
}

// A log that has lost its end, as after a power failure: the learner goes on from the newest version
// that the log still has, says what is lost, and saves under an epoch of its own.
func TestALogThatLostItsEnd(t *testing.T) {
	t.Parallel()
	r, records := threeVersions(t)
	_, want := texts(t, 700)
	before := r.head()
	r.events.Cut(700)
	var said safeBuffer
	cfg := r.config()
	cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
	p := r.run(cfg)
	p.until(t, "saved", func(s Status) bool { return s.Active && s.SavedEnd == 700 })
	if s := p.l.Status(); s.LostRecords != 200 || s.Next != 700 || s.Events != 700 || p.l.Ready() != nil {
		t.Errorf("%+v, %v", s, p.l.Ready())
	}
	for _, words := range []string{"the log has lost records", "log_ends_at=700", "saved_next_offset=900", "lost_records=200", "labels_lost_at_most=300", "given_since="} {
		if strings.Count(said.String(), words) != 1 {
			t.Errorf("the log does not say %q once:\n%s", words, said.String())
		}
	}
	if c := r.head(); c.ModelSHA256() != sum(t, want) || c.Epoch <= before.Epoch || c.Writer == before.Writer {
		t.Errorf("saved %d events under epoch %d by %s, or another model; before it was epoch %d", c.Events, c.Epoch, c.Writer, before.Epoch)
	}
	r.produce(others(50)...)
	p.until(t, "learnt on", func(s Status) bool { return s.SavedEnd == 750 })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	said.reset()
	r.learn(cfg, 750) // the next start has nothing to step back from
	if strings.Contains(said.String(), "lost") {
		t.Errorf("the next start says\n%s", said.String())
	}
	if r.head().Events != uint64(len(records[:700])+50) {
		t.Errorf("%d events", r.head().Events)
	}
}

// The version that the log still has was replaced by another model: that is said.
func TestAStepBackBehindAReplacement(t *testing.T) {
	r, records := threeVersions(t)
	history, err := r.store.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(history, func(v state.Version) bool { return v.Position.Next <= 700 })
	if err := r.store.MarkReplaced(t.Context(), history[i].Number); err != nil {
		t.Fatal(err)
	}
	r.events.Replace("", records[:700]...)
	var said safeBuffer
	cfg := r.config()
	cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
	r.learn(cfg, 700)
	if want := fmt.Sprintf("see hamlet model replace\" model=default version=%d", history[i].Number); !strings.Contains(said.String(), want) {
		t.Errorf("the log does not say %q:\n%s", want, said.String())
	}
}

// A log that was restored from an older copy and has grown since with other records.
func TestALogThatWasRestoredAndHasGrown(t *testing.T) {
	r, records := threeVersions(t)
	log := slices.Concat(records[:500], others(600))
	r.events.Replace("", log...)
	observed := map[int64]bool{}
	cfg := r.config()
	cfg.Observe = func(a Applied) { observed[a.Offset] = true }
	var said safeBuffer
	cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
	r.learn(cfg, 1100)
	if want := "log_ends_at=1100 saved_next_offset=900 lost_records=600 version="; !strings.Contains(said.String(), want) {
		t.Errorf("the log does not say %q:\n%s", want, said.String())
	}
	_, want := texts(t, 500)
	learn(t, want, others(600))
	if c := r.head(); c.ModelSHA256() != sum(t, want) || c.Position.Next != 1100 {
		t.Errorf("the head is at %d, or another model", c.Position.Next)
	}
	if len(observed) != 800 || observed[299] || !observed[300] {
		t.Errorf("%d records were observed, want 300 to 1099", len(observed))
	}
}

// What another log has at offsets that a learner has read already is handed on.
func TestAfterAStepBackRecordsAreNew(t *testing.T) {
	r := newRig(t)
	old := mails(t, 0, 30)
	r.produce(old...)
	var labels heard
	observed := map[string]bool{}
	cfg := r.config()
	cfg.Answered, cfg.Observe = &labels, func(a Applied) { observed[a.Event.ID] = true }
	cfg.Follow.MaxBatch = 10
	p := r.run(cfg)
	p.until(t, "saved", func(s Status) bool { return s.SavedEnd == 30 })
	kept, err := r.store.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	from := kept[len(kept)-1].Position.Next // the first of the day
	if from == 30 {
		t.Fatal("the first save was of all")
	}
	r.events.Replace("", slices.Concat(old[:from], mails(t, 100, 40))...)
	p.until(t, "learnt the other log", func(s Status) bool { return s.SavedEnd == from+40 })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if n := labels.Load(); n < 70 || len(observed) != 70 {
		t.Errorf("%d labels and %d records were handed on, want 70", n, len(observed))
	}
}

// Two learners whose log loses its end under them: one steps back and saves, the other one comes to
// the same model.
func TestALogLosesItsEndUnderLearners(t *testing.T) {
	t.Parallel()
	r, _ := threeVersions(t)
	_, want := texts(t, 700)
	a, b := r.run(r.config()), r.run(r.config())
	for _, p := range []*running{a, b} {
		p.until(t, "follows", func(s Status) bool { return s.Next == 900 })
	}
	r.events.Cut(700)
	follows := func(s Status) bool { return s.Next == 700 && s.SavedEnd == 700 && s.SHA256 == sum(t, want) }
	for _, p := range []*running{a, b} {
		p.until(t, "follows the shorter log", follows)
	}
	if a, b := a.l.Status().Active, b.l.Status().Active; a == b {
		t.Errorf("active: %v and %v", a, b)
	}
	r.produce(others(10)...)
	for _, p := range []*running{a, b} {
		p.until(t, "goes on", func(s Status) bool { return s.SavedEnd == 710 })
	}
}

// The version after the one that fits cannot be read: the one before is taken.
func TestAStepBackPassesOverADamagedVersion(t *testing.T) {
	r, _ := threeVersions(t)
	r.events.Cut(700)
	names, err := r.client().HGet(t.Context(), key("version:2"), "chunks").Result()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(names) {
		r.del("chunk:" + name)
	}
	b := r.hand("b")
	if err := b.stepBack(r); err != nil {
		t.Fatal(err)
	}
	if next := b.w.position.Next; next != 300 {
		t.Errorf("goes on from %d, want 300", next)
	}
}

// A learner that stepped back and is a standby saves nothing. If the one that is active saves, it
// loads that.
func TestAStandbyStepsBackToo(t *testing.T) {
	r, records := threeVersions(t)
	r.events.Cut(700)
	a, b := r.hand("a"), r.hand("b")
	for _, h := range []*hand{a, b} {
		if err := h.stepBack(r); err != nil {
			t.Fatal(err)
		}
		if next := h.w.position.Next; next != 600 {
			t.Fatalf("goes on from %d, want 600", next)
		}
	}
	a.learn(600, records[600:700]...)
	b.learn(600, records[600:700]...)
	if a.w.phase != active || b.w.phase != standby {
		t.Fatalf("%v and %v", a.w.phase, b.w.phase)
	}
	a.save()
	b.look(1)
	b.reloads("another learner")
	b.open()
	if s := b.w.status; s.SavedEnd != 700 || b.w.back != nil || sum(t, b.w.model) != sum(t, a.w.model) {
		t.Errorf("%+v", s)
	}
}

// A learner that has not noticed that the log lost its end saves once more. One that stepped back
// does not take that for its own, though it goes on from a version of the same learner.
func TestAStepBackFollowsNobody(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 30)
	r.produce(records...)
	a := r.hand("a")
	for from := 0; from < 30; from += 10 {
		a.learn(int64(from), records[from:from+10]...)
		a.save()
	}
	r.events.Cut(25)
	b := r.hand("b")
	if err := b.stepBack(r); err != nil {
		t.Fatal(err)
	}
	a.learn(30, letter(30))
	a.save()
	b.learn(20, records[20:25]...)
	b.look(1)
	b.reloads("another learner")
}

// A learner that stepped back dies before it saves. The next one goes on from the same version.
func TestDeathAfterAStepBack(t *testing.T) {
	r, records := threeVersions(t)
	r.events.Cut(700)
	a := r.hand("a")
	if err := a.stepBack(r); err != nil {
		t.Fatal(err)
	}
	a.idle(active)
	b := r.hand("b") // loads what a has made the head
	if next := b.w.position.Next; next != 600 {
		t.Fatalf("goes on from %d, want 600", next)
	}
	b.look(lapsedAfter)
	b.learn(600, records[600:700]...)
	b.save()
	_, want := texts(t, 700)
	if c := r.head(); c.ModelSHA256() != sum(t, want) || c.Position.Next != 700 {
		t.Errorf("the head is at %d, or another model", c.Position.Next)
	}
}

// Where no kept version follows from the log, the learner ends and says what to do. It changes
// nothing, and the next start says the same.
func TestAReplacedLogIsRefused(t *testing.T) {
	r, records := threeVersions(t)
	before := r.head()
	unmoved := func(err error, words ...string) {
		t.Helper()
		for _, want := range append(words, "no kept version", "restore the log or the model from a backup of one time", "another model") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		if after := r.head(); after.ModelSHA256() != before.ModelSHA256() || after.Position != before.Position || after.Epoch != before.Epoch {
			t.Errorf("the head moved from %v to %v", before.Position, after.Position)
		}
	}
	for _, n := range []int{0, 500} {
		r.events.Replace("", others(n)...)
		unmoved(r.hand("b").stepBack(r))
	}
	r.events.Replace("", others(1000)...)
	for range 2 {
		err := r.try(r.config(), 1000)
		if unmoved(err, r.topic, "900"); !errors.Is(err, follow.ErrReplaced) {
			t.Errorf("got %v, want ErrReplaced", err)
		}
	}
	// A log with the same records is the same log.
	r.events.Replace("", slices.Concat(records, others(100))...)
	r.learn(r.config(), 1000)
	if got := r.head(); got.Position.Next != 1000 || got.Events != 1000 {
		t.Errorf("%d events at offset %d, want 1000 at 1000", got.Events, got.Position.Next)
	}
}

// The same for a learner that is running.
func TestALogReplacedUnderALearner(t *testing.T) {
	r := newRig(t)
	records, m := texts(t, 300)
	r.produce(records...)
	cfg := r.config()
	p := r.run(cfg)
	p.until(t, "saved", func(s Status) bool { return s.SavedEnd == 300 })
	r.events.Replace("", others(600)...)
	err := p.await(func(Status) bool { return false }) // it ends by itself
	if !errors.Is(err, follow.ErrReplaced) {
		t.Errorf("got %v, want ErrReplaced", err)
	}
	if got := r.head(); got.ModelSHA256() != sum(t, m) || got.Position.Next != 300 {
		t.Errorf("%d events at offset %d were saved, want the 300 of the first log", got.Events, got.Position.Next)
	}
	if l, err := r.store.Lease(t.Context()); err != nil || !l.Free() {
		t.Errorf("the lease is %+v, %v; want it free", l, err)
	}
}

// A learner goes on if retention deleted only records that its model has learnt. Else it ends.
func TestRetentionUpToThePosition(t *testing.T) {
	r := newRig(t)
	records, m := texts(t, 300)
	r.produce(records[:150]...)
	r.learn(r.config(), 150)
	r.events.Retain(150)
	r.produce(records[150:]...)
	r.learn(r.config(), 300)
	if c := r.head(); c.ModelSHA256() != sum(t, m) || c.Position.Next != 300 {
		t.Errorf("at offset %d: the model differs", c.Position.Next)
	}
	r.produce(others(20)...)
	r.events.Retain(310)
	if err := r.try(r.config(), 320); !errors.Is(err, follow.ErrGap) || !strings.Contains(err.Error(), "--accept-gap") {
		t.Errorf("got %v, want ErrGap", err)
	}
	if _, err := r.store.Heading(t.Context(), state.Head); err != nil || r.head().Position.Next != 300 {
		t.Errorf("saved at %d, %v", r.head().Position.Next, err)
	}
}
