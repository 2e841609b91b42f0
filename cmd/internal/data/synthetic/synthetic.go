// Package synthetic makes labelled mail from a seed: an endless stream like that of a
// mail provider. It is what hamlet up --demo learns.
//
//	items, err := synthetic.Items(synthetic.Config{Seed: 1, BadFeedAt: 5000}, 10_000, source.FlipConfig{})
//	if err != nil {
//		return err
//	}
//	for item, err := range items {
//		fmt.Println(item.Ordinal, item.Truth, item.Event.Label, err)
//	}
//
// Spam comes in campaigns. Each has its own product, words, template, sending software,
// changing domains and way of hiding words; it rises and fades. Some is sent from stolen
// accounts of people who also write ham. Ham is conversations, notes with links,
// newsletters, receipts, mailing lists, reports of machines and invitations, in several
// languages. Projects, the subjects of ham, come and go as well, so the words of both
// classes drift. Both contain advertising and security notices: no list of words
// separates the classes.
//
// Faults can be injected: wrong labels, another policy, and an outbreak of new campaigns
// (outbreak.go).
//
// The n-th message is a function of the configuration and n alone; there is no clock. A
// message takes some 20 µs.
package synthetic

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"hamlet/cmd/internal/data/source"
	"hamlet/stream"
	"hamlet/stream/mail"
)

// A Config configures the stream. Events count from 0. A fault at event 0 is off.
type Config struct {
	Seed      uint64
	SpamShare float64 // mean fraction of spam; default 0.4
	Life      int     // about how many events a campaign lasts; default 3000
	Active    int     // about how many campaigns run at once; default 8

	Noise float64 // fraction of all labels that are wrong from the beginning

	CampaignAt    int     // covariate change: an outbreak of new campaigns begins at this event
	CampaignShare float64 // fraction of mail that belongs to the outbreak; default 0.3
	PolicyAt      int     // concept change: from this event on, newsletters count as spam
	BadFeedAt     int     // label noise: from this event on, the source BadFeed mislabels
	BadFeedRate   float64 // fraction of its labels that are wrong; default 0.5
}

// BadFeed is the source that mislabels from Config.BadFeedAt on. It labels a quarter of
// the events.
const BadFeed = "user-reports"

// The sources and their shares of the events.
var feeds = []struct {
	name string
	upTo float64
}{{"abuse-desk", 0.45}, {BadFeed, 0.7}, {"spam-traps", 1}}

// complete sets the defaults and reports every invalid field.
func (c *Config) complete() error {
	var errs []error
	share := func(name string, v *float64, def float64) {
		if *v == 0 {
			*v = def
		}
		if !(*v >= 0 && *v <= 1) {
			errs = append(errs, fmt.Errorf("%s is %v, not a share from 0 to 1", name, *v))
		}
	}
	share("share of spam", &c.SpamShare, 0.4)
	share("share of wrong labels", &c.Noise, 0)
	share("share of the new campaign", &c.CampaignShare, 0.3)
	share("rate of the bad feed", &c.BadFeedRate, 0.5)
	count := func(name string, v *int, def int) {
		if *v == 0 {
			*v = def
		}
		if *v < 0 {
			errs = append(errs, fmt.Errorf("%s is %d, a number of events is wanted", name, *v))
		}
	}
	count("life of a campaign", &c.Life, 3000)
	count("number of active campaigns", &c.Active, 8)
	count("event of the new campaign", &c.CampaignAt, 0)
	count("event of the new policy", &c.PolicyAt, 0)
	count("event of the bad feed", &c.BadFeedAt, 0)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("synthetic mail: %w", err)
	}
	return nil
}

// A Generator makes the messages of one configuration. It is for one goroutine.
type Generator struct {
	cfg       Config
	next      int
	pcg       *rand.PCG
	rand      *rand.Rand
	people    []person
	campaigns cache[*campaign]
	projects  cache[*project]
	firms     cache[*firm]
	buf, text []byte
	html      []byte
}

// New returns a generator that begins with message 0.
func New(cfg Config) (*Generator, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	g := &Generator{cfg: cfg, pcg: rand.NewPCG(cfg.Seed, 0)}
	g.rand = rand.New(g.pcg)
	g.people = makePeople(rand.New(rand.NewPCG(cfg.Seed, peopleStream)))
	return g, nil
}

// Streams of random numbers, one for each kind, so that no message depends on another.
const (
	messageStream = iota + 1
	peopleStream
	campaignStream
	projectStream
	firmStream
)

