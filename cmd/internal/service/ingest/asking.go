package ingest

import (
	"math"

	"github.com/cespare/xxhash/v2"

	"hamlet/stream"
)

// An Asking is the share of mail whose label review asks for, chosen by chance whatever the answer was. 0: none.
//
// Chance is a hash of the message's identity. So everybody who takes labels knows the messages that are chosen
// without asking anybody: the first label of each was asked for, whoever gives it. Review shows them
// until they have one. A ham that a user takes out of Junk before review asks is so counted, and must be: the
// ham that is lost is the ham that users rescue.
//
// A promise about lost ham presumes that all of them get a label in the end, by somebody who is right. One
// without a label is not counted: if those are the ham that nobody finds in Junk, the promise is broken.
//
// Everybody may know the hash. A sender can find out whether his message would be chosen; only ham counts,
// and its senders gain nothing. But whoever may label can make up mail that is chosen, and call it ham. So he
// can move the promise to all tenants, also by a token without any-source. Labels of such tokens are marked all
// the same: they are how users rescue ham, and without them lost ham would be missing.
type Asking float64

// MostAsked is the largest share.
const MostAsked = 0.5

// Asks reports whether the label of a message is asked for.
func (a Asking) Asks(identity string) bool {
	return a > 0 && identity != "" && Chance(identity) < float64(a)
}

// Chance returns a number in [0, 1) for an identity. A share has the messages whose number is below it.
func Chance(identity string) float64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.WriteString("hamlet asks\n")
	_, _ = d.WriteString(identity)
	return float64(d.Sum64()>>11) * math.Exp2(-53)
}

// Record is [Record], and says of the label of a chosen mail that it was asked for. What e says itself stays.
func (a Asking) Record(e *stream.Event) (stream.Record, error) {
	labels := e.Action == stream.Learn || e.Action == stream.Relearn || e.Action == stream.Correct
	if a > 0 && labels && e.Body.Kind == stream.Mail && e.Label != stream.Unlabelled && e.Sampled == (stream.Sampled{}) &&
		a.Asks(identityOf(e)) {
		asked := *e
		asked.Sampled = stream.SampledShare(float64(a), stream.SampledReview)
		return Record(&asked)
	}
	return Record(e)
}
