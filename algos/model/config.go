package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"hamlet/algos/blr"
	"hamlet/algos/drift"
	"hamlet/algos/ensemble"
	"hamlet/algos/feature"
)

// The defaults of a Config's zero fields.
const (
	DefaultTableBits       = 18
	DefaultDuplicateWindow = 100_000
)

// The largest configuration that New accepts. A head of 4,096 inputs takes three
// triangles of 64 MiB and some 50 ms an event. (Beyond MaxDenseByDefault inputs the
// noise watch has no head of its own and asks this one: forgetting would cost
// O(D³) at every 50th event, 5 ms an event at 1,000 inputs.)
const (
	MaxDense           = 4096
	MaxDuplicateWindow = 1 << 24
)

// The text experts of TextExperts, by name. In brackets what Explain calls them.
const (
	HeaderWords = "header-words"   // [header words] words and pairs of the header, AdaGrad, rate 1
	Text5Grams  = "text-5grams"    // [text 5-grams] byte 5-grams of the text, AdaGrad, rate 0.5
	TextWords   = "text-words"     // [text words] words and pairs of the text, AdaGrad, rate 1
	Opening     = "opening-4grams" // [opening 4-grams (naive Bayes)] of the text's first 2,000 bytes
)

// FromLine stands for the mbox "From " line in Config.SkipHeaders.
const FromLine = "from-line"

// The values of Config.LabelTrust.
const (
	TrustText = "text" // the heads and experts of mail and text weigh each label by its trust
	TrustAll  = "all"  // those of vectors, too
	TrustNone = "none" // every label counts in full
)

// The values of Config.TrustBy.
const (
	TrustBySource = "source"
	TrustByAll    = "all"
)

// A Config says what a model is. It is part of the model's bytes. Zero fields
// mean the defaults given here.
type Config struct {
	// TableBits is the binary logarithm of an expert's table, 8 to 24, default
	// 18. An expert takes 8·2^TableBits bytes: 2 MiB by default.
	TableBits int `json:"table_bits"`

	// Dense are the names of a vector that are inputs of the head, at most
	// MaxDense, in any order; none by default. All other names are hashed.
	Dense []string `json:"dense"`

	// DuplicateWindow is how many of the last events are known again, 1 to
	// 2^24, default 100,000. An event takes 8 bytes of the model's, and 24 to 40
	// of memory: its place and two to four of the index.
	DuplicateWindow int `json:"duplicate_window"`

	// TextExperts are the experts that read mail and text, without repetition;
	// by default all four, in the order above.
	TextExperts []string `json:"text_experts"`

	// SkipHeaders are the headers of mail that are not read, by name in lower
	// case; FromLine is the mbox "From " line. None by default. What one's own
	// servers write tells where a message was collected, not what it is: leave it
	// out where spam and ham were collected in different places.
	SkipHeaders []string `json:"skip_headers"`

	// LabelTrust says where a label is weighted by the probability that it is
	// true. The default is TrustText; TrustAll where ensembles stand beside the head
	// of vectors with dense names, because the stacker makes good what it costs on
	// hard streams (the package doc has figures). There the hashed names' experts
	// learn every label in full: they see what the head does not, and are to teach
	// it. The probability and the flip rate are tracked everywhere.
	LabelTrust string `json:"label_trust"`

	// TrustBy says whose flip rate a label is trusted by: that of its source,
	// TrustBySource, the default, or the common one of its kind of body, TrustByAll.
	// Both are tracked everywhere.
	TrustBy string `json:"trust_by"`

	// SpamShare gives the head of mail and text one more input, the share of spam
	// among the last labels; default false. It is for labels that come late:
	// share.go has figures.
	SpamShare bool `json:"spam_share"`

	// TextHead and VectorHead are the heads of mail and text, and of vectors.
	TextHead   Head `json:"text_head"`
	VectorHead Head `json:"vector_head"`

	// TextEnsembles and VectorEnsembles are the ensembles that stand beside a head,
	// by their kinds of package ensemble, in any order, without repetition. A nil
	// list means the default, which the package doc gives the figures for: none for
	// mail and text; for vectors anyboost, if there are 1 to MaxDenseByDefault dense
	// names, else none. An empty list is none.
	TextEnsembles   []string `json:"text_ensembles"`
	VectorEnsembles []string `json:"vector_ensembles"`

	// SecondHead is ρ of a second head that forgets, ½ to 1, an event; 0, the
	// default, is none.
	SecondHead float64 `json:"second_head"`

	// Window is W, the events that an ensemble is built from, default 2,000. Rebuild
	// is R: at every so many events one is built anew, a multiple of drift.Rhythm,
	// default 500.
	Window  int `json:"window"`
	Rebuild int `json:"rebuild"`

	// Alarms are the three alarms.
	Alarms Alarms `json:"alarms"`
}

