package synthetic

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
)

// A campaign is the mail of one spammer for one product.
type campaign struct {
	number  int
	product string
	style   style
	secret  uint64 // seed of its templates
	sender  sending
	disguise
	html, text bool
	attach     *attachment
	agent      string
	poses      bool // as a firm, in the firm's words
	busts      bool // checksums: each letter has its own domain and random strings
}

// A sending is how a campaign sends its mail.
type sending uint8

const (
	botnet      sending = iota // any computer, any name
	bulkSender                 // a rented account at a sender that also serves honest firms
	stolen                     // accounts of people who write ham
	ownMachines                // a few machines under changing domains
)

// A disguise is how words are hidden from filters.
type disguise uint8

const (
	plainWords disguise = iota
	digitsForLetters
	commentsInWords
	spacedOut
	entities
)

func (g *Generator) newCampaign(k int) *campaign {
	r := rand.New(rand.NewPCG(g.cfg.Seed, mix(campaignStream, k)))
	c := &campaign{
		number: k, product: coined(r), secret: r.Uint64(),
		html: r.IntN(3) > 0, agent: pick(r, agents), disguise: disguise(max(0, r.IntN(8)-3)),
		sender: []sending{botnet, botnet, bulkSender, bulkSender, ownMachines, ownMachines, stolen, stolen}[r.IntN(8)],
	}
	c.text = !c.html || r.IntN(2) == 0
	language := english
	if r.IntN(5) == 0 {
		language = [][]string{german, french, spanish, japanese}[r.IntN(4)]
	}
	var topic []string
	switch r.IntN(8) {
	case 0, 1:
		topic = append(sample(r, medical, 20), sample(r, commerce, 15)...)
	case 2:
		topic = append(sample(r, letters, 25), sample(r, money, 10)...)
	case 3:
		topic, c.poses = sample(r, money, 20), true
	case 4:
		topic = append(sample(r, dating, 18), sample(r, personal, 12)...)
	case 5:
		topic = append(sample(r, office, 15), sample(r, money, 8)...)
		c.attach = &attachment{c.product + pick(r, []string{".zip", ".docm", ".pdf", ".html"}),
			"application/octet-stream", 1500}
	default:
		topic = append(sample(r, commerce, 35), sample(r, news, 5)...)
	}
	c.style = style{language, append(topic, coinedWords(r, 6)...), 0.4}
	if c.sender == stolen {
		c.html, c.text, c.disguise, c.poses = false, true, plainWords, false
		c.style.topic = append(sample(r, personal, 25), sample(r, commerce, 8)...)
		c.style.share = 0.3
	}
	return c
}

// activeCampaign draws one of the campaigns that are active at message n. They begin at
// equal intervals and last up to twice Life.
func (g *Generator) activeCampaign(n int) *campaign {
	spacing := max(1, g.cfg.Life/g.cfg.Active)
	// The campaign's age in units of Life. Its volume rises until 0.1, then falls like
	// 1/√age until 1.95.
	u, v := g.rand.Float64(), g.rand.Float64()
	age := float64(0.1*u) + float64(1.85*float64(v*v))
	return g.campaigns.get((n-int(age*float64(g.cfg.Life))+2*g.cfg.Life)/spacing, g.newCampaign)
}

// campaignMail writes a message of c.
func (g *Generator) campaignMail(l *letter, n int, c *campaign) {
	r := g.rand
	// Domains and templates change a few times in a life.
	period := max(1, g.cfg.Life/4)
	domains := rand.New(rand.NewPCG(c.secret, uint64(n/period)))
	if c.busts {
		domains = r
	}
	domain := coined(domains) + pick(domains, []string{".example", "-shop.example", "-news.example", "-online.example"})
	name := pick(r, firstNames) + " " + pick(r, lastNames)
	var firm *firm
	switch {
	case c.poses:
		firm = g.activeFirm(n)
		name = firm.name
	case r.IntN(2) == 0:
		name = string(appendTitle(nil, c.product))
	}
	g.routeSpam(l, c, name, domain)

	// All letters of a template have the same words, except the spun ones.
	template := rand.New(rand.NewPCG(c.secret, uint64(1+r.IntN(3)+4*(n/period))))
	s := spun{c.style, template, r}
	l.subject = s.phrase(2 + template.IntN(5))
	g.text = g.text[:0]
	if r.IntN(2) == 0 {
		g.text = g.greet(g.text, l)
	}
	paragraphs := 1 + template.IntN(4)
	if c.sender == stolen {
		paragraphs = 1
	}
	link := fmt.Sprintf("https://%s/%s?%x", domain, pick(template, c.style.topic), r.Uint32())
	if c.sender == stolen && r.IntN(2) == 0 {
		link = friendlyLink(r) // which redirects to the campaign's site
	}
	for i := range paragraphs {
		g.text = s.paragraph(g.text, 1+template.IntN(3))
		if i == 0 && c.attach == nil {
			g.text = fmt.Appendf(g.text, "%s\n\n", link)
		}
	}
	if firm != nil {
		g.text = fmt.Appendf(g.text, "%s\n%s customer service\n", firm.name, firm.domain)
	}
	if c.sender == bulkSender {
		g.text = fmt.Appendf(g.text, "You receive this because you are a member. Unsubscribe: https://%s/u/%x\n",
			domain, r.Uint32())
	}
	if c.busts {
		g.text = hashBusters(g.text, r)
	}
	g.text = c.hide(g.text, r, !c.text)
	if c.html {
		l.html = g.asHTML(g.text)
		if c.disguise == commentsInWords {
			l.html = breakWords(l.html, r)
		}
	}
	if c.text {
		l.text = g.text
	}
	if c.attach != nil {
		l.attachments = []attachment{*c.attach}
	}
}

