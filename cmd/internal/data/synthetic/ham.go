package synthetic

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
)

// A project is a temporary subject of ham, with its own words.
type project struct {
	name    string
	members []int // of the people
	style   style
	list    string // its mailing list
	secret  uint64 // seed of its threads
}

// A project begins every projectSpacing events and lasts projectsActive times as long.
const (
	projectSpacing = 400
	projectsActive = 20
)

func (g *Generator) activeProject(n int) *project {
	k := n/projectSpacing - g.rand.IntN(projectsActive) // some began before the stream
	return g.projects.get(k, func(k int) *project {
		r := rand.New(rand.NewPCG(g.cfg.Seed, mix(projectStream, k)))
		p := &project{name: coined(r), secret: r.Uint64()}
		for range 3 + r.IntN(8) {
			p.members = append(p.members, r.IntN(len(g.people)))
		}
		topic := append(sample(r, office, 25), coinedWords(r, 10)...)
		language := english
		switch r.IntN(10) {
		case 0, 1:
			topic = append(sample(r, personal, 40), coinedWords(r, 4)...)
		case 2, 3, 4:
			topic = append(sample(r, computer, 40), coinedWords(r, 10)...)
		case 5:
			language = german
		case 6:
			language = [][]string{french, spanish, japanese}[r.IntN(3)]
		}
		p.style = style{language, topic, 0.25}
		p.list = p.name + "-" + pick(r, []string{"dev", "users", "discuss", "announce"})
		return p
	})
}

// route makes l a message that p sends from their usual host.
func (l *letter) route(p person, r *rand.Rand) {
	l.from = p
	l.hops = []string{p.host}
	if r.IntN(2) == 0 {
		l.hops = append(l.hops, fmt.Sprintf("[10.%d.%d.%d]", r.IntN(256), r.IntN(256), r.IntN(256)))
	}
	h := mix(len(p.host), int(p.host[5])) // each host has one address
	l.ip = fmt.Sprintf("203.0.%d.%d", h%250, h>>8%250)
	l.authentic = pick(r, []string{"pass", "pass", "pass", "pass", "none", "softfail"})
	l.encoding = encoding(min(2, r.IntN(8)/3))
}

func (g *Generator) personMail(l *letter, p *project) {
	r := g.rand
	l.route(g.people[p.members[r.IntN(len(p.members))]], r)
	if &p.style.language[0] == &japanese[0] {
		l.encoding = base64Encoding
	}
}

// conversation writes a letter between people; two in three are answers.
func (g *Generator) conversation(l *letter, p *project) {
	r := g.rand
	g.personMail(l, p)
	thread := r.IntN(6)
	topic := rand.New(rand.NewPCG(p.secret, uint64(thread)))
	l.subject = p.style.phrase(topic, 2+topic.IntN(4))
	first := messageID(topic, l.from.host)
	g.text = g.greet(g.text[:0], l)
	if r.IntN(3) > 0 {
		l.subject, l.reply = "Re: "+l.subject, first
		g.text = g.quote(g.text, p, topic)
	}
	g.text = p.style.paragraph(g.text, r, 1+r.IntN(5))
	if r.IntN(2) == 0 {
		g.text = p.style.paragraph(g.text, r, 1+r.IntN(4))
	}
	g.text = g.sign(g.text, l)
	l.text = g.text
	if r.IntN(4) == 0 {
		l.html = g.asHTML(l.text)
	}
	if r.IntN(12) == 0 {
		l.attachments = []attachment{{p.name + ".pdf", "application/pdf", 800 + r.IntN(3000)}}
	}
}

func (g *Generator) greet(dst []byte, l *letter) []byte {
	first, _, _ := strings.Cut(l.to.name, " ")
	switch g.rand.IntN(4) {
	case 0:
		return fmt.Appendf(dst, "Hi %s,\n\n", first)
	case 1:
		return fmt.Appendf(dst, "Dear %s,\n\n", first)
	case 2:
		return fmt.Appendf(dst, "%s, ", first)
	}
	return dst
}