// mix maps a stream and a number to the second word of a PCG's seed (the finaliser of
// SplitMix64, Steele, Lea and Flood 2014).
func mix(stream, n int) uint64 {
	z := uint64(stream)<<56 + uint64(n)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Items returns limit events, or endless ones if limit is 0. cfg and flip make some
// labels wrong. Each iteration yields the same events.
func Items(cfg Config, limit int, flip source.FlipConfig) (iter.Seq2[source.Item, error], error) {
	err := errors.Join(cfg.complete(), flip.Check())
	if limit < 0 {
		err = errors.Join(err, fmt.Errorf("synthetic mail: %d events: a number is wanted, or 0 for no end", limit))
	}
	if err != nil {
		return nil, err
	}
	return func(yield func(source.Item, error) bool) {
		g, err := New(cfg)
		if err != nil {
			yield(source.Item{}, err)
			return
		}
		for n := 0; limit == 0 || n < limit; n++ {
			item, err := g.Next()
			flip.Apply(&item.Event, n+1)
			if !yield(item, err) || err != nil {
				return
			}
		}
	}, nil
}

// Seek makes Next return message n, counted from 0.
func (g *Generator) Seek(n int) { g.next = n }

// Next returns the next message, reduced like any mail. The item owns its memory.
func (g *Generator) Next() (source.Item, error) {
	n := g.next
	g.next++
	g.pcg.Seed(g.cfg.Seed, mix(messageStream, n))
	l, label := g.compose(n)
	g.buf = l.append(g.buf[:0], g.rand)
	reduced, err := mail.Reduce(append([]byte(nil), g.buf...))
	if err != nil {
		return source.Item{}, fmt.Errorf("synthetic message %d: %w", n, err)
	}
	e := stream.Event{
		Time: l.date, Tenant: stream.DefaultName, Label: label,
		Body: stream.Body{Kind: stream.Mail, Mail: reduced},
	}
	u := g.rand.Float64()
	for _, f := range feeds {
		if e.Source == "" && u < f.upTo {
			e.Source = f.name
		}
	}
	e.ID = source.ID(n, &e)
	item := source.Item{Ordinal: n, Truth: label, Event: e}
	if g.wrong(n, e.Source) {
		item.Event.Label = stream.Spam + stream.Ham - label
	}
	return item, nil
}

// wrong decides whether a label is wrong. It always draws twice, so that one fault does
// not affect the other.
func (g *Generator) wrong(n int, feed string) bool {
	noise, bad := g.rand.Float64(), g.rand.Float64()
	return noise < g.cfg.Noise ||
		g.cfg.BadFeedAt > 0 && n >= g.cfg.BadFeedAt && feed == BadFeed && bad < g.cfg.BadFeedRate
}

// compose writes message n and returns its true label.
func (g *Generator) compose(n int) (*letter, stream.Label) {
	r := g.rand
	l := &letter{date: timeOf(n, r)}
	l.to = g.people[r.IntN(len(g.people)/4)] // the recipients' organisation
	if g.cfg.CampaignAt > 0 && n >= g.cfg.CampaignAt && r.Float64() < g.cfg.CampaignShare {
		g.campaignMail(l, n, g.outbreakCampaign(n))
		return l, stream.Spam
	}
	if r.Float64() < g.shareAt(n) {
		g.campaignMail(l, n, g.activeCampaign(n))
		return l, stream.Spam
	}
	switch k := r.Float64(); {
	case k < 0.24:
		g.conversation(l, g.activeProject(n))
	case k < 0.32:
		g.note(l, n)
	case k < 0.38:
		g.inquiry(l)
	case k < 0.58:
		g.newsletter(l, n)
		if g.cfg.PolicyAt > 0 && n >= g.cfg.PolicyAt {
			return l, stream.Spam
		}
	case k < 0.72:
		g.receipt(l, n)
	case k < 0.88:
		g.mailingList(l, n)
	case k < 0.96:
		g.report(l, n)
	default:
		g.invitation(l, n)
	}
	return l, stream.Ham
}

// shareAt returns the fraction of spam at message n: a triangle wave of ±20 % over three
// lives of a campaign.
func (g *Generator) shareAt(n int) float64 {
	period := 3 * g.cfg.Life
	phase := float64(n%period) / float64(period)
	swing := 1.2 - float64(0.8*phase)
	if phase > 0.5 {
		swing = 0.4 + float64(0.8*phase)
	}
	return g.cfg.SpamShare * swing
}

// The stream begins at an arbitrary date. A message comes about every 40 seconds.
var began = time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC)

func timeOf(n int, r *rand.Rand) time.Time {
	return began.Add(time.Duration(n)*40*time.Second + time.Duration(r.IntN(40))*time.Second)
}

// A cache holds values that can be made again from a number. It drops all when full.
type cache[T any] struct{ made map[int]T }

func (c *cache[T]) get(k int, make func(int) T) T {
	if v, ok := c.made[k]; ok {
		return v
	}
	const most = 256
	if c.made == nil || len(c.made) >= most {
		c.made = map[int]T{}
	}
	v := make(k)
	c.made[k] = v
	return v
}
