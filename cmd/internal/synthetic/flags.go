package synthetic

import (
	"errors"
	"fmt"
)

// Flags are the flags of synthetic mail, for kong to fill: what changes in it, and
// when. Eval and up embed them.
type Flags struct {
	MailSeed      uint64  `help:"Seed of the synthetic mail." default:"0" placeholder:"S" group:"Synthetic mail"`
	NewCampaign   int     `help:"From event N on, counted from 1, part of the mail is an outbreak of campaigns unlike any before: the mail changed, alarm covariate." placeholder:"N" group:"Synthetic mail"`
	CampaignShare float64 `help:"Share of that outbreak; 0.3 unless given." default:"0.3" placeholder:"SHARE" group:"Synthetic mail"`
	NewPolicy     int     `help:"From event N on newsletters count as spam: the same mail means something else, the world changed, alarm concept." placeholder:"N" group:"Synthetic mail"`
	BadFeed       int     `help:"From event N on the source user-reports, a quarter of the events, tells wrong labels: labels went bad, alarm label-noise." placeholder:"N" group:"Synthetic mail"`
	BadFeedRate   float64 `help:"Share of its labels that is wrong then; 0.5 unless given." default:"0.5" placeholder:"RATE" group:"Synthetic mail"`
}

// Config returns what f asks for. A setting that makes no sense is an error.
func (f *Flags) Config() (Config, error) {
	cfg := Config{Seed: f.MailSeed}
	var errs []error
	at := func(flag string, n int) int {
		if n == 1 || n < 0 {
			errs = append(errs, fmt.Errorf("%s: event %d: a change comes with the second event at the earliest", flag, n))
		}
		return max(0, n-1)
	}
	share := func(flag string, v float64) float64 {
		if !(v > 0 && v <= 1) {
			errs = append(errs, fmt.Errorf("%s: %v is not a share above 0, up to 1", flag, v))
		}
		return v
	}
	cfg.CampaignAt, cfg.CampaignShare = at("--new-campaign", f.NewCampaign), share("--campaign-share", f.CampaignShare)
	cfg.PolicyAt = at("--new-policy", f.NewPolicy)
	cfg.BadFeedAt, cfg.BadFeedRate = at("--bad-feed", f.BadFeed), share("--bad-feed-rate", f.BadFeedRate)
	return cfg, errors.Join(errs...)
}

// Changes reports whether f asks for a change, which no other mail can have.
func (f *Flags) Changes() bool { return f.NewCampaign != 0 || f.NewPolicy != 0 || f.BadFeed != 0 }
