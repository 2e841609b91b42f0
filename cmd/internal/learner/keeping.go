package learner

import (
	"time"

	"hamlet/stream"
	"hamlet/stream/kafka"
)

const (
	// maxKept and maxKeptBytes bound what a standby keeps for the case that it takes over.
	// Between two saves of the active learner there are seldom more than a few.
	maxKept      = 4096
	maxKeptBytes = 16 << 20
)

// A keeping is what a standby would have published since the model was last saved: dead
// letters, receipts, alerts and labels. The active learner publishes the same before it saves.
// So what a save covers is out, and the standby forgets it.
//
// When it is full, nothing is added. Until a save covers what was left out, the standby cannot
// go on with its own model: it begins at the saved one, and learns again what follows.
type keeping struct {
	items []kept // in the order of the log
	bytes int    // of the letters
	lost  int64  // what was left out is of records of the order log below; 0: nothing was
}

// A kept is one of the things that are published, and how far the order log was applied then.
type kept struct {
	next   int64
	letter *kafka.Record
	alert  *stream.Alert
	said   bool // the alert was logged and counted
	label  *givenLabel
}

// A givenLabel is what Answered.Labelled takes.
type givenLabel struct {
	identity, source string
	label            stream.Label
	at               time.Time
}

func (k *keeping) add(item kept) {
	size := 0
	if item.letter != nil {
		size = len(item.letter.Key) + len(item.letter.Value)
	}
	if len(k.items) >= maxKept || k.bytes+size > maxKeptBytes {
		k.lost = item.next
		return
	}
	k.items = append(k.items, item)
	k.bytes += size
}

// trim forgets what a save at next covers.
func (k *keeping) trim(next int64) {
	n := 0
	for ; n < len(k.items) && k.items[n].next <= next; n++ {
		if l := k.items[n].letter; l != nil {
			k.bytes -= len(l.Key) + len(l.Value)
		}
	}
	k.items = append(k.items[:0:0], k.items[n:]...)
	if k.lost <= next {
		k.lost = 0
	}
}

// whole reports whether nothing that is not trimmed was left out.
func (k *keeping) whole() bool { return k.lost == 0 }

// take returns what is kept, and keeps it no longer.
func (k *keeping) take() []kept {
	items := k.items
	*k = keeping{}
	return items
}