// The defaults of the ensembles' window.
const (
	DefaultWindow  = 2000
	DefaultRebuild = 500
)

// MaxWindow bounds Config.Window and Config.Rebuild, and MaxDenseByDefault the dense
// names beyond which no ensemble runs that was not asked for: its rebuilds and
// its window grow with them. MaxWindowInputs bounds what the ensembles of vectors
// keep of dense names, (Window+Rebuild)·len(Dense) numbers of 4 bytes, to 128 MiB,
// sixteen times a model of mail: they are part of every save.
const (
	MaxWindow         = 1 << 16
	MaxDenseByDefault = 512
	MaxWindowInputs   = 1 << 25
)

// Alarms says when the alarms are raised, and whether there are any. Zero fields
// mean the defaults of package drift, whose doc has their measured false alarms;
// they are given here.
type Alarms struct {
	Off bool `json:"off"` // no alarms; they cost a second head and 170 KB of the model's bytes

	Drop      float64 `json:"drop"`      // label noise: ln SNR so far below its reference, in nats; 0.2
	Confirmed float64 `json:"confirmed"` // or so far, while the flip rate is above FlipRate; 0.1
	FlipRate  float64 `json:"flip_rate"` // 0.01
	Clear     float64 `json:"clear"`     // cleared below; half of Confirmed
	Covariate float64 `json:"covariate"` // leverage or surprise above its past, in robust units; 0.65
	Concept   float64 `json:"concept"`   // excess of log loss, in nats; 28
}

func (a Alarms) filled() (Alarms, error) {
	if a.Off {
		return Alarms{Off: true}, nil
	}
	noise, err1 := drift.NewLabelNoise(drift.LabelNoiseConfig{
		Dim: 1, Drop: a.Drop, Confirmed: a.Confirmed, FlipRate: a.FlipRate, Clear: a.Clear,
	})
	covariate, err2 := drift.NewCovariate(drift.CovariateConfig{Threshold: a.Covariate})
	concept, err3 := drift.NewPageHinkley(drift.PageHinkleyConfig{Threshold: a.Concept})
	if err := errors.Join(err1, err2, err3); err != nil {
		return a, err
	}
	n := noise.Config()
	return Alarms{
		Drop: n.Drop, Confirmed: n.Confirmed, FlipRate: n.FlipRate, Clear: n.Clear,
		Covariate: covariate.Config().Threshold, Concept: concept.Config().Threshold,
	}, nil
}

// The sites of Head.Site, package blr's.
const (
	SiteRVGA           = "rvga"
	SiteJaakkolaJordan = "jj"
	SiteExactRVGA      = "exact-rvga"
)

var siteByName = map[string]blr.Site{
	SiteRVGA: blr.RVGA, SiteJaakkolaJordan: blr.JaakkolaJordan, SiteExactRVGA: blr.ExactRVGA,
}

