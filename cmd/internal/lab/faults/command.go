// Laboratory: a campaign of faults against hamlet on real servers.

// Package faults is `hamlet-lab faults`: it breaks what hamlet runs on, under load, and
// checks what is left.
//
//	sender ─HTTP─> ingest ─┐                 ┌─> learner a, b ─┐          ┌─> scorer <─┐
//	                       proxy ─> Kafka ─> proxy             proxy ─> Redis         proxy ─> NATS <─ asker
//
// Kafka, NATS and Redis are real, started by deploy/servers. The services are processes
// of the program hamlet, started as hamlet-learner and so on. A hamlet up
// with a folder and a NATS of its own is a second system, with its own sender and asker. A third one,
// the machine, is a hamlet up too, and its folder is on a disk of its own: a file with a file system,
// mounted over a loop device. Its rounds follow those of the other two, one fault after the other:
//
//   - power: the program is stopped, the disk copied, the program killed, and the copy mounted in the
//     disk's place. It has what was written to the device, nothing that was in memory.
//   - flip: a bit of a file of the log, the store or NATS, while hamlet runs or between two starts. Hamlet
//     meets it and starts on it; it is healed before the checks. So what is lost was not lost by the medium.
//   - full: nothing is left of the disk, while hamlet runs or before it starts. Labels are refused with that
//     reason, and answers go on.
//   - clock: the wall clock is set back or forth by minutes to years, while hamlet runs or between two
//     starts, and stays wrong. Hamlet is built with another time.Now for that: see buildSkewed.
//
// A campaign is made of rounds. In a round the plan's next faults are injected while
// events are sent and questions asked. Then everything settles: all that the log holds
// is learnt, saved and served. The checks follow.
//
//   - Same bytes: the log is read and applied to a fresh model. The model in Redis has the
//     same bytes and the same position, with the hash of all records.
//   - Lost: every event that ingest acknowledged was learnt exactly once.
//   - Wrong: an answer names a model and its position. The replay's model there has the
//     same SHA-256 and gives the same answer, to the bit. An event in the log says what
//     was sent.
//
// A model serves for some rounds, an era. The next era has a model of another name, whose log is
// short: every check replays the log. The machine has another file system then.
//
// A fault is survived if no process ended by itself around it and its round settled. A
// process that cannot reach a server at its start ends; the campaign starts it again, as
// a supervisor would.
//
// # Rules
//
//   - Equal seeds give equal plans. When a fault hits what is not determined.
//   - On the way a byte is flipped only where a checksum covers it: in Kafka's record batches, by
//     their CRC, and in a model's chunks in Redis, by their SHA-256. Nothing covers other
//     requests and replies of Kafka and Redis, and nothing covers a message of NATS.
//   - Nothing that a campaign started outlives it: all of it is in the process group of a
//     guard, which kills the group and the servers when the campaign's end of a pipe
//     closes.
package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/lab/product"
	"hamlet/cmd/internal/process/cli"
)

// Command is `hamlet-lab faults`.
type Command struct {
	For     time.Duration `help:"Begin new rounds of faults for this long." default:"2m" placeholder:"D"`
	Only    []string      `help:"Inject only these faults, by what is done (power, flip, full, clock, kill …) or to what (machine, kafka …)." placeholder:"WORD,…"`
	Seed    *uint64       `help:"Seed of the plan and of the mail (default random, printed)." placeholder:"S"`
	Rate    float64       `help:"Events a second that are sent." default:"60" placeholder:"N"`
	Servers string        `help:"The script of hamlet's source tree that starts Kafka, NATS and Redis." default:"./deploy/servers" placeholder:"PATH"`
	Keep    string        `help:"Keep data and logs in this directory, which must be empty or new." type:"path" placeholder:"DIR"`
	JSON    bool          `name:"json" help:"Print one object in JSON instead of a table."`
}

// Help is shown by kong below the flags.
func (Command) Help() string {
	return `Examples:
  hamlet-lab faults                        two minutes
  hamlet-lab faults --for 1h --keep run/   logs and data stay in run/
  hamlet-lab faults --seed 7               the plan of seed 7 again
  hamlet-lab faults --only machine         no Kafka, NATS and Redis
  hamlet-lab faults --only power,clock:up  loss of power, and the clock of up

It starts Kafka, NATS and Redis on loopback, ingest, two learners and a scorer as processes, and a
hamlet up with a folder of its own. Under load it kills, stops and restarts each of them in random
order; cuts and slows their connections; flips bytes that a checksum covers; sets Redis back, and
empties it. Another hamlet up has a disk of its own, in a file. There the power fails, bits flip in
each kind of file, and the disk is full. Clocks are set back and forth by minutes to years.

The disk needs root, loop devices and mkfs.ext4 (mkfs.xfs and mkfs.btrfs are used too). Clocks need
the Go toolchain and hamlet's source tree, that of --servers. What is missing is said, and the table
ends with what was not injected; with --only that is a failure.

After each round of faults it compares:

  same bytes   the model in Redis with a fresh replay of the log
  lost         every event that ingest acknowledged with the log: learnt once
  wrong        every answer with what the model that it names says; every
               event with what was sent
  named        of the flips in files those that hamlet has named in its log

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
	for _, word := range c.Only {
		if len(chosen(slices.Concat(choices, machineChoices), []string{word})) == 0 {
			return cli.Usagef("--only: %q is unknown; give one of %s, or an action and a target, such as flip:machine", word,
				strings.Join(words(), ", "))
		}
	}
	hamlet, err := product.Path()
	if err != nil {
		return err
	}
	seed := rand.Uint64N(1 << 32)
	if c.Seed != nil {
		seed = *c.Seed
	}
	only := ""
	if len(c.Only) > 0 {
		only = " --only " + strings.Join(c.Only, ",")
	}
	fmt.Fprintf(stdio.Err, "seed %d: hamlet-lab faults --seed %d --for %v%s repeats the plan\n", seed, seed, c.For,
		only)
	table, err := (&campaign{Command: *c, seed: seed, hamlet: hamlet, err: stdio.Err}).run(ctx)
	var printed error
	if c.JSON {
		printed = cli.PrintJSON(stdio.Out, table)
	} else {
		printed = table.section().Print(stdio.Out)
	}
	return errors.Join(printed, err, table.Err(len(c.Only) > 0))
}
