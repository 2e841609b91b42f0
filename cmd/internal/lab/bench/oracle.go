package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/door/oracle"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/process/cli"
	"hamlet/stream"
)

// Oracle holds the flags of `hamlet-lab bench oracle`.
type Oracle struct {
	Stream

	Share float64   `help:"Share of the messages that people label." default:"0.1" placeholder:"S"`
	Delay int       `help:"People label a message after so many further ones." default:"50" placeholder:"N"`
	Wrong []float64 `help:"Shares of false answers of the machines." default:"0.1,0.2,0.4" placeholder:"R,…"`
	From  int       `help:"Later errors are those from this message on." default:"1000" placeholder:"N"`
	Seeds int       `help:"Random choices to average." default:"5" placeholder:"N"`
	Seed  uint64    `help:"First seed of them." default:"1" placeholder:"S"`
	Output
}

// Help is shown by kong below the flags.
func (Oracle) Help() string {
	return `Examples:
  hamlet-lab bench oracle SMSSpamCollection
  hamlet-lab bench oracle --index index.csv corpus.tar.gz
  hamlet-lab bench oracle --wrong 0.05,0.3 --seeds 20 SMSSpamCollection

People label a random tenth of a stream. A machine that is wrong in some share of its answers labels
doubtful mail, by the rules of hamlet gateway --oracle, or without account: trusted from the first
message on, whatever it says. It is a program that answers over HTTP.

An error is a message whose p, before anything was learnt of it, is on the wrong side of one half.
"trusted" and "stopped" count the questions until then, the median of the seeds that got there.`
}

// An oracleRun is what one machine came to; of several seeds the mean.
type oracleRun struct {
	Machine string  `json:"machine"`
	Wrong   float64 `json:"wrong"`   // share of false answers
	Account bool    `json:"account"` // it is held to account

	Errors float64 `json:"errors"` // share of all messages
	Later  float64 `json:"later_errors"`
	Asked  float64 `json:"asked"`  // questions, in messages
	Taught float64 `json:"taught"` // answers that were learnt

	Trusted []int `json:"trusted_after"` // questions, of the seeds where it was
	Stopped []int `json:"stopped_after"`
	Seeds   int   `json:"seeds"`
}

// An oracleResult is the table.
type oracleResult struct {
	Command string      `json:"command"`
	Events  int         `json:"events"`
	Share   float64     `json:"share"`
	From    int         `json:"from"`
	Lines   []oracleRun `json:"lines"`

	took time.Duration
}

// Run measures every machine and prints the table.
func (c *Oracle) Run(ctx context.Context, stdio cli.IO) error {
	if err := atLeast(limit{"--delay", c.Delay, 0}, limit{"--from", c.From, 0}, limit{"--seeds", c.Seeds, 1}); err != nil {
		return err
	}
	for _, wrong := range c.Wrong {
		if err := cli.Range("--wrong", wrong, 0, 1); err != nil {
			return err
		}
	}
	if err := cli.Range("--share", c.Share, 0, 1); err != nil {
		return err
	}
	return c.run(ctx, stdio, c.Output, c.measure)
}

func (c *Oracle) measure(ctx context.Context, set *population, show *phases) (measurement, error) {
	if len(set.set) <= c.From {
		return nil, fmt.Errorf("--from %d leaves nothing to measure: there are %d events", c.From, len(set.set))
	}
	start := time.Now()
	r := &oracleResult{Command: commandLine(), Events: len(set.set), Share: c.Share, From: c.From}
	r.Lines = append(r.Lines, oracleRun{Machine: "people alone"})
	for _, account := range []bool{true, false} {
		for _, wrong := range c.Wrong {
			name := fmt.Sprintf("wrong in %.0f %%", 100*wrong)
			if !account {
				name += ", without account"
			}
			r.Lines = append(r.Lines, oracleRun{Machine: name, Wrong: wrong, Account: account})
		}
	}
	runs := make([]oracleRun, len(r.Lines)*c.Seeds)
	name := fmt.Sprintf("%d machines, %d times each", len(r.Lines), c.Seeds)
	err := show.each(ctx, name, len(runs)*len(set.set), len(runs), func(i int, turn func() error) (err error) {
		runs[i] = r.Lines[i/c.Seeds]
		return c.stream(ctx, set, i >= c.Seeds, &runs[i], c.Seed+uint64(i%c.Seeds), turn)
	})
	for i := range runs {
		r.Lines[i/c.Seeds].add(&runs[i], c.Seeds)
	}
	r.took = time.Since(start)
	return r, err
}

// add adds a seed's run to the mean of n.
func (r *oracleRun) add(one *oracleRun, n int) {
	r.Errors += one.Errors / float64(n)
	r.Later += one.Later / float64(n)
	r.Asked += one.Asked / float64(n)
	r.Taught += one.Taught / float64(n)
	r.Trusted, r.Stopped = append(r.Trusted, one.Trusted...), append(r.Stopped, one.Stopped...)
	r.Seeds = n
}