// A Head says how a head learns. Zero fields mean the defaults given here, which
// the package doc's table is the reason for.
type Head struct {
	Site     string `json:"site"`      // default SiteRVGA
	HalfLife int    `json:"half_life"` // events after which a site counts half; default 0, for ever
	Refresh  int    `json:"refresh"`   // sweep over the kept sites at every so many events of the half; default 0, never
}

func (h Head) String() string {
	return fmt.Sprintf("%s, half-life %d, refresh %d", h.Site, h.HalfLife, h.Refresh)
}

func (h Head) filled() Head {
	if h.Site == "" {
		h.Site = SiteRVGA
	}
	return h
}

func (h Head) validate(name string) (errs []error) {
	if _, ok := siteByName[h.Site]; !ok {
		errs = append(errs, fmt.Errorf("%s.site: %q is not one of %s, %s, %s", name, h.Site, SiteRVGA, SiteJaakkolaJordan, SiteExactRVGA))
	}
	if h.HalfLife < 0 {
		errs = append(errs, fmt.Errorf("%s.half_life: %d is below 0", name, h.HalfLife))
	}
	if h.Refresh < 0 {
		errs = append(errs, fmt.Errorf("%s.refresh: %d is below 0", name, h.Refresh))
	}
	return errs
}

// filled returns c with defaults in place of zero fields and Dense sorted, and
// shares no memory with c.
func (c Config) filled() Config {
	if c.TableBits == 0 {
		c.TableBits = DefaultTableBits
	}
	if c.DuplicateWindow == 0 {
		c.DuplicateWindow = DefaultDuplicateWindow
	}
	if len(c.TextExperts) == 0 {
		c.TextExperts = []string{HeaderWords, Text5Grams, TextWords, Opening}
	}
	c.TextHead, c.VectorHead = c.TextHead.filled(), c.VectorHead.filled()
	c.SecondHead += 0 // −0 is 0
	if c.VectorEnsembles == nil && len(c.Dense) > 0 && len(c.Dense) <= MaxDenseByDefault {
		c.VectorEnsembles = []string{string(ensemble.AnyBoost)}
	}
	if c.LabelTrust == "" {
		c.LabelTrust = TrustText
		if len(c.Dense) > 0 && len(c.VectorEnsembles) > 0 {
			c.LabelTrust = TrustAll
		}
	}
	if c.TrustBy == "" {
		c.TrustBy = TrustBySource
	}
	c.TextEnsembles, c.VectorEnsembles = inOrder(c.TextEnsembles), inOrder(c.VectorEnsembles)
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.Rebuild == 0 {
		c.Rebuild = DefaultRebuild
	}
	if a, err := c.Alarms.filled(); err == nil {
		c.Alarms = a
	}
	c.TextExperts = slices.Clone(c.TextExperts)
	c.SkipHeaders = append([]string{}, c.SkipHeaders...)
	for i, name := range c.SkipHeaders {
		c.SkipHeaders[i] = strings.ToLower(name)
	}
	slices.Sort(c.SkipHeaders)
	c.Dense = append([]string{}, c.Dense...) // never nil: JSON says [], not null
	slices.Sort(c.Dense)
	return c
}

// inOrder returns a copy of kinds in the order of package ensemble, what is no
// kind last; never nil.
func inOrder(kinds []string) []string {
	kinds = append([]string{}, kinds...)
	at := func(kind string) int {
		if i := slices.Index(ensemble.Kinds(), ensemble.Kind(kind)); i >= 0 {
			return i
		}
		return math.MaxInt
	}
	slices.SortStableFunc(kinds, func(a, b string) int { return cmp.Compare(at(a), at(b)) })
	return kinds
}

