package simulate

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/operate/backup"
	"hamlet/cmd/internal/operate/sources"
	"hamlet/cmd/internal/operate/withdraw"
	"hamlet/cmd/internal/service/example"
	"hamlet/state"
	"hamlet/stream"
)

// This file has what must hold of what operators did:
//
//   - An answer comes from the first model, or from one that was promoted. While a version is pinned,
//     no answer comes from a version that was saved later.
//   - At rest all answers come from the version that the store says: of the promoted model, and the
//     pinned one if one is pinned.
//   - The promotion is the last one that the store took.
//   - The second model is the replay of the log by its configuration.
//   - A second model that nobody promoted raises no alert. Once all its learners know that it is promoted, the
//     alerts of what is appended then are out.
//   - Of what was withdrawn, nothing can be withdrawn again, and each withdrawal has its receipt.
//   - A source has the role that was said last.
//   - After a restore the store has what the backup has: the newest version and the one that is served.

// A pin is a version that is pinned.
type pin struct{ since time.Time }

// pins notes that a version is pinned from now on, or none is.
func (w *World) pins(model string, pinned bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.pinned, model); pinned {
		w.pinned[model] = pin{time.Now()}
	}
}

// promoting notes that a promotion is about to be taken.
func (w *World) promoting(to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mayAnswer[to] = true
	w.promotion = to
}

// answered checks where an answer comes from.
func (w *World) answered(m *stream.ModelRef) {
	w.mu.Lock()
	first, known := w.first[m.SHA256]
	may := w.mayAnswer[m.Name]
	pin, pinned := w.pinned[m.Name]
	w.mu.Unlock()
	switch {
	case !known:
		w.violate("an answer comes from %s, which nobody has saved", m.SHA256)
	case !may:
		w.violate("an answer comes from the model %s, which nobody has promoted", m.Name)
	case pinned && first.After(pin.since):
		w.violate("an answer comes from %s, which was saved after a version of %s was pinned", m.SHA256, m.Name)
	}
}

// heardOf notes what a learner of the second model has read: whether it is promoted. Of events that were in the
// log when the last one read so, an alert may be missing: a learner may have had them before it knew.
func (w *World) heardOf(name string, promoted bool) {
	bounds, err := w.events.Bounds(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !promoted:
		delete(w.hears, name)
		w.heardFrom = 0
	case w.hears[name]:
	case err == nil:
		w.hears[name] = true
		if len(w.hears) < len(shadows) {
			return
		}
		for _, name := range shadows {
			if p := w.processes[name]; p != nil && p.learner != nil {
				s := p.learner.Status()
				w.heardFrom = max(w.heardFrom, s.Events+uint64(max(0, bounds.End-s.Next)))
			}
		}
	}
}

// checkHeard compares the alerts of a promoted second model with those of one that is no shadow.
func (w *World) checkHeard(want *calmed) {
	if w.heardFrom == 0 || !w.oneLog() {
		return
	}
	for id, p := range want.alerts {
		if p.alert.Event <= w.heardFrom {
			continue
		}
		if _, out := w.alerts[id]; !out {
			w.violate("the alert %s (%s %s) of the second model, which is promoted, is not out", id, p.alert.State, p.alert.Kind)
		}
		w.did(Heard)
	}
}

// unsettledCandidate says what is still to come of the second model; "": nothing. w.mu is held.
func (w *World) unsettledCandidate(end int64) string {
	if !w.shadowed {
		return ""
	}
	active := 0
	for _, name := range shadows {
		p := w.processes[name]
		if p == nil || p.learner == nil {
			return name + " does not run"
		}
		s := p.learner.Status()
		switch {
		case !s.Loaded || s.Next != end:
			return fmt.Sprintf("%s is at %d of %d", name, s.Next, end)
		case s.Active && (s.SavedEnd != end || s.PendingAlerts > 0):
			return fmt.Sprintf("%s has saved up to %d of %d, and has %d alerts to publish",
				name, s.SavedEnd, end, s.PendingAlerts)
		case s.Active:
			active++
		}
	}
	if active != 1 {
		return fmt.Sprintf("%d learners of the second model are active", active)
	}
	return ""
}

