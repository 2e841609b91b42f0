package model

import (
	"cmp"
	"math"
	"slices"

	"hamlet/algos/feature"
	"hamlet/algos/text"
)

// A tally adds up what the words of one body contribute. For each list of experts it takes
//
//	trace   where the list's features stand, and which words each span touches
//	add     what the features add to each input of the experts that read the list
//	spread  that to the words
type tally struct {
	all   []Word
	index map[wordKey]int // of all
	parts [text.PartCount]words

	// Of one list.
	features feature.Trace
	on       *words    // of the part that the list reads
	counts   []int     // of each feature: its spans that touch a word
	values   []float64 // of each feature: what it adds to the answer
	terms    []text.Term
	touched  []int
}

// A wordKey is what tells two words apart.
type wordKey struct{ where, text string }

// words are those of one part of a body, by position.
type words struct {
	at   []int32 // of each byte (of a vector, each name) the word's index in tally.all; −1: none
	mark []bool  // of each byte: it is of a mark, and not of a word
}

// newTally returns the tally of b, whose parts a vectorizer has read.
func newTally(b *Body, parts *text.Parts) *tally {
	t := &tally{index: map[wordKey]int{}}
	if b.Message != nil {
		t.parts[text.OfHead] = t.words(parts.Head, feature.HeadTokens(nil, parts.Head))
		t.parts[text.OfText] = t.words(parts.Text, b.Message.TextTokens(nil, parts.Text))
	}
	names := &t.parts[text.OfNumbers]
	for _, n := range parts.Numbers {
		names.at, names.mark = append(names.at, int32(t.word(wordKey{InVector, n.Name}))), append(names.mark, false)
	}
	return t
}

// words enters the tokens of a part.
func (t *tally) words(part []byte, tokens []feature.Token) words {
	w := words{at: make([]int32, len(part)), mark: make([]bool, len(part))}
	for i := range w.at {
		w.at[i] = -1
	}
	for _, token := range tokens {
		i := int32(t.word(wordKey{token.Where, string(token.Text)}))
		for k := token.Begin; k < token.End; k++ {
			w.at[k], w.mark[k] = i, token.Mark
		}
	}
	return w
}

// word returns the index in all of the word at p.
func (t *tally) word(p wordKey) int {
	i, known := t.index[p]
	if !known {
		i = len(t.all)
		t.index[p] = i
		t.all = append(t.all, Word{Text: p.text, Where: p.where})
	}
	return i
}

// trace begins a list.
func (t *tally) trace(l *text.List, h *feature.Hasher, v *text.View, p *text.Parts) {
	l.Trace(&t.features, h, v, p)
	t.on = &t.parts[l.Part]
	n := len(v.Index)
	t.counts, t.values = append(t.counts[:0], make([]int, n)...), append(t.values[:0], make([]float64, n)...)
	for _, p := range t.features.Spans {
		if len(t.touch(p)) > 0 {
			t.counts[p.Feature]++
		}
	}
}

// touch returns the words that a span touches, or else the marks. The result is valid until
// the next call.
func (t *tally) touch(p feature.Span) []int {
	t.touched = t.touched[:0]
	for _, mark := range []bool{false, true} {
		for k := p.Begin; k < p.End; k++ {
			if i := int(t.on.at[k]); i >= 0 && t.on.mark[k] == mark && !slices.Contains(t.touched, i) {
				t.touched = append(t.touched, i)
			}
		}
		if len(t.touched) > 0 {
			break
		}
	}
	return t.touched
}

// add adds the terms of input j to the features' values. The input has the value given and
// contributes share to the answer. add returns the part of share that no word has: that of
// features without words, and what the terms do not explain.
func (t *tally) add(j int, share, given float64) (left float64) {
	if share == 0 || given == 0 {
		return share
	}
	sum := 0.0
	for _, term := range t.terms {
		sum += term[j]
	}
	scale := share / given
	if clipped := max(-text.ClipAt, min(text.ClipAt, sum)); clipped != sum {
		scale = float64(scale * (clipped / sum))
	}
	if math.IsInf(scale, 0) { // given is next to 0
		return share
	}
	left = share
	for f, term := range t.terms {
		if t.counts[f] > 0 {
			v := float64(scale * term[j])
			t.values[f] += v
			left -= v
		}
	}
	return left
}

// spread shares the features' values by their words.
func (t *tally) spread() {
	for _, p := range t.features.Spans {
		v := t.values[p.Feature]
		if v == 0 {
			continue
		}
		touched := t.touch(p)
		for _, i := range touched {
			t.all[i].Contribution += v / float64(t.counts[p.Feature]*len(touched))
			t.all[i].Shared = t.all[i].Shared || t.features.Shared[p.Feature]
		}
	}
}

// sorted returns the words that contribute, largest absolute value first.
func (t *tally) sorted() []Word {
	all := slices.DeleteFunc(t.all, func(w Word) bool { return w.Contribution == 0 })
	slices.SortFunc(all, func(a, b Word) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Contribution), math.Abs(a.Contribution)), cmp.Compare(a.Where, b.Where),
			cmp.Compare(a.Text, b.Text))
	})
	return all
}