// validate reports every bad field of a filled Config.
func (c Config) validate() error {
	var errs []error
	if c.TableBits < feature.MinTableBits || c.TableBits > feature.MaxTableBits {
		errs = append(errs, fmt.Errorf("table_bits: %d is not in %d…%d", c.TableBits, feature.MinTableBits, feature.MaxTableBits))
	}
	if len(c.Dense) > MaxDense {
		errs = append(errs, fmt.Errorf("dense: %d names, more than %d; leave some out, they are hashed then", len(c.Dense), MaxDense))
	}
	for i, name := range c.Dense {
		if name == "" {
			errs = append(errs, errors.New("dense: a name is empty"))
		} else if !utf8.ValidString(name) {
			errs = append(errs, fmt.Errorf("dense: %q is not UTF-8", name))
		} else if i > 0 && name == c.Dense[i-1] {
			errs = append(errs, fmt.Errorf("dense: %q is given twice", name))
		}
	}
	if c.DuplicateWindow < 1 || c.DuplicateWindow > MaxDuplicateWindow {
		errs = append(errs, fmt.Errorf("duplicate_window: %d is not in 1…%d", c.DuplicateWindow, MaxDuplicateWindow))
	}
	for i, name := range c.TextExperts {
		if _, ok := textExperts[name]; !ok {
			errs = append(errs, fmt.Errorf("text_experts: %q is not one of %s", name,
				strings.Join([]string{HeaderWords, Text5Grams, TextWords, Opening}, ", ")))
		} else if slices.Contains(c.TextExperts[:i], name) {
			errs = append(errs, fmt.Errorf("text_experts: %q is given twice", name))
		}
	}
	for i, name := range c.SkipHeaders {
		if name == "" || strings.ContainsAny(name, ": \t\n") {
			errs = append(errs, fmt.Errorf("skip_headers: %q is no header's name", name))
		} else if i > 0 && name == c.SkipHeaders[i-1] {
			errs = append(errs, fmt.Errorf("skip_headers: %q is given twice", name))
		}
	}
	if c.LabelTrust != TrustText && c.LabelTrust != TrustAll && c.LabelTrust != TrustNone {
		errs = append(errs, fmt.Errorf("label_trust: %q is not one of %s, %s, %s", c.LabelTrust, TrustText, TrustAll, TrustNone))
	}
	if c.TrustBy != TrustBySource && c.TrustBy != TrustByAll {
		errs = append(errs, fmt.Errorf("trust_by: %q is not one of %s, %s", c.TrustBy, TrustBySource, TrustByAll))
	}
	errs = append(errs, c.TextHead.validate("text_head")...)
	errs = append(errs, c.VectorHead.validate("vector_head")...)
	errs = append(errs, validateEnsembles("text_ensembles", c.TextEnsembles)...)
	errs = append(errs, validateEnsembles("vector_ensembles", c.VectorEnsembles)...)
	if ρ := c.SecondHead; ρ != 0 && !(ρ >= 0.5 && ρ < 1) {
		errs = append(errs, fmt.Errorf("second_head: ρ = %v is not in ½…1, and not 0, which is none", ρ))
	}
	if c.Window < drift.Rhythm || c.Window > MaxWindow {
		errs = append(errs, fmt.Errorf("window: %d is not in %d…%d", c.Window, drift.Rhythm, MaxWindow))
	}
	if c.Rebuild < drift.Rhythm || c.Rebuild > MaxWindow || c.Rebuild%drift.Rhythm != 0 {
		errs = append(errs, fmt.Errorf("rebuild: %d is not a multiple of %d up to %d", c.Rebuild, drift.Rhythm, MaxWindow))
	}
	if _, err := c.Alarms.filled(); err != nil {
		errs = append(errs, fmt.Errorf("alarms: %w", err))
	}
	if len(errs) == 0 && len(c.VectorEnsembles) > 0 && (c.Window+c.Rebuild)*len(c.Dense) > MaxWindowInputs {
		errs = append(errs, fmt.Errorf("window + rebuild: %d events of %d dense names are more than %d numbers, 128 MiB, "+
			"for ensembles of vectors: take at most %d events, fewer names, or no ensembles",
			c.Window+c.Rebuild, len(c.Dense), MaxWindowInputs, MaxWindowInputs/len(c.Dense)))
	}
	return errors.Join(errs...)
}

