package bench

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"hamlet/algos/feature"
	"hamlet/algos/model"
)

// An attack is a way to label falsely: rate labels after each honest one.
type attack struct {
	name     string
	rate     int
	begins   int                                    // first honest label after which they speak
	sleeps   int                                    // honest labels until which they say the truth
	honestly func(i int) string                     // the honest source of event i; nil: one
	teaches  int                                    // true labels that each source gives first
	names    func(n int) string                     // of the source of attackers' label n
	lie      func(a *assault) (model.Example, bool) // false: that body is not one to label
}

// attackBegins is how many honest labels there are before an attack. Figures count honest
// events from there.
const attackBegins = 1000

func oneName(int) string     { return "liar" }
func newName(n int) string   { return "new" + strconv.Itoa(n) }
func tenMixed(n int) string  { return "liar" + strconv.Itoa(n*7919/13%10) }
func tenInTurn(n int) string { return "liar" + strconv.Itoa(n/300%10) }

// An assault is an attack on one stream.
type assault struct {
	*attack
	pool   []model.Example // what they label
	r      *rand.Rand
	honest int // events of the honest source
	said   int // labels of attackers
	lies   int
	by     map[string]int
	words  *model.Example            // the dictionary
	target func(*model.Example) bool // the campaign
}

func newAssault(a *attack, pool []model.Example, words *model.Example, campaign func(*model.Example) bool,
	seed uint64) *assault {
	return &assault{attack: a, pool: pool, r: rand.New(rand.NewPCG(seed, faultStream)), by: map[string]int{},
		words: words, target: campaign}
}

// draw returns an event of the pool that ok accepts.
func (a *assault) draw(ok func(*model.Example) bool) (model.Example, bool) {
	for range 1000 {
		if ex := &a.pool[a.r.IntN(len(a.pool))]; ok == nil || ok(ex) {
			return *ex, true
		}
	}
	return model.Example{}, false
}

func isSpam(ex *model.Example) bool { return ex.Spam }
func isHam(ex *model.Example) bool  { return !ex.Spam }

// flipAll draws events that ok accepts and reverses their labels.
func flipAll(ok func(*model.Example) bool) func(*assault) (model.Example, bool) {
	return func(a *assault) (model.Example, bool) {
		ex, found := a.draw(ok)
		ex.Spam = !ex.Spam
		return ex, found
	}
}

// flipSome reverses a share of labels.
func flipSome(share float64) func(*assault) (model.Example, bool) {
	return func(a *assault) (model.Example, bool) {
		ex, found := a.draw(nil)
		if a.r.Float64() < share {
			ex.Spam = !ex.Spam
		}
		return ex, found
	}
}

// flipCampaign calls the campaign ham, and says the truth about the rest.
func flipCampaign(a *assault) (model.Example, bool) {
	ex, found := a.draw(nil)
	if found && ex.Spam && a.target(&ex) {
		ex.Spam = false
	}
	return ex, found
}

// dictionary is Nelson et al.'s attack (Exploiting machine learning to subvert your spam
// filter, 2008): all words of ham in one spam.
func dictionary(a *assault) (model.Example, bool) {
	ex := *a.words
	ex.Spam = true
	return ex, true
}