// stream runs a model over the stream. asks: there is a machine.
func (c *Oracle) stream(ctx context.Context, set *population, asks bool, run *oracleRun, seed uint64,
	turn func() error) error {
	m, err := model.New(set.model)
	if err != nil {
		return err
	}
	machine, err := startMachine(set, run.Wrong, seed)
	if err != nil {
		return err
	}
	defer machine.close()
	var (
		policy    oracle.Policy
		people    = rand.New(rand.NewPCG(seed, 1))
		predictor = m.NewPredictor()
		labelled  = make([]bool, len(set.set))
		doubtful  = make([]bool, len(set.set))
		asked     int
	)
	ask := func(i int) (bool, error) {
		asked++
		label, err := machine.client.Ask(ctx, &oracle.Question{ID: strconv.Itoa(i)})
		return label == stream.Spam, err
	}
	for i := range set.set {
		if err := turn(); err != nil {
			return err
		}
		ex := set.event(i)
		prediction, err := predictor.Predict(&ex.Body)
		if err != nil {
			return err
		}
		p := prediction.P()
		if (p >= 0.5) != ex.Spam {
			run.Errors += 1 / float64(len(set.set))
			if i >= c.From {
				run.Later += 1 / float64(len(set.set)-c.From)
			}
		}
		lo, hi := prediction.Interval(model.Z90)
		labelled[i], doubtful[i] = people.Float64() < c.Share, oracle.Doubtful(p, lo, hi)
		if asks && (policy.Asks(ex.ID, doubtful[i]) || !run.Account && doubtful[i]) {
			spam, err := ask(i)
			if err != nil {
				return err
			}
			policy.Answered(ex.ID, spam)
			assumed := ex
			assumed.ID, assumed.Source, assumed.Action, assumed.Spam = ex.ID+"/oracle", oracle.Source, model.Assume, spam
			assumed.Of, assumed.Identity = ex.ID, ""
			effect, err := m.Apply(&assumed)
			if err != nil {
				return err
			}
			if !effect.Unassumed {
				run.Taught += 1 / float64(len(set.set))
			}
		}
		late := i - c.Delay
		if late < 0 || !labelled[late] {
			continue
		}
		label := set.event(late)
		label.Action, label.Of, label.Identity = model.Correct, label.ID, ""
		if _, err := m.Apply(&label); err != nil {
			return err
		}
		if !asks || !run.Account {
			continue
		}
		policy.Learnt()
		compare, changed := policy.Labelled(label.ID, label.Spam, doubtful[late])
		if compare {
			spam, err := ask(late)
			if err != nil {
				return err
			}
			changed = policy.Compare(label.ID, spam != label.Spam, doubtful[late])
		}
		switch {
		case changed && policy.State() == oracle.Trusted && run.Trusted == nil:
			run.Trusted = []int{asked}
		case changed && policy.State() == oracle.Stopped:
			run.Stopped = []int{asked}
		}
	}
	run.Asked = float64(asked) / float64(len(set.set))
	return nil
}

// A machine answers over HTTP. It is wrong about a share of the messages.
type machine struct {
	client *oracle.Client
	server *http.Server
}

func startMachine(set *population, wrong float64, seed uint64) (*machine, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			var q oracle.Question
			err := json.NewDecoder(r.Body).Decode(&q)
			i, bad := strconv.Atoi(q.ID)
			if err != nil || bad != nil || i < 0 || i >= len(set.set) {
				http.Error(w, "no question", http.StatusBadRequest)
				return
			}
			label := stream.Ham
			if set.set[i].Spam != (rand.New(rand.NewPCG(seed, 1<<40+uint64(i))).Float64() < wrong) {
				label = stream.Spam
			}
			_ = json.NewEncoder(w).Encode(map[string]string{"label": label.String()})
		})}
	go func() { _ = server.Serve(l) }()
	return &machine{oracle.NewClient("http://"+l.Addr().String(), ""), server}, nil
}

func (m *machine) close() {
	m.client.Close()
	_ = m.server.Close()
}

// section has a line for each machine.
func (r *oracleResult) section() *experiment.Section {
	t := experiment.Table{Right: true, Head: [][]string{{"machine", "asked", "taught", "errors", "later errors",
		"trusted", "after", "stopped", "after"}}}
	for i := range r.Lines {
		l := &r.Lines[i]
		t.Addf("%s\t%.1f %%\t%.1f %%\t%.2f %%\t%.2f %%\t%s\t%s", l.Machine, 100*l.Asked, 100*l.Taught,
			100*l.Errors, 100*l.Later, l.reached(l.Trusted), l.reached(l.Stopped))
	}
	lead := fmt.Sprintf("%d messages, of which people label %.0f %%; later errors are from message %d on",
		r.Events, 100*r.Share, r.From+1)
	return &experiment.Section{Lead: experiment.Plain(lead), Table: t, Notes: made(r.Command, r.took)}
}

// reached returns two columns: in how many seeds it came so far, and after how many questions.
func (r *oracleRun) reached(after []int) string {
	if len(after) == 0 {
		return "-\t-"
	}
	sorted := slices.Sorted(slices.Values(after))
	return fmt.Sprintf("%d of %d\t%d", len(sorted), r.Seeds, sorted[len(sorted)/2])
}