// atRest checks what operators see once all is quiet.
func (w *World) atRest() {
	w.checkAnswers("")
	o := operator{w.newNode("operator-at-rest")}
	if w.plan.has(Stand) {
		w.checkRoles(o)
	}
	if w.oneLog() && !w.plan.has(Clock) {
		w.checkWithdrawals(o)
	}
	if !w.plan.has(Pin) && !w.plan.has(Rollback) {
		return
	}
	w.mu.Lock()
	names := []string{stream.DefaultName}
	if w.promotion == candidate {
		names[0] = candidate
	}
	w.mu.Unlock()
	for _, name := range names {
		s := o.store(name)
		versions, err := s.Versions(w.ctx)
		if err == nil {
			err = s.Pin(w.ctx, versions[len(versions)-1].Version)
		}
		if err == nil {
			w.checkAnswers("pinned ")
			err = s.Unpin(w.ctx)
		}
		if err != nil {
			w.violate("a version cannot be pinned: %v", err)
		}
	}
	w.checkAnswers("unpinned ")
}

// checkAnswers waits until all answers come from the version that the store says. A scorer whose model is
// further in the log than the store's goes on with it: where the log has lost its end, nothing is checked. One
// that has misread a checkpoint reads it again after half a minute.
func (w *World) checkAnswers(when string) {
	if !w.oneLog() {
		return
	}
	w.mu.Lock()
	want := w.promotion
	w.mu.Unlock()
	o := operator{w.newNode("operator-who-looks")}
	p, err := o.store(stream.DefaultName).Promotion(w.ctx)
	switch {
	case errors.Is(err, state.ErrNone):
		p.Model = stream.DefaultName
	case err != nil:
		w.violate("what is promoted cannot be read: %v", err)
		return
	}
	if want != "" && p.Model != want {
		w.violate("the store says that %s answers, and %s was promoted last", p.Model, want)
	}
	c, _, err := o.store(p.Model).Load(w.ctx, state.Served)
	if err != nil {
		w.violate("what is served of %s cannot be read: %v", p.Model, err)
		return
	}
	served, got := hex.EncodeToString(c.ModelSHA256[:]), ""
	for deadline, alike := time.Now().Add(time.Minute), 0; alike < 8; _ = sleep(w.ctx, 100*time.Millisecond) {
		if verdicts, err := w.question(2 * time.Second); err == nil && len(verdicts) == 1 {
			if m := verdicts[0].Model; m.Name == p.Model && m.SHA256 == served {
				alike++
				continue
			} else {
				got = m.Name + " " + m.SHA256
			}
		}
		if alike = 0; time.Now().After(deadline) {
			w.violate("answers come from %s, and the %sversion is %s %s", got, when, p.Model, served)
			return
		}
	}
}

// checkRoles looks for each source's last role among what `hamlet sources` lists.
func (w *World) checkRoles(o operator) {
	records, err := all(&w.events)
	if err != nil {
		w.violate("%v", err)
		return
	}
	said := map[string]string{}
	for i := range records {
		if in, err := example.Read(records[i].Headers, records[i].Value); err == nil && in.Standing != nil {
			said[in.Standing.Source] = in.Standing.Role.String()
		}
	}
	table, err := sources.Read(w.ctx, o.store(stream.DefaultName), stream.DefaultName)
	if err != nil {
		w.violate("the sources cannot be listed: %v", err)
		return
	}
	for _, s := range table.Sources {
		if role := said[s.Source]; role != "" && role != s.Role {
			w.violate("the source %s is %s, and is listed as %s", s.Source, role, s.Role)
		}
		delete(said, s.Source)
	}
	for source, role := range said {
		if role != "ordinary" {
			w.violate("the source %s, which is %s, is not listed", source, role)
		}
	}
}

// checkWithdrawals plans each withdrawal again: nothing is left of it.
func (w *World) checkWithdrawals(o operator) {
	for _, wd := range w.withdrawals {
		until, err := withdraw.ParseBound("--until", wd.until.UTC().Format(time.RFC3339Nano), stream.DefaultName, time.Now())
		var plan *withdraw.Plan
		if err == nil {
			plan, err = withdraw.Make(w.ctx, o.servers(), asked(wd.since, until), unseen)
		}
		switch {
		case err != nil:
			w.violate("a withdrawal cannot be planned again: %v", err)
		case plan.Withdrawable > 0:
			w.violate("%d labels were withdrawn, and can be withdrawn", plan.Withdrawable)
		}
	}
}