func (g *Generator) sign(dst []byte, l *letter) []byte {
	first, _, _ := strings.Cut(l.from.name, " ")
	switch g.rand.IntN(4) {
	case 0:
		return fmt.Appendf(dst, "Best regards,\n%s\n", l.from.name)
	case 1:
		return fmt.Appendf(dst, "-- \n%s\n%s\n", l.from.name, l.from.host)
	case 2:
		return dst
	}
	return fmt.Appendf(dst, "%s\n", first)
}

// quote appends the thread's first letter as a quotation.
func (g *Generator) quote(dst []byte, p *project, topic *rand.Rand) []byte {
	author := g.people[p.members[topic.IntN(len(p.members))]]
	dst = fmt.Appendf(dst, "On Monday %s wrote:\n", author.name)
	for range 1 + topic.IntN(4) {
		dst = append(dst, "> "...)
		dst = p.style.sentence(dst, topic, 9)
		dst = append(dst, '\n')
	}
	return append(dst, '\n')
}

// note writes one line between friends, often with a link. Spam from stolen accounts
// looks like it.
func (g *Generator) note(l *letter, n int) {
	r := g.rand
	p := g.activeProject(n)
	g.personMail(l, p)
	s := style{p.style.language, personal, 0.3}
	l.subject = s.phrase(r, 1+r.IntN(3))
	g.text = g.greet(g.text[:0], l)
	g.text = s.sentence(g.text, r, 7)
	if r.IntN(2) == 0 {
		g.text = fmt.Appendf(g.text, "\n%s\n", friendlyLink(r))
	}
	l.text = g.sign(append(g.text, '\n'), l)
}

// friendlyLink makes a link to a site where people share files.
func friendlyLink(r *rand.Rand) string {
	return fmt.Sprintf("https://%s.example/%s/%d", pick(r, []string{"photos", "news", "videos", "maps", "docs"}),
		pick(r, personal), r.IntN(1e6))
}

// inquiry writes a message from a stranger.
func (g *Generator) inquiry(l *letter) {
	r := g.rand
	first, last := pick(r, firstNames), pick(r, lastNames)
	domain := coined(r) + ".example"
	if r.IntN(2) == 0 {
		domain = pick(r, providers[:4])
	}
	p := person{name: first + " " + last, address: strings.ToLower(first) + fmt.Sprint(r.IntN(1000)) + "@" + domain,
		agent: pick(r, agents)}
	p.host = pick(r, []string{"smtp." + domain, coined(r) + ".dyn.example"})
	l.route(p, r)
	l.ip = address(r)
	l.authentic = pick(r, []string{"pass", "none", "softfail"})
	subjects := [][]string{commerce, office, money, medical, letters}
	s := style{english, append(sample(r, subjects[r.IntN(len(subjects))], 12), sample(r, office, 8)...), 0.3}
	l.subject = s.phrase(r, 2+r.IntN(4))
	g.text = g.greet(g.text[:0], l)
	g.text = s.paragraph(g.text, r, 2+r.IntN(4))
	if r.IntN(3) == 0 {
		g.text = fmt.Appendf(g.text, "https://%s/%s\n", domain, pick(r, s.topic))
	}
	l.text = g.sign(g.text, l)
	if r.IntN(2) == 0 {
		l.html = g.asHTML(l.text)
	}
	if r.IntN(8) == 0 {
		l.attachments = []attachment{{coined(r) + ".pdf", "application/pdf", 1500}}
	}
}

// A firm writes to its customers.
type firm struct {
	name, domain string
	style        style
	esp          string // who sends its newsletters
	html         bool
	secret       uint64 // seed of its newsletters
}

// A new firm appears every firmSpacing events.
const (
	firmSpacing = 900
	firmsActive = 50
)

