package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"hamlet/algos/blr"
	"hamlet/algos/drift"
	"hamlet/algos/ensemble"
	"hamlet/algos/feature"
	"hamlet/algos/text"
)

// A Config configures a model. It is part of the model's bytes. A zero field means its
// default.
//
// The tags of a field hold its key, default, bounds and help. adopt:"yes" lets
// [Model.Adopt] change it. [Fields], [Config.Set], [Config.Differences], the commands'
// help and the configuration file use the tags. filled and validate hold all other rules.
type Config struct {
	TableBits       int      `json:"table_bits" default:"18" min:"8" max:"23" help:"Binary logarithm of the slots in an expert's table; some tables have twice as many. A slot takes 8 bytes. 18 makes a mail model of 28 MiB, or of 8 MiB with the lean experts."`
	Dense           []string `json:"dense" shown:"none" help:"Names of a vector's numbers that are inputs of the head. All other names are hashed."`
	DuplicateWindow int      `json:"duplicate_window" default:"100000" min:"1" max:"16777216" adopt:"yes" help:"How many events back a copy is recognised, and how many messages have a label that a correction finds. An event takes 24 bytes of the model and up to 70 of memory."`
	TextExperts     []string `json:"text_experts" each:"expert" some:"yes" shown:"full" help:"Experts that read mail and text: full, or lean for a third of the cost, or a list"`
	PersonalExperts []string `json:"personal_experts,omitempty" shown:"none" each:"personal expert" help:"Experts that read as those of text_experts do, but learn each tenant's mail apart, for tenants that label the same mail differently. Recommended then: header-words,text-5grams,text-words, whose tables take 10 MiB. Possible"`
	SkipHeaders     []string `json:"skip_headers" shown:"none" help:"Names of mail headers that are not read; from-line is the mbox From line. Leave out what your own servers write where spam and ham were collected in different places."`
	LabelTrust      string   `json:"label_trust" shown:"all with dense names and ensembles, else text" enum:"text,all,none" adopt:"yes" help:"Which labels are weighted by the probability that they are true: those of mail and text, all, or none. Where there are dense names, experts over hashed names learn in full."`
	TrustBy         string   `json:"trust_by" default:"source" enum:"source,all" adopt:"yes" help:"Whose flip rate a label is trusted by: that of its source, or the common one."`
	Standing        string   `json:"standing" default:"agreement" enum:"agreement,none" adopt:"yes" help:"How much a source's labels count: by its agreement with the other sources, or all the same."`
	WithoutSources  []string `json:"without_sources,omitempty" shown:"none" adopt:"yes" help:"Sources whose events are left out from the first on, as if they had never taught. A model that exists can only learn from one of them again."`
	SetAside        []string `json:"set_aside,omitempty" shown:"none" help:"Keys of events that are not learnt, because learning them ended in a panic. Learners add to it by themselves, and the dead letter of an event names its key."`
	SpamShare       bool     `json:"spam_share" help:"Give the head of mail and text the recent share of spam as an input. It helps where labels come late."`

	// Frozen names the frozen expert. [Config.WithFrozen] sets it; [New] needs the expert too.
	Frozen string       `json:"frozen,omitempty" shown:"none" help:"SHA-256 of the file of hamlet freeze whose expert is one more input for mail and text. It never learns. --frozen names the file."`
	frozen *text.Frozen // nil: none, or WithFrozen was not called

	TextHead   Head `json:"text_head"`   // of mail and text
	VectorHead Head `json:"vector_head"` // of vectors

	// In any order. A nil list means the default; an empty list means no ensembles.
	TextEnsembles   []string `json:"text_ensembles" shown:"none" each:"ensemble" help:"Ensembles that are rebuilt for mail and text"`
	VectorEnsembles []string `json:"vector_ensembles" shown:"logit-trees with 1 to 512 dense names, else none" each:"ensemble" help:"Ensembles that are rebuilt for vectors"`

	SecondHead float64 `json:"second_head" help:"Forgetting factor an event, 0.5 to 1, of a second head for streams that drift; 0 means no second head."`
	Window     int     `json:"window" default:"4000" help:"How many of the latest events an ensemble is built from."`
	Rebuild    int     `json:"rebuild" default:"500" help:"After how many events, at most, ensembles are rebuilt; a multiple of 50. While that is more than a tenth of all events, they are rebuilt after a tenth."`
	Rounds     int     `json:"rounds" default:"100" min:"1" max:"1000" help:"How many rounds an ensemble is built in, at most. A window gives one round for ten events."`

	Alarms Alarms `json:"alarms"`
}

