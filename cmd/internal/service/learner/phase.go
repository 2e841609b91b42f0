package learner

import "fmt"

// A phase is what a learner is at the moment. Every learner of a model follows the log and
// learns it. One is active: it publishes and saves. Who, says the lease in the store.
//
//	phase    what holds                                      what it publishes
//	────────┼───────────────────────────────────────────────┼─────────────────────────────────────────
//	loading  no model                                        nothing
//	standby  a model at p; all since the last save is kept   nothing
//	taking   the lease; the head not yet compared again      nothing
//	active   the lease                                       what was kept, then what comes; it saves
//	leaving  asked to stop; bounded by Drain                 what is pending, then the last save
//
//	event                    │ loading │ standby               │ taking            │ active              │ leaving
//	─────────────────────────┼─────────┼───────────────────────┼───────────────────┼─────────────────────┼────────────
//	model loaded             │ standby │                       │                   │                     │
//	record                   │         │ learn, keep           │                   │ learn, publish      │
//	lapsed, and may acquire  │         │ Acquire → taking      │                   │                     │
//	head is as judged        │         │                       │ active            │                     │
//	save, mine, at most p    │         │ forget what it covers │ the same          │                     │
//	save, mine, beyond p     │         │ wait; 10 s → loading  │ Release → standby │                     │
//	save, not mine           │         │ → loading             │ Release → loading │ see stale           │ end
//	kept too much            │         │ if lapsed → loading   │                   │                     │
//	beat or save stale       │         │                       │                   │ → standby, it keeps │ end
//	store lost its data      │         │                       │ active            │ Acquire, save       │ the same
//	store away               │ retry   │ learn on              │ → standby         │ learn on, no save   │ till drain
//	log away                 │ retry   │ wait                  │                   │ wait, no beat       │ save
//	log cut or replaced      │         │ → loading, step back  │                   │ → loading, the same │ no save
//	asked to stop            │ end     │ end                   │                   │ → leaving           │
//
// "Mine" is a save of the epoch that the model follows: it was made by the learner whose model
// this one is equal to, because both went on from one checkpoint and read one log. A log without an
// ID may be cut between their reads: the hashes of the records in the two positions tell. "Lapsed": the
// lease is free, or nobody beats any more. A standby may acquire if it has come to the saved
// model, the log answers, and the pause after its last attempt is over.
//
// One goroutine changes the phase: the one that the log's follower calls the worker in. The
// watch has its own goroutine and only tells what it has seen.
type phase uint8

const (
	loading phase = iota
	standby
	taking
	active
	leaving
)

// String returns the phase's name, as /readyz shows it.
func (p phase) String() string {
	switch p {
	case loading:
		return "loading"
	case standby:
		return "standby"
	case taking:
		return "taking"
	case active:
		return "active"
	case leaving:
		return "leaving"
	}
	panic(fmt.Sprintf("learner: unknown phase %d", uint8(p)))
}

// holds reports whether the learner has the lease, and publishes and saves.
func (p phase) holds() bool { return p == active || p == leaving }