// Bulk senders serve firms and some spammers.
var bulkSenders = []string{"bulkpost.example", "sendwell.example", "mailrocket.example"}

func (g *Generator) activeFirm(n int) *firm {
	k := n/firmSpacing - g.rand.IntN(firmsActive)
	return g.firms.get(k, func(k int) *firm {
		r := rand.New(rand.NewPCG(g.cfg.Seed, mix(firmStream, k)))
		f := &firm{name: coined(r), esp: pick(r, bulkSenders), html: r.IntN(4) > 0, secret: r.Uint64()}
		f.domain = f.name + pick(r, []string{".example", "-shop.example", "-news.example"})
		topic := append(sample(r, commerce, 45), coinedWords(r, 8)...)
		language := english
		switch r.IntN(6) {
		case 0, 1:
			topic = append(sample(r, news, 30), sample(r, commerce, 12)...)
		case 2:
			language = [][]string{german, french, spanish, japanese}[r.IntN(4)]
		case 3:
			topic = append(sample(r, medical, 15), sample(r, commerce, 25)...)
		}
		f.style = style{language, topic, 0.4}
		return f
	})
}

// routeBulk sends l through the bulk sender esp.
func (l *letter) routeBulk(name, local, domain, esp string, r *rand.Rand) {
	l.from = person{name: name, address: local + "@" + domain, host: "out." + esp}
	node := r.IntN(40)
	l.hops = []string{fmt.Sprintf("out%d.%s", node, esp), "app." + domain}
	l.ip = fmt.Sprintf("198.51.%d.%d", len(esp), node)
	l.authentic, l.encoding = "pass", quotedPrintable
	l.fields = append(l.fields, fmt.Sprintf("List-Unsubscribe: <https://%s/u/%x>", domain, r.Uint32()), "Precedence: bulk")
}

// newsletter writes advertising that the reader subscribed to.
func (g *Generator) newsletter(l *letter, n int) {
	r := g.rand
	f := g.activeFirm(n)
	l.routeBulk(f.name, pick(r, []string{"news", "newsletter", "offers", "hello"}), f.domain, f.esp, r)
	issue := rand.New(rand.NewPCG(f.secret, uint64(n/700))) // one issue, many readers
	l.subject = f.style.phrase(issue, 3+issue.IntN(5))
	g.text = g.greet(g.text[:0], l)
	for range 2 + issue.IntN(4) {
		g.text = f.style.paragraph(g.text, issue, 1+issue.IntN(3))
		g.text = fmt.Appendf(g.text, "https://%s/%s?c=%x\n\n", f.domain, pick(issue, f.style.topic), r.Uint32())
	}
	g.text = fmt.Appendf(g.text, "You receive this because you are a member of %s. Unsubscribe: https://%s/u/%x\n",
		f.name, f.domain, r.Uint32())
	l.text = g.text
	if f.html {
		l.html = g.asHTML(l.text)
	}
}

// receipt writes a shop's or a bank's notice.
func (g *Generator) receipt(l *letter, n int) {
	r := g.rand
	f := g.activeFirm(n)
	l.routeBulk(f.name, pick(r, []string{"billing", "orders", "no-reply", "service"}), f.domain, f.esp, r)
	l.fields = l.fields[:0]
	s := style{f.style.language, money, 0.45}
	l.subject = fmt.Sprintf("%s %s %d", appendTitle(nil, pick(r, []string{"order", "invoice", "receipt", "payment",
		"your account"})), pick(r, []string{"no.", "number", "#"}), 10000+r.IntN(90000))
	g.text = g.greet(g.text[:0], l)
	g.text = s.paragraph(g.text, r, 1+r.IntN(2))
	for range 1 + r.IntN(4) {
		g.text = fmt.Appendf(g.text, "%d x %s  %d.%02d\n", 1+r.IntN(3), pick(r, f.style.topic), r.IntN(300), r.IntN(100))
	}
	g.text = fmt.Appendf(g.text, "\nTotal %d.%02d\nhttps://%s/order/%d\n",
		5+r.IntN(600), r.IntN(100), f.domain, r.IntN(1e6))
	l.text = g.text
	if f.html {
		l.html = g.asHTML(l.text)
	}
	if r.IntN(6) == 0 {
		l.attachments = []attachment{{fmt.Sprintf("invoice-%d.pdf", r.IntN(1e5)), "application/pdf", 600 + r.IntN(2000)}}
	}
}

