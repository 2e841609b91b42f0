package synthetic

import (
	"strings"
	"testing"
)

// Flags count events from 1, a Config counts them from 0.
func TestFlags(t *testing.T) {
	f := Flags{MailSeed: 3, NewCampaign: 100, CampaignShare: .2, BadFeed: 2, BadFeedRate: .4}
	got, err := f.Config()
	want := Config{Seed: 3, CampaignAt: 99, CampaignShare: .2, BadFeedAt: 1, BadFeedRate: .4}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if none := (&Flags{CampaignShare: .3, BadFeedRate: .5}); none.Changes() || !f.Changes() {
		t.Error("Changes says the opposite")
	}
	for _, c := range []struct {
		flags Flags
		want  string
	}{
		{Flags{NewCampaign: 1, CampaignShare: .3, BadFeedRate: .5}, "--new-campaign: event 1"},
		{Flags{NewPolicy: -1, CampaignShare: .3, BadFeedRate: .5}, "--new-policy: event -1"},
		{Flags{BadFeed: 5, CampaignShare: .3}, "--bad-feed-rate: 0 is not a share"},
		{Flags{CampaignShare: 2, BadFeedRate: .5}, "--campaign-share: 2 is not a share"},
	} {
		if _, err := c.flags.Config(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want an error with %q", c.flags, err, c.want)
		}
	}
}
