package model

import (
	"cmp"
	"fmt"
	"slices"

	"hamlet/algos/dedup"
	"hamlet/algos/internal/codec"
	"hamlet/algos/lastlabel"
	"hamlet/algos/promise"
)

// MostPromises is how many tenants have a table of judged ham of their own.
const MostPromises = 1024

// checkSampleWeight returns what is wrong with a weight, "" if nothing is.
func checkSampleWeight(w float64) string {
	if w == 0 || w >= promise.LeastWeight && w <= promise.MostWeight {
		return ""
	}
	return fmt.Sprintf("a sample weight of %v is neither 0 nor in %v to %v", w, promise.LeastWeight, promise.MostWeight)
}

// A judged is the ham that a model judged before it learnt it, and whose label somebody asked for.
//
// Invariant: tenants are ascending by key. The last of each is different, and at most counted.
type judged struct {
	counted uint64 // ham so far, whatever it weighs; only observe and read write it
	all     *promise.Table
	tenants []*tenantHam // at most MostPromises
}

// A tenantHam is the judged ham of one tenant.
type tenantHam struct {
	key   uint64 // hash of the tenant's name
	began uint64 // event with which the table began
	last  uint64 // judged.counted after its last ham
	table promise.Table
}

// tenantKey returns the hash of a tenant's name that judged has.
func tenantKey(name string) uint64 { return new(dedup.Window).Key(name) }

// find returns the place of a tenant, or that where it would be.
func (j *judged) find(key uint64) (place int, found bool) {
	return slices.BinarySearchFunc(j.tenants, key, func(t *tenantHam, key uint64) int { return cmp.Compare(t.key, key) })
}

// observe counts a ham of a tenant, which was judged with this log-odds and becomes the event.
func (j *judged) observe(tenant string, logOdds, weight float64, event uint64) {
	if j.all == nil {
		j.all = new(promise.Table)
	}
	j.counted++
	j.all.Observe(logOdds, weight)
	key := tenantKey(tenant)
	at, found := j.find(key)
	if !found {
		if len(j.tenants) == MostPromises {
			idle := slices.MinFunc(j.tenants, func(a, b *tenantHam) int { return cmp.Compare(a.last, b.last) })
			if j.counted-idle.last < promise.Forget {
				return
			}
			gone, _ := j.find(idle.key)
			j.tenants = slices.Delete(j.tenants, gone, gone+1)
			at, _ = j.find(key)
		}
		j.tenants = slices.Insert(j.tenants, at, &tenantHam{key: key, began: event})
	}
	own := j.tenants[at]
	own.last = j.counted
	own.table.Observe(logOdds, weight)
}

// samples reports whether ex is a ham that tables count, before anything is withdrawn: its label was
// asked for, and nobody has called its message ham before. An answer that was assumed is nobody's word.
func (m *Model) samples(ex *Example) bool {
	if ex.SampleWeight == 0 || ex.Spam || ex.Action == Unlearn {
		return false
	}
	identity := ex.Identity
	if ex.Action == Correct || ex.Action == Assume {
		identity = ex.Of
	}
	last := m.labels.Get(m.message(ex.Body.Tenant, identity))
	return last.State != lastlabel.Ham || last.Source == m.assumedSource()
}

// noPromise is the table of a tenant of whom no ham was counted. Nothing changes it.
var noPromise promise.Table