// A Head says how a head learns.
type Head struct {
	Site     string `json:"site" default:"rvga" enum:"rvga,jj,exact-rvga" help:"How the head approximates a likelihood: rvga, jj (Jaakkola-Jordan) or exact-rvga."`
	HalfLife int    `json:"half_life" min:"0" help:"Events after which what the head has learnt counts half; 0 is for ever."`
	Refresh  int    `json:"refresh" min:"0" help:"After how many events the head solves its last 2,500 sites again; 0 is never."`
}

// Alarms configures the alarms. The defaults are package drift's; its MEASURED.md has
// their rates of false alarms. Adopt can change thresholds but not Off: alarms that were
// off have no state.
type Alarms struct {
	Off       bool    `json:"off" help:"No alarms. They take a second head and 170 KB of the model."`
	Drop      float64 `json:"drop" adopt:"yes" shown:"0.2" help:"Label noise is raised when ln SNR lies this far below its running median, in nats."`
	Confirmed float64 `json:"confirmed" adopt:"yes" shown:"0.1, or drop if that is less" help:"Label noise is raised when ln SNR lies this far below, in nats, while the flip rate is above flip_rate."`
	FlipRate  float64 `json:"flip_rate" adopt:"yes" shown:"0.01" help:"The flip rate that confirms a small drop."`
	Clear     float64 `json:"clear" adopt:"yes" shown:"half of confirmed" help:"Label noise is cleared when the drop is below this, in nats."`
	Covariate float64 `json:"covariate" adopt:"yes" shown:"0.65, of surprise 0.6" help:"Covariate is raised when leverage or surprise lies this far above its past, in standard deviations of one event."`
	Concept   float64 `json:"concept" adopt:"yes" shown:"28" help:"Concept is raised when the log loss has exceeded its running mean by this many nats in all (Page-Hinkley)."`
}

// The largest configuration that New accepts. A head of 4,096 inputs takes three
// triangles of 64 MiB and some 50 ms an event.
const (
	MaxDense  = 4096
	MaxWindow = 1 << 16 // of Config.Window and Config.Rebuild

	// Up to MaxDenseByDefault dense names, ensembles run by default. Up to as many inputs
	// without the bias, the label-noise monitor has its own head. Its forgetting costs
	// O(D³) at every 50th event.
	MaxDenseByDefault = 512

	// MaxWindowInputs bounds (Window+Rebuild)·len(Dense) with ensembles of vectors. Every
	// save contains these numbers, 4 bytes each: 128 MiB.
	MaxWindowInputs = 1 << 25
)

// Values of a Config's fields.
const (
	SiteRVGA           = "rvga" // of Head.Site, package blr's
	SiteJaakkolaJordan = "jj"
	SiteExactRVGA      = "exact-rvga"

	TrustText = "text" // of Config.LabelTrust: weight labels of mail and text by their trust
	TrustAll  = "all"  // and labels of vectors
	TrustNone = "none" // every label counts in full

	TrustBySource = "source" // of Config.TrustBy
	TrustByAll    = "all"

	StandingAgreement = "agreement" // of Config.Standing
	StandingNone      = "none"

	FromLine = feature.FromLine // in Config.SkipHeaders, the mbox "From " line

	DefaultTableBits = 18 // Config.TableBits
)

var siteByName = map[string]blr.Approximation{
	SiteRVGA: blr.RVGA, SiteJaakkolaJordan: blr.JaakkolaJordan, SiteExactRVGA: blr.ExactRVGA,
}

// filled replaces zero fields by the defaults of package drift.
func (a Alarms) filled() (Alarms, error) {
	if a.Off {
		return Alarms{Off: true}, nil
	}
	n := drift.LabelNoiseConfig{Dim: 1, Drop: a.Drop, Confirmed: a.Confirmed, FlipRate: a.FlipRate, Clear: a.Clear}
	covariate, concept := drift.CovariateConfig{Threshold: a.Covariate}, drift.PageHinkleyConfig{Threshold: a.Concept}
	if err := errors.Join(n.Fill(), covariate.Fill(), concept.Fill()); err != nil {
		return a, err
	}
	return Alarms{
		Drop: n.Drop, Confirmed: n.Confirmed, FlipRate: n.FlipRate, Clear: n.Clear,
		Covariate: covariate.Threshold, Concept: concept.Threshold,
	}, nil
}

