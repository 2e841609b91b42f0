package feature

import "github.com/cespare/xxhash/v2"

// A Trace says where in a text the features stand that a [Hasher] has read from it. The
// hashing itself writes it ([Hasher.Trace]), so that no second tokenizer must agree with it.
// A Trace may be used again.
type Trace struct {
	// Spans are where the features stand, in no particular order. A feature has a span
	// for each time it occurs. One that stands nowhere has none, such as the length
	// of WordsByLength.
	Spans []Span

	// Shared says of each feature whether something else in the text has its slot too:
	// another word, pair, n-gram or name with the same index.
	Shared []bool

	ordered bool     // span k is that of element k of the index: Strings
	at      []uint32 // of the text that is read: where the bytes of the folded text stand; nil: there
	first   map[uint32]int32
	content []uint64 // of each feature, a hash of what it was first
}

// A Span is where a feature stands once.
type Span struct {
	Feature    int // its position in the index
	Begin, End int // bytes [Begin, End) of the text; of [Hasher.Numbers], numbers [Begin, End)

	index   uint32
	content uint64 // hash of what stands there, folded as it is hashed
}

// Trace makes h write into t where the features stand that it reads next; nil ends that.
// After one read, call [Trace.Resolve] with the index. Reading costs several times as much then.
func (h *Hasher) Trace(t *Trace) {
	h.trace = t
	if t != nil {
		t.Spans, t.ordered, t.at = t.Spans[:0], false, t.at[:0]
	}
}

// Resolve finishes t with the index that was read: it sets the features of Spans, without
// the spans of features that the index lacks, and Shared.
func (t *Trace) Resolve(index []uint32) {
	if t.first == nil {
		t.first = map[uint32]int32{}
	}
	clear(t.first)
	t.Shared, t.content = append(t.Shared[:0], make([]bool, len(index))...),
		append(t.content[:0], make([]uint64, len(index))...)
	for k, i := range index {
		if _, known := t.first[i]; !known {
			t.first[i] = int32(k)
		}
	}
	kept := t.Spans[:0]
	for k, p := range t.Spans {
		first, known := t.first[p.index]
		if !known {
			continue
		}
		p.Feature = int(first)
		if p.content != 0 {
			if was := t.content[first]; was != 0 && was != p.content {
				t.Shared[first] = true
			} else {
				t.content[first] = p.content
			}
		}
		if t.ordered {
			p.Feature = k
		}
		kept = append(kept, p)
	}
	t.Spans = kept
	if t.ordered {
		for k, i := range index {
			t.Shared[k] = t.Shared[t.first[i]]
		}
	}
}

// add adds a span of what has the content.
func (t *Trace) add(index uint32, begin, end int, content uint64) {
	t.Spans = append(t.Spans, Span{Begin: begin, End: end, index: index, content: content | 1})
}

// words adds the spans of words and pairs. bounds are those of [Hasher.words]; index is not
// sieved: a word, then of each further one the word and the pair that it ends. If a word's
// hash is 0, which is one in 2⁶⁴, its pair is missing and no span is known.
func (t *Trace) words(folded []byte, bounds, index []uint32) {
	if len(index)+1 != len(bounds) {
		return
	}
	var before uint64
	for w := 0; 2*w < len(bounds); w++ {
		begin, end := int(bounds[2*w]), int(bounds[2*w+1])
		content := xxhash.Sum64(folded[begin:end])
		if w > 0 {
			t.add(index[2*w], int(bounds[2*w-2]), end, mix(before)+content)
		}
		t.add(index[max(0, 2*w-1)], begin, end, content)
		before = content
	}
}

// locate notes where the bytes of text's shape stand. [shape] leaves out a byte that it has
// locate twice just before, so three bytes decide about the last of them.
func (t *Trace) locate(text []byte) {
	var scratch [4]byte
	for i := range text {
		window := text[max(0, i-2) : i+1]
		if shape(scratch[:], window) == len(window) {
			t.at = append(t.at, uint32(i))
		}
	}
}

// grams adds the spans of n-grams; gram j has the index[j].
func (t *Trace) grams(folded []byte, index []uint32, n int) {
	for j, i := range index {
		begin, end := j, j+n
		if len(t.at) > 0 {
			begin, end = int(t.at[j]), int(t.at[j+n-1])+1
		}
		t.add(i, begin, end, xxhash.Sum64(folded[j:j+n]))
	}
}

// strings adds the spans of the strings that end at each byte of text. One that would begin
// before text stands from its beginning on, and has no content.
func (t *Trace) strings(text []byte, index []uint32, longest int) {
	t.ordered = true
	for k, i := range index {
		end, n := k/(longest-1)+1, 2+k%(longest-1)
		begin, content := end-n, uint64(0)
		if begin >= 0 {
			content = xxhash.Sum64(text[begin:end]) | 1
		}
		t.Spans = append(t.Spans, Span{Begin: max(0, begin), End: end, index: i, content: content})
	}
}

// numbers adds the spans of numbers that are not 0.
func (t *Trace) numbers(numbers []Number, index func(name string) uint32) {
	for k, n := range numbers {
		if n.Value != 0 {
			t.add(index(n.Name), k, k+1, xxhash.Sum64String(n.Name))
		}
	}
}