// attacks returns the table's attacks, and before them streams without one.
func attacks() (all []attack) {
	add := func(name string, rate int, names func(int) string, lie func(*assault) (model.Example, bool)) *attack {
		all = append(all, attack{name: name, rate: rate, begins: attackBegins, names: names, lie: lie})
		return &all[len(all)-1]
	}
	for _, h := range []struct {
		name string
		of   func(i int) string
	}{
		{"none", func(int) string { return honest }},
		{"none, 3 honest sources", func(i int) string { return honest + strconv.Itoa(i*7919/13%3) }},
		{"none, 100 honest sources", func(i int) string { return honest + strconv.Itoa(i*7919/13%100) }},
		{"none, a new name each", func(i int) string { return honest + strconv.Itoa(i) }},
		{"none, half from late newcomers", func(i int) string {
			if i >= 2*attackBegins && i%2 == 0 {
				return honest + strconv.Itoa(i/200)
			}
			return honest
		}},
	} {
		add(h.name, 0, oneName, nil).honestly = h.of
	}
	for _, k := range []int{1, 3, 10} {
		add(fmt.Sprintf("ham called spam, %d ×", k), k, oneName, flipAll(isHam))
	}
	for _, k := range []int{1, 10} {
		add(fmt.Sprintf("the same, a new name each, %d ×", k), k, newName, flipAll(isHam))
	}
	for _, k := range []int{1, 3, 10} {
		a := add(fmt.Sprintf("sleeper, %d ×", k), k, oneName, flipAll(isHam))
		a.begins, a.sleeps = 1, 3000
	}
	add("ten sources mixed, 3 ×", 3, tenMixed, flipAll(isHam))
	add("ten sources in turn, 3 ×", 3, tenInTurn, flipAll(isHam))
	add("spam called ham, 3 ×", 3, oneName, flipAll(isSpam))
	add("all reversed, 3 ×", 3, oneName, flipAll(nil))
	add("dictionary, 1 ×", 1, oneName, dictionary)
	add("dictionary, a new name each, 1 ×", 1, newName, dictionary)
	add("dictionary after 300 true labels, 1 ×", 1, oneName, dictionary).teaches = 300
	for _, k := range []int{1, 3, 10} {
		add(fmt.Sprintf("one campaign, %d ×", k), k, oneName, flipCampaign)
	}
	add("30 % reversed, 3 ×", 3, oneName, flipSome(0.3))
	add("30 % reversed, 10 ×", 10, oneName, flipSome(0.3))
	add("40 % reversed, 10 ×", 10, oneName, flipSome(0.4))
	return all
}

// next returns the attackers' next label. ok is false if there is none to give.
func (a *assault) next() (ex model.Example, ok bool) {
	source := a.names(a.said)
	if a.honest <= a.sleeps || a.by[source] < a.teaches {
		ex, ok = a.draw(nil)
	} else if ex, ok = a.lie(a); ok {
		a.lies++
	}
	a.by[source]++
	a.said++
	ex.ID, ex.Source = "attack"+strconv.Itoa(a.said), source
	return ex, ok
}

// dictionarySize is how many words the dictionary holds.
const dictionarySize = 3000

// dictionaryOf returns a body of the most frequent words of the ham in a set, or of its
// most frequent names with value 1.
func dictionaryOf(set []model.Example) *model.Example {
	count := map[string]int{}
	seen := map[string]bool{}
	for i := range set {
		if set[i].Spam {
			continue
		}
		clear(seen)
		for _, w := range namesOf(&set[i]) {
			if !seen[w] {
				seen[w] = true
				count[w]++
			}
		}
	}
	words := make([]string, 0, len(count))
	for w := range count {
		words = append(words, w)
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	words = words[:min(len(words), dictionarySize)]
	slices.Sort(words)
	if set[0].Body.Message == nil {
		v := make([]feature.Number, len(words))
		for i, w := range words {
			v[i] = feature.Number{Name: w, Value: 1}
		}
		return &model.Example{Body: model.Body{Vector: v}}
	}
	var text []byte
	for _, w := range words {
		text = append(append(text, w...), ' ')
	}
	return &model.Example{Body: model.Body{Message: &feature.Message{Body: text, BodyBytes: len(text)}}}
}

// namesOf returns the words of subject and text, or the names of a vector.
func namesOf(ex *model.Example) (names []string) {
	if m := ex.Body.Message; m != nil {
		other := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
		for _, text := range [][]byte{m.Subject, m.Body} {
			for w := range strings.FieldsFuncSeq(strings.ToLower(string(text)), other) {
				names = append(names, w)
			}
		}
		return names
	}
	for _, n := range ex.Body.Vector {
		if n.Value != 0 {
			names = append(names, n.Name)
		}
	}
	return names
}

// campaignOf returns whether an event has the name that is in nearest to a fifth of the
// spam of a set and, of these, in least of its ham.
func campaignOf(set []model.Example) (name string, in func(*model.Example) bool) {
	spam, ham, all := map[string]int{}, map[string]int{}, 0
	for i := range set {
		of := ham
		if set[i].Spam {
			of = spam
			all++
		}
		names := namesOf(&set[i])
		slices.Sort(names)
		for _, w := range slices.Compact(names) {
			of[w]++
		}
	}
	best, fewest := "", 0
	for w, n := range spam {
		if n < all*3/20 || n > all/4 {
			continue
		}
		if best == "" || ham[w] < fewest || ham[w] == fewest && w < best {
			best, fewest = w, ham[w]
		}
	}
	return best, func(ex *model.Example) bool { return slices.Contains(namesOf(ex), best) }
}
