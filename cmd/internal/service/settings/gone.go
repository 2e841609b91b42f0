package settings

import (
	"github.com/alecthomas/kong"

	"hamlet/cmd/internal/process/cli"
)

// goneTopicFlags are flags of topics that 0.1.0 had. Each is wrong usage that says what
// to do. The value "still" is what is always so now, and is taken: 0.1.0's own files have it.
type goneTopicFlags struct {
	Partitions goneFlag `hidden:"" still:"1" instead:"a model has one log of one partition; leave it out"`
}

// goneLearnerFlags are flags of learning that 0.1.0 had.
type goneLearnerFlags struct {
	Models         goneFlag `hidden:"" instead:"a model has one log, and one model learns it; leave it out"`
	Group          goneFlag `hidden:"" instead:"learners are in no consumer group; leave it out"`
	SessionTimeout goneFlag `hidden:"" instead:"a standby goes on about a second after the active learner; leave it out"`
}

type goneFlag struct{}

// Decode implements [kong.MapperValue]: kong calls it where the flag is given.
func (goneFlag) Decode(ctx *kong.DecodeContext) error {
	tag := ctx.Value.Tag
	if still := tag.Get("still"); still != "" && ctx.Scan.Peek().String() == still {
		ctx.Scan.Pop()
		return nil
	}
	return cli.Usagef("--%s is not a flag any more: %s", ctx.Value.Name, tag.Get("instead"))
}