// routeSpam sets the sender and the hops of a message of c.
func (g *Generator) routeSpam(l *letter, c *campaign, name, domain string) {
	r := g.rand
	switch c.sender {
	case stolen:
		l.route(g.people[r.IntN(len(g.people))], r)
		return
	case bulkSender:
		l.routeBulk(name, pick(r, []string{"news", "offers", "info", "service"}), domain,
			bulkSenders[c.secret%uint64(len(bulkSenders))], r)
		return
	case ownMachines:
		l.from = person{name: name, address: pick(r, []string{"info", "sales", "support", "mail"}) + "@" + domain,
			host: "mail." + domain, agent: c.agent}
		l.hops, l.ip, l.authentic = []string{l.from.host}, fmt.Sprintf("192.0.2.%d", c.secret%200+uint64(r.IntN(8))), "pass"
	default:
		local := strings.ToLower(pick(r, firstNames)) + fmt.Sprint(r.IntN(1000))
		l.from = person{name: name, address: local + "@" + pick(r, append(providers[:4:4], domain)), host: coined(r) +
			".dyn.example", agent: c.agent}
		l.hops, l.ip = []string{l.from.host}, address(r)
		l.authentic = pick(r, []string{"fail", "none", "pass", "softfail"})
		if r.IntN(3) == 0 {
			l.hops = append(l.hops, "smtp."+pick(r, providers)) // forged
		}
	}
	l.encoding = encoding(min(2, c.secret>>32%6/2))
	l.bare = c.secret>>40%2 == 0
}

// A spun text draws one phrase or sentence in twelve at random, and the rest from the
// template.
type spun struct {
	style
	template, own *rand.Rand
}

func (s *spun) source() *rand.Rand {
	if s.own.IntN(12) == 0 {
		return s.own
	}
	return s.template
}

func (s *spun) phrase(n int) string {
	return s.style.phrase(s.source(), n)
}

func (s *spun) paragraph(dst []byte, n int) []byte {
	for range n {
		dst = s.sentence(dst, s.source(), 11)
	}
	return append(dst[:len(dst)-1], "\n\n"...)
}

// hide disguises words of text. It uses entities only if the message is only HTML.
func (d disguise) hide(text []byte, r *rand.Rand, onlyHTML bool) []byte {
	if d == plainWords || d == commentsInWords || d == entities && !onlyHTML {
		return text
	}
	const looksLike = "a@e3i1o0s5"
	out := make([]byte, 0, len(text)*5/4)
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("https://")) {
			out = append(out, line...) // a link must work
			continue
		}
		for _, b := range line {
			letter := b >= 'a' && b <= 'z'
			switch i := strings.IndexByte(looksLike, b); {
			case d == digitsForLetters && letter && i >= 0 && i%2 == 0 && r.IntN(4) == 0:
				out = append(out, looksLike[i+1])
			case d == spacedOut && letter && r.IntN(25) == 0:
				out = append(out, b, ' ')
			case d == entities && letter && r.IntN(6) == 0:
				out = fmt.Appendf(out, "&#%d;", b)
			default:
				out = append(out, b)
			}
		}
	}
	return out
}

// breakWords puts HTML comments into words outside tags.
func breakWords(html []byte, r *rand.Rand) []byte {
	out := make([]byte, 0, len(html)*5/4)
	inTag := false
	for _, b := range html {
		inTag = inTag && b != '>' || b == '<'
		out = append(out, b)
		if !inTag && b >= 'a' && b <= 'z' && r.IntN(30) == 0 {
			out = fmt.Appendf(out, "<!--%x-->", r.Uint32()&0xffff)
		}
	}
	return out
}
