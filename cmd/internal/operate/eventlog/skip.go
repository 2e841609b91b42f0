package eventlog

import (
	"context"
	"fmt"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/progress"
	"hamlet/stream"
)

type skipCommand struct {
	From int64 `arg:"" help:"The first offset to leave out."`
	To   int64 `arg:"" help:"The offset behind the last one."`
	settings.ModelName
}

// Help is what kong prints below the flags.
func (skipCommand) Help() string {
	return `Example:

  hamlet log skip 4711 4712 --data /var/lib/hamlet

A learner that comes to a damaged record ends with an error that names its file and offsets.
Restore that file from a backup of the folder, if there is one. Or leave the offsets out with this
command, and start hamlet up again: the model is then the one of a log without them. The bytes
stay where they are.`
}

// Skipped is what `hamlet log skip --json` prints.
type Skipped struct {
	Log  string `json:"log"`
	From int64  `json:"from"`
	To   int64  `json:"to"` // is not left out
}

func (c *skipCommand) run(ctx context.Context, logs stream.Logs, _ *progress.Counter) (any, string, error) {
	m, ok := logs.(machine.Machine)
	if !ok {
		return nil, "", cli.Usagef("Kafka itself sees to damage: this is for the folder of a hamlet up, --data DIR")
	}
	name := stream.EventsTopic(c.Model)
	if err := m.Skip(ctx, name, c.From, c.To); err != nil {
		return nil, "", err
	}
	return Skipped{name, c.From, c.To},
		fmt.Sprintf("The offsets %d to %d of log %s are left out. Start hamlet up again.\n", c.From, c.To-1, name), nil
}