// mailingList writes a letter to a project's list.
func (g *Generator) mailingList(l *letter, n int) {
	p := g.activeProject(n)
	g.conversation(l, p)
	l.subject = "[" + p.list + "] " + l.subject
	l.hops = append([]string{"lists." + here}, l.hops...)
	l.fields = append(l.fields, fmt.Sprintf("List-Id: <%s.lists.%s>", p.list, here), "Precedence: list",
		fmt.Sprintf("List-Unsubscribe: <https://lists.%s/%s>", here, p.list))
	l.text = fmt.Appendf(l.text, "_______________________________________________\n%s mailing list\nhttps://lists.%s/%s\n",
		p.list, here, p.list)
	l.html = nil
}

// report writes a machine's report.
func (g *Generator) report(l *letter, n int) {
	r := g.rand
	host := fmt.Sprintf("%s%d.%s", pick(r, []string{"db", "web", "build", "backup"}), r.IntN(12), here)
	l.route(person{name: "root", address: "root@" + host, host: host}, r)
	l.encoding, l.fields = eightBit, []string{"Auto-Submitted: auto-generated"}
	job := pick(r, []string{"backup", "cron", "logwatch", "nightly build", "disk usage", "certificate check"})
	l.subject = fmt.Sprintf("%s on %s: %s", job, host, pick(r, []string{"ok", "ok", "warning", "failed", "finished"}))
	g.text = g.text[:0]
	for range 5 + r.IntN(25) {
		g.text = fmt.Appendf(g.text, "%s %s[%d]: %s %s %d\n", l.date.Format("15:04:05"), pick(r, computer), r.IntN(30000),
			pick(r, computer), pick(r, computer), r.IntN(1e6))
	}
	l.text = g.text
}

// invitation writes an invitation to a meeting, with a calendar entry.
func (g *Generator) invitation(l *letter, n int) {
	r := g.rand
	p := g.activeProject(n)
	g.personMail(l, p)
	l.subject = "Invitation: " + p.style.phrase(r, 3)
	g.text = fmt.Appendf(g.text[:0], "%s invites you.\nWhen: %s\nWhere: room %d\n\n",
		l.from.name, l.date.AddDate(0, 0, 1+r.IntN(9)).Format("2 January 15:04"), r.IntN(40))
	l.text = p.style.paragraph(g.text, r, 1)
	l.attachments = []attachment{{"invite.ics", "text/calendar", 300}}
}

// asHTML converts text to HTML. An empty line begins a paragraph.
func (g *Generator) asHTML(text []byte) []byte {
	g.html = append(g.html[:0], "<html><head><style>p{margin:1em}</style></head><body>\n<p>"...)
	for line := range bytes.Lines(text) {
		switch {
		case len(line) == 1:
			g.html = append(g.html, "</p>\n<p>"...)
		case bytes.HasPrefix(line, []byte("https://")):
			url := bytes.TrimSpace(line)
			g.html = fmt.Appendf(g.html, "<a href=\"%s\">%s</a><br>\n", url, url[8:min(len(url), 24)])
		default:
			line = bytes.ReplaceAll(line, []byte(">"), []byte("&gt;"))
			g.html = append(append(g.html, bytes.TrimSuffix(line, []byte("\n"))...), "<br>\n"...)
		}
	}
	return append(g.html, "</p></body></html>\n"...)
}
