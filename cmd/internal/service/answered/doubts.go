package answered

import "hamlet/stream"

// mostDoubts bounds doubts: some 2 MB.
const mostDoubts = 20_000

// doubts are the messages of the journal that got a doubtful label. A learner knows by them whose next
// label it must write, so that the journal says which doubts are settled. Of more than mostDoubts
// one is forgotten.
type doubts map[identity]doubt

// A doubt is the newest doubtful label of a message.
type doubt struct {
	given   int64 // microseconds since 1970
	settled bool  // the journal has a later label, or its withdrawal
}

// learnt takes a label that this learner has learnt or withdrawn. It reports whether the journal
// must have it: it is doubtful, or it settles a doubt.
func (d doubts) learnt(e *stream.JournalEntry) (wanted bool) {
	id, ok := parse(e.ID)
	if !ok {
		return false
	}
	if e.Doubt != nil {
		d.put(id, e.Time.UnixMicro(), false)
		return true
	}
	return d.settle(id, e)
}

// read takes a line of the journal. later: this learner has learnt a later label of the message. It
// reports whether that one must be written: it was learnt before this doubt was known here.
func (d doubts) read(e *stream.JournalEntry, later bool) (write bool) {
	id, ok := parse(e.ID)
	switch {
	case !ok || e.Label == stream.Unlabelled:
		return false
	case e.Doubt == nil:
		d.settle(id, e)
		return false
	}
	given := e.Time.UnixMicro()
	if known, ok := d[id]; ok && known.given >= given {
		return false
	}
	d.put(id, given, later)
	return later
}

func (d doubts) put(id identity, given int64, settled bool) {
	if _, known := d[id]; !known && len(d) >= mostDoubts {
		for other := range d {
			delete(d, other)
			break
		}
	}
	d[id] = doubt{given, settled}
}

// settle notes a label that is not doubtful. It reports whether there was a doubt.
func (d doubts) settle(id identity, e *stream.JournalEntry) bool {
	at, ok := d[id]
	if !ok || at.settled || e.Time.UnixMicro() < at.given {
		return false
	}
	d.put(id, at.given, true)
	return true
}
