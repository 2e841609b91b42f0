package settings

import (
	"cmp"
	"strings"

	"github.com/alecthomas/kong"

	"hamlet/cmd/internal/cli"
)

// goneFlags are flags of the model that were there once. Each is wrong usage that names the
// key of the configuration that took its place.
type goneFlags struct {
	DuplicateWindow goneFlag `hidden:"" key:"duplicate_window"`
	TextExperts     goneFlag `hidden:"" key:"text_experts"`
	LabelTrust      goneFlag `hidden:"" key:"label_trust"`
	TrustBy         goneFlag `hidden:"" key:"trust_by"`
	SpamShare       goneFlag `hidden:"" key:"spam_share" was:"true"`
	TextSite        goneFlag `hidden:"" key:"text_head.site"`
	TextHalfLife    goneFlag `hidden:"" key:"text_head.half_life"`
	TextRefresh     goneFlag `hidden:"" key:"text_head.refresh"`
	VectorSite      goneFlag `hidden:"" key:"vector_head.site"`
	VectorHalfLife  goneFlag `hidden:"" key:"vector_head.half_life"`
	VectorRefresh   goneFlag `hidden:"" key:"vector_head.refresh"`
	EnsembleWindow  goneFlag `hidden:"" key:"window"`
	RebuildEvery    goneFlag `hidden:"" key:"rebuild"`
	AlarmDrop       goneFlag `hidden:"" key:"alarms.drop"`
	AlarmConfirmed  goneFlag `hidden:"" key:"alarms.confirmed"`
	AlarmFlipRate   goneFlag `hidden:"" key:"alarms.flip_rate"`
	AlarmClear      goneFlag `hidden:"" key:"alarms.clear"`
	AlarmCovariate  goneFlag `hidden:"" key:"alarms.covariate"`
	AlarmConcept    goneFlag `hidden:"" key:"alarms.concept"`
}

// goneTopicFlags are flags of topics that were there once. Each is wrong usage that says what
// to do. The value "still" is what is always so now, and is taken: 0.1.0's own files have it.
type goneTopicFlags struct {
	Partitions goneFlag `hidden:"" still:"1" instead:"a model has one log of one partition; leave it out"`
}

// goneLearnerFlags are flags of learning that were there once.
type goneLearnerFlags struct {
	Models         goneFlag `hidden:"" instead:"a model has one log, and one model learns it; leave it out"`
	Group          goneFlag `hidden:"" instead:"learners are in no consumer group; leave it out"`
	SessionTimeout goneFlag `hidden:"" instead:"a standby goes on about a second after the active learner; leave it out"`
}

type goneFlag struct{}

// Decode implements [kong.MapperValue]: kong calls it where the flag is given. The tag
// "was" is the value of a flag that took none.
func (goneFlag) Decode(ctx *kong.DecodeContext) error {
	tag := ctx.Value.Tag
	key, value := tag.Get("key"), tag.Get("was")
	given := ctx.Scan.Peek()
	if still := tag.Get("still"); still != "" && given.String() == still {
		ctx.Scan.Pop()
		return nil
	}
	if instead := tag.Get("instead"); instead != "" {
		return cli.Usagef("--%s is not a flag any more: %s", ctx.Value.Name, instead)
	}
	if value == "" && !given.IsEOL() && !strings.HasPrefix(given.String(), "--") {
		value = strings.ReplaceAll(strings.Trim(given.String(), "[]"), " ", ",") // a list of the file is [a b]
	}
	value = cmp.Or(value, "VALUE")
	return cli.Usagef("--%s is not a flag any more: set model.%s in the configuration file, or with eval --set %s=%s", ctx.Value.Name, key, key, value)
}