// Promise returns the table of a tenant's judged ham, from which the threshold of any budget is read: it
// is empty, "not yet" for every budget, where none was counted. It is m's own: callers only read it, and
// not while Apply runs. Any number of goroutines may.
//
// A ham counts if [Example.SampleWeight] says so: with the log-odds of the [Effect.Prediction] that was
// made before it was learnt, as the first label "ham" that anybody gave its message, and if the label counts for
// anything (a Muted source's does not). Mail, text and vectors count in one table, since they get one answer.
//
//   - A ham counts when its message becomes ham, and a text that comes again is the same message. If its label is
//     taken back or turned to spam, and it becomes ham again, it counts again.
//   - Every first label "ham" of a message that was chosen must say so. One that was volunteered first hides the
//     ham that was asked for later: lost ham that users rescue would be missing, and the promise broken.
//   - A ham is judged when its label comes. What the scorer answered days before is not counted.
//   - Taking the label back does not take the ham back: the table does not know which one it was. A
//     spam that was called ham at first remains as lost ham, and the promise catches less.
//   - A ham that was called spam at first counts with the log-odds that remain when that label is withdrawn.
//   - The tables halve in time: see [promise.Forget].
//
// At most MostPromises tenants have a table. A newcomer takes the place of the one whose last ham was
// counted longest ago, if promise.Forget ham have been counted since; otherwise it has none. A
// tenant that lost its place begins again at "not yet". [Model.Promises] says when each began.
func (m *Model) Promise(tenant string) *promise.Table {
	if at, found := m.judged.find(tenantKey(tenant)); found {
		return &m.judged.tenants[at].table
	}
	return &noPromise
}

// PromiseAll returns the table of all tenants' ham together, also of those without a table of their own.
// The rules are those of Promise. It is a table of the ham whose labels were asked for. It speaks of
// all mail only where all tenants have one least in least/probability.
func (m *Model) PromiseAll() *promise.Table {
	if m.judged.all == nil {
		return &noPromise
	}
	return m.judged.all
}

// A TenantPromise is the table of one tenant.
type TenantPromise struct {
	Key   uint64         // the first 8 bytes of a SHA-256 of the tenant's name: a model keeps no names
	Began uint64         // the event with which the table began
	Table *promise.Table // m's own: see Promise
}

// Promises returns the tables of tenants, ascending by key.
func (m *Model) Promises() (all []TenantPromise) {
	for _, t := range m.judged.tenants {
		all = append(all, TenantPromise{t.key, t.began, &t.table})
	}
	return all
}

// write appends the section, nothing if no ham was counted:
//
//	uint64 ham counted | table of all ham | for each tenant, ascending by key:
//	uint64 key | uint64 event with which its table began | uint64 ham counted at its last ham | table
//
// A table is a uint32 length and the bytes that package promise draws.
func (j *judged) write(w *codec.Writer) {
	if j.counted == 0 {
		return
	}
	w.Uint64(j.counted)
	w.Part32(j.all)
	for _, t := range j.tenants {
		w.Uint64(t.key, t.began, t.last)
		w.Part32(&t.table)
	}
}

// read reads what write wrote for a model that has learnt so many events, of so many in all, and checks it.
func (j *judged) read(r *codec.Reader, learnt, events uint64) {
	j.counted = r.Uint64()
	if j.counted == 0 || j.counted > learnt {
		r.Fail("%d ham were counted of %d events", j.counted, learnt)
	}
	table := func(t *promise.Table) {
		r.Unmarshal(r.Part32(), t)
		if r.Err() == nil && t.Ham() == 0 {
			r.Fail("a table without ham")
		}
	}
	j.all = new(promise.Table)
	table(j.all)
	lasts := map[uint64]bool{}
	before := uint64(0) // a key is not 0
	for r.Len() > 0 {
		if len(j.tenants) == MostPromises {
			r.Fail("tables of more than %d tenants", MostPromises)
			return
		}
		t := new(tenantHam)
		r.Uint64To(&t.key, &t.began, &t.last)
		if t.key <= before || t.began == 0 || t.began > events || t.last == 0 || t.last > j.counted || lasts[t.last] {
			r.Fail("tenant %x after %x began at event %d of %d, its last ham was %d of %d",
				t.key, before, t.began, events, t.last, j.counted)
		}
		lasts[t.last], before = true, t.key
		table(&t.table)
		j.tenants = append(j.tenants, t)
	}
}
