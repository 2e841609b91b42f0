package drift

import "hamlet/algos/internal/logistic"

// A factor is the Bayes factor between two explanations of the labels since something
// changed:
//
//	B = Σ ln q_c − ln q_n  over these labels, each predicted before it was learnt.
//
// q_c is the probability of the label by the credulous head: it believes every label and
// forgets soon, so it follows a world that changed. q_n is that of the head that predicts,
// p = P(spam), through flips of the labels:
//
//	P(label spam) = p(1−f₁) + (1−p)f₀,  f = (contradicted + 1)/(predicted + 10)
//
// where f₀ counts the labels so far that the head predicted to be ham, f₁ the others. Labels
// that follow from nothing favour flips, B < 0. Labels that follow from the inputs by a new
// rule favour the credulous head, B > 0. The part of B from the labels that contradict the
// head that predicts is the proof of a new rule: true labels after a few false ones also make
// B grow, because flips have become rare again. A head that only becomes unsure, as it does of
// few inputs, follows none of these labels.
type factor struct {
	labels       int
	given        [2]int  // of them ham, spam
	predicted    [2]int  // by the head that predicts
	contradicted [2]int  // labels of the other class, by the class predicted
	nats         float64 // B
	contrary     float64 // the part of B from the labels contradicted
	followed     int     // those of them to which the credulous head gives more than ½
}

// A contest is an event as the two heads predicted it.
type contest struct {
	spam      bool
	prob      float64 // of spam, by the head that predicts
	credulous float64 // of the label, by the credulous head, within [.01, .99]; 0: there is no such head
}

const (
	CredulousMemory = 0.99 // ρ per event of the credulous head
	doubtRate       = 0.05 // the flip rate of the second walk

	credulousDoubt = 0.02 // q_c ← (1 − credulousDoubt)·q_c + credulousDoubt/2
	priorFlips     = 1
	priorLabels    = 10
)

// mixed keeps the probability that the credulous head gives a label away from 0.
func mixed(q float64) float64 {
	return float64((1-credulousDoubt)*q) + credulousDoubt/2
}

func (f *factor) add(c *contest) {
	flips := func(class int) float64 {
		return (float64(f.contradicted[class]) + priorFlips) / (float64(f.predicted[class]) + priorLabels)
	}
	q := float64(c.prob*(1-flips(1))) + float64((1-c.prob)*flips(0))
	given, predicted := 0, 0
	if c.spam {
		given = 1
	} else {
		q = 1 - q
	}
	if c.prob > 0.5 {
		predicted = 1
	}
	if c.credulous > 0 {
		gain := logistic.Log(c.credulous) - logistic.Log(q)
		f.nats += gain
		if given != predicted {
			f.contrary += gain
		}
		if given != predicted && c.credulous > 0.5 {
			f.followed++
		}
	}
	f.labels++
	f.given[given]++
	f.predicted[predicted]++
	if given != predicted {
		f.contradicted[predicted]++
	}
}

const (
	leastContests = 30  // labels before a name
	leastGiven    = 5   // labels of each class before a name
	mostContests  = 400 // labels after which the sign of B decides

	noiseNats, conceptNats         = -5, 5
	lateNoiseNats, lateConceptNats = 0, 1

	// Of the labels contradicted, for a concept: their part of B is above contraryNats, and the
	// credulous head follows at least one in leastFollowed.
	contraryNats  = -1
	leastFollowed = 5

	// unsurprising is the level of the covariate alarm up to which a concept is named early.
	unsurprising = 0.25
)

// verdict returns the kind that f names, "" if none. decided says that f will name none.
func (f *factor) verdict(surprise float64) (kind string, decided bool) {
	late := f.labels >= mostContests
	switch {
	case f.labels < leastContests, min(f.given[0], f.given[1]) < leastGiven:
	case f.nats < noiseNats, late && f.nats < lateNoiseNats:
		return KindLabelNoise, true
	case f.contrary <= contraryNats, leastFollowed*f.followed < f.contradicted[0]+f.contradicted[1]:
	case f.nats > conceptNats && surprise < unsurprising, late && f.nats > lateConceptNats:
		return KindConcept, true
	}
	return "", late
}
