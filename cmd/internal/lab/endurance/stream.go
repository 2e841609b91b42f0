package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"hamlet/algos/feature"
	"hamlet/algos/model"
)

// A column is one of Spambase's 57: how often it is not 0, in thousandths, and its mean then, in
// hundredths, of ham and of spam.
type column struct {
	hamShare, spamShare uint64
	hamMean, spamMean   uint64
}

// columns are counted of spambase.data; spamShareOfAll of 1,000 events are spam.
var columns = [...]column{
	{148, 354, 50, 43}, {98, 345, 250, 48}, {277, 615, 72, 66}, {3, 22, 31, 766}, {220, 625, 82, 82},
	{114, 376, 39, 47}, {15, 421, 61, 65}, {74, 341, 52, 61}, {78, 306, 49, 56}, {170, 456, 98, 77},
	{51, 313, 43, 38}, {424, 630, 127, 87}, {119, 287, 52, 50}, {45, 127, 94, 66}, {18, 158, 47, 71},
	{90, 546, 81, 95}, {95, 384, 51, 75}, {126, 379, 78, 84}, {581, 887, 219, 255}, {17, 208, 45, 99},
	{343, 809, 128, 171}, {8, 52, 573, 454}, {28, 332, 26, 74}, {19, 376, 88, 57}, {373, 28, 240, 63},
	{281, 15, 154, 62}, {277, 4, 457, 35}, {155, 17, 125, 114}, {129, 7, 126, 10}, {162, 10, 103, 60},
	{104, 2, 102, 77}, {73, 1, 106, 47}, {123, 34, 122, 43}, {74, 6, 106, 32}, {157, 25, 108, 27},
	{175, 62, 81, 48}, {261, 56, 76, 78}, {18, 18, 102, 27}, {115, 34, 105, 36}, {90, 111, 92, 33},
	{53, 1, 137, 10}, {115, 11, 188, 22}, {104, 47, 68, 18}, {100, 26, 126, 24}, {296, 269, 141, 47},
	{161, 38, 178, 39}, {16, 10, 52, 12}, {67, 9, 76, 24}, {186, 149, 27, 14}, {552, 649, 29, 17},
	{143, 72, 16, 11}, {268, 833, 41, 62}, {104, 612, 11, 29}, {82, 287, 26, 27}, {1000, 1000, 238, 952},
	{1000, 1000, 1821, 10439}, {1000, 1000, 16147, 47062},
}

const spamShareOfAll = 394

// names returns the names of the columns, in ascending order.
func names() (all []string) {
	for j := range columns {
		all = append(all, fmt.Sprintf("c%02d", j))
	}
	return all
}

// A synthetic is a stream of labelled vectors. Event i depends on the seed and i alone, so that
// a run goes on anywhere. It uses integers, and +, −, · and / of float64 with every product
// rounded: all processors make the same events.
//
// Of 1,000 events 10 are copies of earlier ones, 2 correct a label and 1 withdraws an event. Some
// of their events cannot be found any more: the model refuses the withdrawal. Labels come from
// five sources, of which the last one flips 5 %. What drifts is in message.
type synthetic struct {
	seed   uint64
	names  []string
	bodies [2][]feature.Number // taken in turns: a model reads a body until the next one comes
	turn   int
}

func newSynthetic(seed uint64) *synthetic {
	s := &synthetic{seed: seed, names: names()}
	for k := range s.bodies {
		s.bodies[k] = make([]feature.Number, len(columns))
	}
	return s
}

// event returns event i. Its body is valid until the event after the next one.
func (s *synthetic) event(i uint64) model.Example {
	r := rand.NewPCG(s.seed, i)
	below := func(n uint64) uint64 { return min(i, 1+r.Uint64()%n) } // an earlier event's distance
	switch k := r.Uint64() % 1000; {
	case k < 10:
		return s.message(i - below(50_000))
	case k < 12:
		ex := s.message(i - below(50_000))
		ex.ID, ex.Action, ex.Of, ex.Spam = fmt.Sprint("c", i), model.Correct, ex.Identity, !ex.Spam
		ex.Identity = ""
		return ex
	case k < 13:
		ex := s.message(i - below(2_000))
		ex.ID, ex.Action, ex.Of = fmt.Sprint("w", i), model.Unlearn, ex.ID
		return ex
	}
	return s.message(i)
}

// Where the stream changes all of a sudden, in events: every so many, from this one on, for so long.
type episode struct{ every, from, length uint64 }

func (e episode) at(i uint64) bool { at := i % e.every; return at >= e.from && at < e.from+e.length }

var (
	swapped = episode{3_000_000, 1_500_000, 20_000} // a third of the columns tell the classes the other way round
	flipped = episode{2_000_000, 700_000, 10_000}   // 25 % of the labels of all sources are wrong
	scaled  = episode{5_000_000, 2_000_000, 30_000} // the numbers are eight times as large
)

// message returns the labelled vector number i. Each column's shares of the two classes come
// nearer to each other and part again, by up to a third, each with a period of its own. Each
// vector is between the classes by a part of its own, up to two fifths.
func (s *synthetic) message(i uint64) model.Example {
	r := rand.NewPCG(^s.seed, i)
	spam := r.Uint64()%1000 < spamShareOfAll
	source, flips := r.Uint64()%5, r.Uint64()%1000
	mixed := r.Uint64() % 400
	body := s.bodies[s.turn]
	s.turn = 1 - s.turn
	for j, c := range columns {
		if spam {
			c.hamShare, c.spamShare, c.hamMean, c.spamMean = c.spamShare, c.hamShare, c.spamMean, c.hamMean
		}
		// c's ham is now this event's class, its spam the other one.
		period := uint64(j+2) * 700_003
		phase := i % period * 2000 / period // 0 to 2000
		other := min(phase, 2000-phase) / 3 // 0 to 333
		other += mixed * (1000 - other) / 1000
		if swapped.at(i) && j%3 == 0 {
			other = 1000 - other
		}
		share := (c.hamShare*(1000-other) + c.spamShare*other) / 1000
		mean := float64((c.hamMean*(1000-other)+c.spamMean*other)/1000) / 100
		value := 0.0
		if draw := r.Uint64(); draw%1000 < share {
			u := float64(r.Uint64()>>11) / (1 << 53)
			// u²/(1.02−u), whose mean is 2.571: many small numbers and some of 19 means.
			value = float64(mean*float64(u*u)) / (1.02 - u) / 2.571
			if scaled.at(i) {
				value *= 8
			}
			value = math.Ceil(value*100) / 100
		}
		body[j] = feature.Number{Name: s.names[j], Value: value}
	}
	wrong := uint64(0)
	if source == 4 {
		wrong = 50
	}
	if flipped.at(i) {
		wrong = 250
	}
	if flips < wrong {
		spam = !spam
	}
	return model.Example{
		ID: fmt.Sprint("e", i), Source: fmt.Sprint("source", source), Identity: fmt.Sprint("m", i),
		Spam: spam, Body: model.Body{Vector: body},
	}
}