// filled replaces zero fields by their defaults and puts names in canonical order. The
// result shares no memory with c.
func (c Config) filled() Config {
	fillDefaults(&c)
	c.SecondHead += 0 // −0 is 0
	if c.Frozen == "none" {
		c.Frozen = ""
	}
	if len(c.TextExperts) == 0 {
		c.TextExperts = text.Default()
	} else if set := text.Set(c.TextExperts[0]); set != nil && len(c.TextExperts) == 1 {
		c.TextExperts = set
	}
	if c.VectorEnsembles == nil && len(c.Dense) > 0 && len(c.Dense) <= MaxDenseByDefault {
		c.VectorEnsembles = []string{string(ensemble.LogitTrees)}
	}
	if c.LabelTrust == "" {
		c.LabelTrust = TrustText
		if len(c.Dense) > 0 && len(c.VectorEnsembles) > 0 {
			c.LabelTrust = TrustAll
		}
	}
	if a, err := c.Alarms.filled(); err == nil {
		c.Alarms = a
	}
	c.TextEnsembles, c.VectorEnsembles = inOrder(c.TextEnsembles), inOrder(c.VectorEnsembles)
	c.TextExperts = slices.Clone(c.TextExperts)
	c.PersonalExperts = append([]string{}, c.PersonalExperts...)
	c.SkipHeaders = append([]string{}, c.SkipHeaders...)
	for i, name := range c.SkipHeaders {
		c.SkipHeaders[i] = strings.ToLower(name)
	}
	slices.Sort(c.SkipHeaders)
	c.WithoutSources = append([]string{}, c.WithoutSources...)
	slices.Sort(c.WithoutSources)
	c.SetAside = append([]string{}, c.SetAside...)
	slices.Sort(c.SetAside)
	c.Dense = append([]string{}, c.Dense...) // never nil: JSON says [], not null
	slices.Sort(c.Dense)
	return c
}

// inOrder returns a copy of kinds in the order of ensemble.Kinds, unknown ones last. It is
// never nil.
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
	errs := checkTags(&c)
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.Dense) > MaxDense {
		bad("dense: %d names, more than %d; leave some out, they are hashed then", len(c.Dense), MaxDense)
	}
	for _, name := range c.Dense {
		if name == "" {
			bad("dense: a name is empty")
		} else if !utf8.ValidString(name) {
			bad("dense: %q is not UTF-8", name)
		}
	}
	for _, name := range c.SkipHeaders {
		if name == "" || strings.ContainsAny(name, ": \t\n") {
			bad("skip_headers: %q is not the name of a header", name)
		}
	}
	for _, name := range c.TextExperts {
		if text.Set(name) != nil {
			bad("text_experts: %s is a set of experts; it stands alone", name)
		}
	}
	errs = append(errs, c.checkWithoutSources()...)
	errs = append(errs, c.checkSetAside()...)
	if err := c.checkFrozen(); err != nil {
		errs = append(errs, err)
	}
	if ρ := c.SecondHead; ρ != 0 && !(ρ >= 0.5 && ρ < 1) {
		bad("second_head: ρ = %v is neither 0 (no second head) nor in [½, 1)", ρ)
	}
	if c.Window < drift.Rhythm || c.Window > MaxWindow {
		bad("window: %d is not in %d…%d", c.Window, drift.Rhythm, MaxWindow)
	}
	if c.Rebuild < drift.Rhythm || c.Rebuild > MaxWindow || c.Rebuild%drift.Rhythm != 0 {
		bad("rebuild: %d is not a multiple of %d up to %d", c.Rebuild, drift.Rhythm, MaxWindow)
	}
	if _, err := c.Alarms.filled(); err != nil {
		bad("alarms: %w", err)
	}
	if len(errs) == 0 && len(c.VectorEnsembles) > 0 && (c.Window+c.Rebuild)*len(c.Dense) > MaxWindowInputs {
		bad("window + rebuild: %d events of %d dense names are more than %d numbers, 128 MiB, "+
			"for ensembles of vectors: take at most %d events, fewer names, or no ensembles",
			c.Window+c.Rebuild, len(c.Dense), MaxWindowInputs, MaxWindowInputs/len(c.Dense))
	}
	return errors.Join(errs...)
}

// JSON returns c in canonical form: every field filled in, names sorted where their
// order means nothing. personal_experts, frozen, without_sources and set_aside are left out
// if they are empty. Equal configurations have equal bytes.
func (c Config) JSON() []byte {
	b, err := json.Marshal(c.filled())
	if err != nil {
		panic(err) // a NaN or ±Inf; New refuses them
	}
	return b
}
