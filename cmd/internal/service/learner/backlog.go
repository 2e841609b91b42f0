package learner

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/predictions"
)

const (
	// maxBacklog and maxBacklogBytes bound what a standby keeps for the case that it takes over,
	// without labels. Between two saves of the active learner there are seldom more than a few.
	maxBacklog      = 4096
	maxBacklogBytes = 16 << 20
	// maxLabels bounds the labels: 20 s of 1,600 a second.
	maxLabels = 1 << 15
	// maxBacklogPredictions bounds the predictions: 5 MB, 16 s of 8,000 a second.
	maxBacklogPredictions = 1 << 17
	// maxPassed bounds the positions: 1.3 MB, 4 s of 8,000 a second.
	maxPassed = 1 << 15
)

// A backlog is what a standby would have published since the model was last saved: dead
// letters, receipts, alerts, predictions and labels. The active learner publishes the same before it saves.
// So what a save covers is out, and the standby forgets it.
//
// When it is full, nothing is added. Until a save covers what was left out, the standby cannot
// go on with its own model: it begins at the saved one, and learns again what follows.
// Labels and predictions make figures only. Where there are too many, the oldest are forgotten.
// A comparison counts an event whose prediction is missing as one that only the other model has.
//
// A save covers offsets, and a log that has lost its end gives them again to other records. So the
// backlog knows the positions that the model has passed since, at most the last ones. A save that
// has another hash of the records below its position covers nothing of what is kept.
type backlog struct {
	items     []unpublished // in the order of the log, without labels
	labels    []unpublished // in the order of the log
	predicted []unpublishedPrediction
	forgotten int   // predictions, at most, that no save covers
	forgot    int64 // the last of them is of a record below
	bytes     int   // of the letters
	lost      int64 // what was left out is of records below; 0: nothing was
	passed    []passed
}

// A passed is a position without the hash before its last record.
type passed struct {
	next  int64
	chain [sha256.Size]byte
}

// A unpublishedPrediction is a prediction, and the position behind its record.
type unpublishedPrediction struct {
	next int64
	predictions.Prediction
}

// An unpublished is one of the things that are published, and the position behind its record.
type unpublished struct {
	next    int64
	letter  *stream.Record
	receipt bool // letter is a receipt
	alert   *stream.Alert
	said    bool // the alert was logged and counted
	label   *givenLabel
}

func (k *backlog) len() int { return len(k.items) + len(k.labels) }

func (k *backlog) add(item unpublished) {
	if item.label != nil {
		if len(k.labels) == maxLabels {
			k.labels[0] = unpublished{}
			k.labels = k.labels[1:]
		}
		k.labels = append(k.labels, item)
		return
	}
	size := 0
	if item.letter != nil {
		size = len(item.letter.Key) + len(item.letter.Value)
	}
	if len(k.items) >= maxBacklog || k.bytes+size > maxBacklogBytes {
		k.lost = item.next
		return
	}
	k.items = append(k.items, item)
	k.bytes += size
}

// predict keeps predictions, the newest of too many.
func (k *backlog) predict(next int64, made []predictions.Prediction) {
	for i := range made {
		k.predicted = append(k.predicted, unpublishedPrediction{next, made[i]})
	}
	if over := len(k.predicted) - maxBacklogPredictions; over > 0 {
		k.forgotten += over
		k.forgot = k.predicted[over-1].next
		k.predicted = k.predicted[over:]
	}
}

// pass notes that the model has come to a position.
func (k *backlog) pass(p state.Position) {
	if len(k.passed) == maxPassed {
		k.passed = k.passed[1:]
	}
	k.passed = append(k.passed, passed{p.Next, p.Chain})
}

// isOf reports whether a save at a position is of the records that this model has learnt. What is
// no longer known passes for it.
func (k *backlog) isOf(p state.Position) bool {
	i, known := k.find(p.Next)
	return !known || k.passed[i].chain == p.Chain
}

// find returns where in passed a position is, or would be.
func (k *backlog) find(next int64) (i int, known bool) {
	return slices.BinarySearchFunc(k.passed, next, func(at passed, next int64) int { return cmp.Compare(at.next, next) })
}

// trim forgets what a save at next covers.
func (k *backlog) trim(next int64) {
	n := 0
	for ; n < len(k.items) && k.items[n].next <= next; n++ {
		if l := k.items[n].letter; l != nil {
			k.bytes -= len(l.Key) + len(l.Value)
		}
	}
	k.items = append(k.items[:0:0], k.items[n:]...)
	n = 0
	for n < len(k.labels) && k.labels[n].next <= next {
		n++
	}
	k.labels = append(k.labels[:0:0], k.labels[n:]...)
	n = 0
	for n < len(k.predicted) && k.predicted[n].next <= next {
		n++
	}
	k.predicted = append(k.predicted[:0:0], k.predicted[n:]...)
	n, known := k.find(next)
	if known {
		n++
	}
	k.passed = append(k.passed[:0:0], k.passed[n:]...)
	if k.forgot <= next {
		k.forgotten = 0
	}
	if k.lost <= next {
		k.lost = 0
	}
}

// whole reports whether nothing that is not trimmed was left out.
func (k *backlog) whole() bool { return k.lost == 0 }

// take returns what is kept, and keeps it no longer. Labels come last of the items.
func (k *backlog) take() (items []unpublished, predicted []predictions.Prediction) {
	for i := range k.predicted {
		predicted = append(predicted, k.predicted[i].Prediction)
	}
	items = append(k.items, k.labels...)
	*k = backlog{}
	return items, predicted
}