// checkReceipts looks for the receipt, or the dead letter, of each withdrawal in the log.
func (w *World) checkReceipts(records []stream.Record) error {
	out := map[string]bool{}
	receipts, err := all(&w.receipts)
	if err != nil {
		return err
	}
	for _, r := range receipts {
		var receipt stream.Receipt
		if err := json.Unmarshal(r.Value, &receipt); err != nil {
			return err
		}
		out[receipt.ID] = true
	}
	letters, err := all(&w.letters)
	if err != nil {
		return err
	}
	for i := range letters {
		out[identity(&letters[i])] = true
	}
	for i := range records {
		if id := identity(&records[i]); strings.HasPrefix(id, "withdraw-") && !out[id] {
			w.violate("the withdrawal %s has neither receipt nor dead letter", id)
		}
	}
	return nil
}

// checkRestored compares the store with the backup that was restored, unless the store was lost
// meanwhile. Where the backup takes the place of what the store has, the store's pin stays, and that
// of the backup is not restored.
func (w *World) checkRestored(x *backup.Index, newLog, replaced bool, losses int) {
	var wrong []string
	for i := range x.Models {
		m, p := &x.Models[i], &x.Models[i].Partitions[0]
		served, next := &p.Versions[len(p.Versions)-1], p.Versions[len(p.Versions)-1].Position
		head := served.SHA256
		for k := range p.Versions {
			if v := &p.Versions[k]; v.Version == p.Pinned && !newLog && !replaced {
				served = v
			}
		}
		if newLog {
			next = 0
		}
		w.vault.mu.RLock()
		store, err := w.vault.dir.Store(m.Name)
		var c, answers *state.Checkpoint
		var pinned int64
		if err == nil {
			pinned, err = store.Pinned(w.ctx)
		}
		if err == nil {
			c, _, err = store.Load(w.ctx, state.Head)
		}
		if err == nil {
			answers, _, err = store.Load(w.ctx, state.Served)
		}
		w.vault.mu.RUnlock()
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%s cannot be read: %v", m.Name, err))
		case hex.EncodeToString(c.ModelSHA256[:]) != head, c.Position.Next != next:
			wrong = append(wrong, fmt.Sprintf("%s is up to %d, and was up to %d", m.Name, c.Position.Next, next))
		case hex.EncodeToString(answers.ModelSHA256[:]) != served.SHA256 && !(replaced && pinned != 0):
			wrong = append(wrong, fmt.Sprintf("of %s another version is served than in the backup", m.Name))
		}
	}
	w.mu.Lock()
	meanwhile := w.losses != losses
	w.mu.Unlock()
	for _, text := range wrong {
		if !meanwhile {
			w.violate("after a restore %s", text)
		}
	}
}

// checkCandidate compares the second model with what comes of the same log where nothing breaks.
func (w *World) checkCandidate(records []stream.Record, calm *calmed, dir string) error {
	for _, a := range w.alerts {
		if a.alert.Model != "" && !w.mayAnswer[a.alert.Model] {
			w.violate("the model %s raises an alert, and nobody has promoted it", a.alert.Model)
		}
	}
	if !w.shadowed {
		return nil
	}
	store, err := w.vault.dir.Store(candidate)
	if err != nil {
		return err
	}
	c, version, err := store.Load(context.Background(), state.Head)
	if err != nil {
		return err
	}
	want := calm
	if _, err := os.Stat(filepath.Join(w.base.store, candidate)); err == nil || !w.fromVersion || w.anew {
		if want, err = w.alone(records, dir, candidate, (*World).runShadow); err != nil {
			return err
		}
		if err := w.compare("prediction of the second model", &want.others, &w.others); err != nil {
			return err
		}
		w.checkHeard(want)
	}
	if c.ModelSHA256 != want.sum || c.Position.Next != int64(len(records)) {
		w.violate("version %d of the second model, up to %d of %d, is not the replay of the log",
			version, c.Position.Next, len(records))
	}
	return nil
}

// has reports whether the plan has a kind of incident.
func (p *Plan) has(kind Kind) bool {
	return slices.ContainsFunc(p.Incidents, func(i Incident) bool { return i.Kind == kind })
}
