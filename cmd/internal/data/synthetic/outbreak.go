package synthetic

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// An outbreak begins at Config.CampaignAt. Six campaigns run at once. For 1,000 events,
// one ends and another begins every 25 events; the last six stay. (The model learns a
// single campaign from three letters.) Each campaign has its own words; every second one
// has an alphabet that no other mail uses. Each letter has its own host and domain, and
// random strings against checksums (hash busters; Graham-Cumming, The spammers'
// compendium, 2003).
const (
	outbreakWidth   = 6  // campaigns at once
	outbreakSpacing = 25 // events
	outbreakLast    = 1000 / outbreakSpacing
)

// No other mail uses these alphabets.
var alphabets = []string{
	"абвгдежзийклмнопрстуфхцчшщыьэюя", "αβγδεζηθικλμνξοπρστυφχψω", "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրց",
	"აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ", "אבגדהוזחטיכלמנסעפצקרשת", "अआइईउऊएकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह",
	"กขคงจฉชซญณดตถทธนบปผพฟภมยรลวศษสหอ", "가나다라마바사아자차카타파하고노도로모보소오조초코토포호구누두루무",
}

// outbreakCampaign draws one of the outbreak's campaigns that are active at message n.
func (g *Generator) outbreakCampaign(n int) *campaign {
	begun := min((n-g.cfg.CampaignAt)/outbreakSpacing, outbreakLast)
	k := begun + g.rand.IntN(outbreakWidth)
	return g.campaigns.get(-1-k, g.newOutbreakCampaign) // other campaigns are numbered from 0
}

func (g *Generator) newOutbreakCampaign(number int) *campaign {
	r := rand.New(rand.NewPCG(g.cfg.Seed, mix(campaignStream, number)))
	c := &campaign{
		number: number, product: coined(r), secret: r.Uint64(), text: true, sender: botnet, busts: true,
		agent: fmt.Sprintf("%s %d.%d", appendTitle(nil, coined(r)), 1+r.IntN(9), r.IntN(10)),
	}
	words := coinedWords
	if number%2 == 0 {
		alphabet := []rune(pick(r, alphabets))
		words = func(r *rand.Rand, n int) []string { return lettered(r, alphabet, n) }
	} else {
		c.disguise = []disguise{plainWords, digitsForLetters, spacedOut}[r.IntN(3)]
	}
	c.style = style{words(r, 120), words(r, 60), 0.4}
	return c
}

// lettered makes up n words of three to nine letters.
func lettered(r *rand.Rand, alphabet []rune, n int) []string {
	words := make([]string, n)
	for i := range words {
		var w strings.Builder
		for range 3 + r.IntN(7) {
			w.WriteRune(alphabet[r.IntN(len(alphabet))])
		}
		words[i] = w.String()
	}
	return words
}

// hashBusters appends a line or two of random strings.
func hashBusters(dst []byte, r *rand.Rand) []byte {
	for range 4 + r.IntN(12) {
		for range 4 + r.IntN(9) {
			dst = append(dst, byte('a'+r.IntN(26)))
		}
		dst = append(dst, ' ')
	}
	return append(dst, '\n')
}
