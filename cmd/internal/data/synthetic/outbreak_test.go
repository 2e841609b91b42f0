package synthetic

import (
	"slices"
	"strings"
	"testing"

	"hamlet/algos/drift"
	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/example"
	"hamlet/stream"
	"hamlet/stream/mail"
)

// Even when hundreds of an outbreak's letters have been sent, three in four have at
// least 15 % of words that no letter had before; half of other spam has less than 5 %.
func TestOutbreakIsUnheardOf(t *testing.T) {
	const n, at = 3000, 2000
	seen := map[string]bool{}
	var fresh [2][]float64 // before and after at
	for i, item := range list(t, Config{Seed: 9, CampaignAt: at, CampaignShare: 1}, n, source.FlipConfig{}) {
		words := strings.Fields(string(mail.Parse(item.Event.Body.Mail).Text))
		unheard := 0
		for _, w := range words {
			if !seen[w] {
				seen[w] = true
				unheard++
			}
		}
		outbreak := i >= at
		if outbreak && item.Truth != stream.Spam {
			t.Fatalf("message %d of the outbreak is ham", i)
		}
		switch share := float64(unheard) / float64(max(1, len(words))); {
		case outbreak:
			fresh[1] = append(fresh[1], share)
		case i >= 1500 && item.Truth == stream.Spam:
			fresh[0] = append(fresh[0], share)
		}
	}
	for _, f := range fresh {
		slices.Sort(f)
	}
	before, late := fresh[0][len(fresh[0])/2], fresh[1][len(fresh[1])/4]
	if before > .05 || late < .15 {
		t.Errorf("unheard words: %.3f of other spam's in the middle, %.3f of an outbreak's in the lowest quarter", before, late)
	}
}

// Only an outbreak raises the alarm for new mail. The alarm may clear and be raised again
// while the outbreak lasts.
func TestOutbreakRaisesCovariate(t *testing.T) {
	const n, at = 2300, 2000
	for _, seed := range []uint64{1, 2, 3} {
		for _, cfg := range []Config{{Seed: seed, CampaignAt: at}, {Seed: seed, PolicyAt: at}} {
			m, err := model.New(model.Config{})
			if err != nil {
				t.Fatal(err)
			}
			var raised []int
			for item, err := range items(t, cfg, n, source.FlipConfig{}) {
				if err != nil {
					t.Fatal(err)
				}
				ex, _, err := example.Of(&item.Event)
				if err != nil {
					t.Fatal(err)
				}
				effect, err := m.Apply(&ex)
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range effect.Alerts {
					if a.State == drift.Raised && a.Kind == drift.KindCovariate {
						raised = append(raised, item.Ordinal+1)
					}
				}
			}
			if outbreak := cfg.CampaignAt > 0; outbreak != (len(raised) > 0 && raised[0] > at) || !outbreak && len(raised) > 0 {
				t.Errorf("seed %d, outbreak %v: covariate raised at %v", seed, outbreak, raised)
			}
		}
	}
}
