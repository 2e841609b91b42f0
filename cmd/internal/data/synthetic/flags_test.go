package synthetic

import (
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
)

// Flags count events from 1, a Config counts them from 0.
func TestFlags(t *testing.T) {
	three, share, none, much := uint64(3), .2, .0, 2.
	f := Flags{MailSeed: &three, NewCampaign: 100, CampaignShare: &share, BadFeed: 2, BadFeedRate: &share}
	got, err := f.Config()
	want := Config{Seed: 3, CampaignAt: 99, CampaignShare: .2, BadFeedAt: 1, BadFeedRate: .2}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if got, err := new(Flags).Config(); err != nil || got != (Config{}) {
		t.Errorf("no flags: %+v, %v", got, err)
	}
	for _, c := range []struct {
		flags Flags
		want  string
	}{
		{Flags{NewCampaign: 1}, "--new-campaign: event 1"},
		{Flags{NewPolicy: -1}, "--new-policy: event -1"},
		{Flags{BadFeed: 5, BadFeedRate: &none}, "--bad-feed-rate: 0 is not a share"},
		{Flags{NewCampaign: 5, CampaignShare: &much}, "--campaign-share: 2 is not a share"},
		{Flags{NewPolicy: 5, CampaignShare: &share}, "--campaign-share: nothing changes without --new-campaign N"},
		{Flags{NewPolicy: 5, BadFeedRate: &share}, "--bad-feed-rate: nothing changes without --bad-feed N"},
	} {
		if _, err := c.flags.Config(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want an error with %q", c.flags, err, c.want)
		}
	}
}

// Given finds every flag, also one that is given its default.
func TestGiven(t *testing.T) {
	if flag := new(Flags).Given(); flag != "" {
		t.Errorf("%s was given by nobody", flag)
	}
	for _, args := range [][]string{
		{"--mail-seed", "0"}, {"--new-campaign", "9"}, {"--campaign-share", "0.3"},
		{"--new-policy", "9"}, {"--bad-feed", "9"}, {"--bad-feed-rate", "0.5"},
	} {
		var f Flags
		if _, err := cli.Parse(cli.Program{Name: "test", Grammar: &f}, args, cli.IO{}); err != nil {
			t.Fatal(err)
		}
		if f.Given() != args[0] {
			t.Errorf("%v: given %q", args, f.Given())
		}
	}
}