func validateEnsembles(field string, kinds []string) (errs []error) {
	for i, kind := range kinds {
		if !ensemble.Kind(kind).Valid() {
			errs = append(errs, fmt.Errorf("%s: %q is not one of %v", field, kind, ensemble.Kinds()))
		} else if slices.Contains(kinds[:i], kind) {
			errs = append(errs, fmt.Errorf("%s: %q is given twice", field, kind))
		}
	}
	return errs
}

// JSON returns c in canonical form: every field filled in, in one order, names
// sorted where their order means nothing. Equal configurations have equal bytes.
func (c Config) JSON() []byte {
	b, err := json.Marshal(c.filled())
	if err != nil {
		panic(err) // a NaN or ±Inf, which New would have refused
	}
	return b
}

// Differences names each field in which c, the configuration here, differs from
// that of a model, with both values: "table_bits: 18 here, 20 in the model".
// Zero fields count as their defaults. It is empty if they agree.
func (c Config) Differences(model Config) []string {
	c, model = c.filled(), model.filled()
	var d []string
	if c.TableBits != model.TableBits {
		d = append(d, fmt.Sprintf("table_bits: %d here, %d in the model", c.TableBits, model.TableBits))
	}
	if !slices.Equal(c.Dense, model.Dense) {
		d = append(d, fmt.Sprintf("dense: %s here, %s in the model", names(c.Dense, model.Dense), names(model.Dense, c.Dense)))
	}
	if c.DuplicateWindow != model.DuplicateWindow {
		d = append(d, fmt.Sprintf("duplicate_window: %d here, %d in the model", c.DuplicateWindow, model.DuplicateWindow))
	}
	if !slices.Equal(c.TextExperts, model.TextExperts) {
		d = append(d, fmt.Sprintf("text_experts: %s here, %s in the model",
			strings.Join(c.TextExperts, ","), strings.Join(model.TextExperts, ",")))
	}
	if !slices.Equal(c.SkipHeaders, model.SkipHeaders) {
		d = append(d, fmt.Sprintf("skip_headers: %s here, %s in the model",
			names(c.SkipHeaders, model.SkipHeaders), names(model.SkipHeaders, c.SkipHeaders)))
	}
	if c.LabelTrust != model.LabelTrust {
		d = append(d, fmt.Sprintf("label_trust: %s here, %s in the model", c.LabelTrust, model.LabelTrust))
	}
	if c.TrustBy != model.TrustBy {
		d = append(d, fmt.Sprintf("trust_by: %s here, %s in the model", c.TrustBy, model.TrustBy))
	}
	if c.SpamShare != model.SpamShare {
		d = append(d, fmt.Sprintf("spam_share: %v here, %v in the model", c.SpamShare, model.SpamShare))
	}
	if c.TextHead != model.TextHead {
		d = append(d, fmt.Sprintf("text_head: %v here, %v in the model", c.TextHead, model.TextHead))
	}
	if c.VectorHead != model.VectorHead {
		d = append(d, fmt.Sprintf("vector_head: %v here, %v in the model", c.VectorHead, model.VectorHead))
	}
	for _, list := range []struct {
		field       string
		here, model []string
	}{{"text_ensembles", c.TextEnsembles, model.TextEnsembles}, {"vector_ensembles", c.VectorEnsembles, model.VectorEnsembles}} {
		if !slices.Equal(list.here, list.model) {
			d = append(d, fmt.Sprintf("%s: %s here, %s in the model", list.field, orNone(list.here), orNone(list.model)))
		}
	}
	if c.SecondHead != model.SecondHead {
		d = append(d, fmt.Sprintf("second_head: %v here, %v in the model", c.SecondHead, model.SecondHead))
	}
	if c.Window != model.Window {
		d = append(d, fmt.Sprintf("window: %d here, %d in the model", c.Window, model.Window))
	}
	if c.Rebuild != model.Rebuild {
		d = append(d, fmt.Sprintf("rebuild: %d here, %d in the model", c.Rebuild, model.Rebuild))
	}
	if c.Alarms != model.Alarms {
		d = append(d, fmt.Sprintf("alarms: %+v here, %+v in the model", c.Alarms, model.Alarms))
	}
	return d
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ",")
}

