package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"hamlet/cmd/internal/cli"
)

// Command is `hamlet lab faults`.
type Command struct {
	For     time.Duration `help:"Begin new rounds of faults for this long." default:"2m" placeholder:"D"`
	Seed    *uint64       `help:"Seed of the plan and of the mail (default random, printed)." placeholder:"S"`
	Rate    float64       `help:"Events a second that are sent." default:"60" placeholder:"N"`
	Servers string        `help:"The script of hamlet's source tree that starts Kafka, NATS and Redis." default:"./deploy/servers" placeholder:"PATH"`
	Keep    string        `help:"Keep data and logs in this directory, which must be empty or new." type:"path" placeholder:"DIR"`
	JSON    bool          `name:"json" help:"Print one object in JSON instead of a table."`
}

// Help is shown by kong below the flags.
func (Command) Help() string {
	return `Examples:
  hamlet lab faults                        two minutes
  hamlet lab faults --for 1h --keep run/   logs and data stay in run/
  hamlet lab faults --seed 7               the plan of seed 7 again

It starts Kafka, NATS and Redis on loopback, ingest, two learners and a scorer as processes, and a
hamlet up with embedded servers. Under load it kills, stops and restarts each of them in random
order; cuts and slows their connections; flips bytes that a checksum covers; sets Redis back, and
empties it. After each round of faults it compares:

  same bytes   the model in Redis with a fresh replay of the log
  lost         every event that ingest acknowledged with the log: learnt exactly once
  wrong        every answer with what the model that it names says; every event with what was sent

It fails (exit status 1) if anything is lost, wrong or not the same bytes, or if a process ended by
itself. Two campaigns of one seed inject the same faults; their times differ.`
}

// mostRate bounds Rate: a campaign is about faults, not about speed.
const mostRate = 10_000

// Run runs a campaign and prints its table, also if it is interrupted.
func (c *Command) Run(ctx context.Context, stdio cli.IO) error {
	switch {
	case c.For <= 0:
		return cli.Usagef("--for: %v is not above zero", c.For)
	case !(c.Rate >= 1 && c.Rate <= mostRate):
		return cli.Usagef("--rate: %v is not in 1…%d", c.Rate, mostRate)
	}
	if c.Keep != "" {
		if entries, err := os.ReadDir(c.Keep); err == nil && len(entries) > 0 {
			return cli.Usagef("--keep: %s is not empty", c.Keep)
		}
	}
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	cfg := config{For: c.For, Rate: c.Rate, Script: c.Servers, Executable: executable, Keep: c.Keep, Seed: rand.Uint64N(1 << 32)}
	if c.Seed != nil {
		cfg.Seed = *c.Seed
	}
	fmt.Fprintf(stdio.Err, "seed %d: hamlet lab faults --seed %d --for %v repeats the plan\n", cfg.Seed, cfg.Seed, c.For)
	table, err := (&campaign{cfg: cfg, err: stdio.Err}).run(ctx)
	print := table.write
	if c.JSON {
		print = table.writeJSON
	}
	return errors.Join(print(stdio.Out), err, table.Err())
}
