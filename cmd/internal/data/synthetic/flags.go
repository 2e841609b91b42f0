package synthetic

import (
	"errors"
	"fmt"
)

// Flags are the flags of synthetic mail, for kong to fill. Eval and up embed them.
type Flags struct {
	MailSeed      *uint64  `help:"Seed of the mail." placeholder:"0" group:"Synthetic mail"`
	NewCampaign   int      `help:"From event N on, part of the mail is of a new kind." placeholder:"N" group:"Synthetic mail"`
	CampaignShare *float64 `help:"Fraction of mail that is of the new kind." placeholder:"0.3" group:"Synthetic mail"`
	NewPolicy     int      `help:"Newsletters count as spam from event N on." placeholder:"N" group:"Synthetic mail"`
	BadFeed       int      `help:"Source user-reports gives wrong labels from N on." placeholder:"N" group:"Synthetic mail"`
	BadFeedRate   *float64 `help:"Share of its labels that is wrong." placeholder:"0.5" group:"Synthetic mail" rare:"up"`
}

// Config returns the configuration of f. It reports every invalid flag.
func (f *Flags) Config() (Config, error) {
	var cfg Config
	if f.MailSeed != nil {
		cfg.Seed = *f.MailSeed
	}
	var errs []error
	at := func(flag string, n int) int {
		if n == 1 || n < 0 {
			errs = append(errs, fmt.Errorf("%s: event %d: a change comes with the second event at the earliest", flag, n))
		}
		return max(0, n-1)
	}
	// share returns the strength of a change; 0 means the default of Config.
	share := func(flag string, v *float64, of string, n int) float64 {
		switch {
		case v == nil:
			return 0
		case n == 0:
			errs = append(errs, fmt.Errorf("%s: nothing changes without %s N", flag, of))
		case !(*v > 0 && *v <= 1):
			errs = append(errs, fmt.Errorf("%s: %v is not a share above 0, up to 1", flag, *v))
		}
		return *v
	}
	cfg.CampaignAt = at("--new-campaign", f.NewCampaign)
	cfg.CampaignShare = share("--campaign-share", f.CampaignShare, "--new-campaign", f.NewCampaign)
	cfg.PolicyAt = at("--new-policy", f.NewPolicy)
	cfg.BadFeedAt = at("--bad-feed", f.BadFeed)
	cfg.BadFeedRate = share("--bad-feed-rate", f.BadFeedRate, "--bad-feed", f.BadFeed)
	return cfg, errors.Join(errs...)
}

// Given returns the first of the flags that was given, "" if none was.
func (f *Flags) Given() string {
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"--mail-seed", f.MailSeed != nil},
		{"--new-campaign", f.NewCampaign != 0}, {"--campaign-share", f.CampaignShare != nil},
		{"--new-policy", f.NewPolicy != 0},
		{"--bad-feed", f.BadFeed != 0}, {"--bad-feed-rate", f.BadFeedRate != nil},
	} {
		if flag.given {
			return flag.name
		}
	}
	return ""
}