// names says how many names a list has, and quotes up to three that the other
// list lacks.
func names(list, other []string) string {
	var only []string
	for _, name := range list {
		if !slices.Contains(other, name) {
			only = append(only, fmt.Sprintf("%q", name))
		}
	}
	s := fmt.Sprintf("%d names", len(list))
	if len(list) == 1 {
		s = "1 name"
	}
	if len(only) > 3 {
		only = append(only[:3], "…")
	}
	if len(only) > 0 {
		s += " (with " + strings.Join(only, ", ") + ")"
	}
	return s
}

// maxAdoptions bounds what is recorded: two learners that take turns, of two
// architectures or configurations, adopt at every turn, and a configuration of 4,096
// dense names is some 50 KB. The record is for who asks why a model of late says other
// things than a replay of its log.
const maxAdoptions = 32

// An Adoption records that a model went on under another configuration or with
// other numerics than before.
type Adoption struct {
	Events   uint64 `json:"events"`   // the event count when it happened
	Config   Config `json:"config"`   // until then
	Numerics string `json:"numerics"` // until then
}

// Adopt makes m go on under cfg, and with this program's numerics, and records
// in the model what was before, the last 32 times. It can change what needs neither a table nor a
// head remade: DuplicateWindow (a shorter one keeps the latest events, a longer
// one cannot know again what was forgotten), LabelTrust, TrustBy and
// the thresholds of alarms that run. Other differences are an error that names them, and m is unchanged. If nothing differs, nothing
// is recorded.
func (m *Model) Adopt(cfg Config) error {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		return fmt.Errorf("adopt configuration: %w", err)
	}
	keeps := cfg
	keeps.DuplicateWindow, keeps.LabelTrust, keeps.TrustBy = m.cfg.DuplicateWindow, m.cfg.LabelTrust, m.cfg.TrustBy
	if keeps.Alarms.Off == m.cfg.Alarms.Off {
		keeps.Alarms = m.cfg.Alarms
	}
	if d := keeps.Differences(m.cfg); len(d) > 0 {
		return fmt.Errorf("adopt configuration: a model of %d events cannot change %s; keep these as they were, or start a new model",
			m.events, strings.Join(d, "; "))
	}
	if len(cfg.Differences(m.cfg)) == 0 && m.numerics == numerics() {
		return nil
	}
	m.adoptions = append(m.adoptions, Adoption{Events: m.events, Config: m.cfg, Numerics: m.numerics})
	m.adoptions = slices.Clone(m.adoptions[max(0, len(m.adoptions)-maxAdoptions):])
	if cfg.DuplicateWindow != m.cfg.DuplicateWindow {
		m.seen.Resize(cfg.DuplicateWindow)
	}
	m.cfg, m.numerics = cfg, numerics()
	for _, h := range []*half{m.text, m.vector} {
		if h != nil && h.watch != nil {
			h.watch.retune(cfg.Alarms)
		}
	}
	return nil
}

// Adoptions returns what m has adopted, in order, the last 32 times.
func (m *Model) Adoptions() []Adoption { return slices.Clone(m.adoptions) }

// mathematics is the version of everything that turns a log into a model's
// bytes. Whoever changes a formula, a constant or an order of summation there
// counts it up.
const mathematics = 10

func numerics() string { return fmt.Sprintf("%d %s", mathematics, runtime.GOARCH) }
