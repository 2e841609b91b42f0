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

	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/servertest"
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
	kept, err := r.store.Versions(t.Context())
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

// The version that the log still has was replaced by another model: that is said.
func TestAStepBackBehindAReplacement(t *testing.T) {
	r, records := threeVersions(t)
	history, err := r.store.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(history, func(v state.VersionInfo) bool { return v.Position.Next <= 700 })
	if err := r.store.MarkReplaced(t.Context(), history[i].Version); err != nil {
		t.Fatal(err)
	}
	r.events.Replace("", records[:700]...)
	var said servertest.Buffer
	cfg := r.config()
	cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
	r.learn(cfg, 700)
	if want := fmt.Sprintf("is learnt again\" model=default version=%d", history[i].Version); !strings.Contains(said.String(), want) {
		t.Errorf("the log does not say %q:\n%s", want, said.String())
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
	if s := b.w.status; s.SavedEnd != 700 || b.w.backTo != 0 || sum(t, b.w.model) != sum(t, a.w.model) {
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
	if c := r.head(); c.ModelSHA256 != sum(t, want) || c.Position.Next != 700 {
		t.Errorf("the head is at %d, or another model", c.Position.Next)
	}
}
