package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/lab/product"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
	stateredis "hamlet/state/redis"
	"hamlet/stream"
	streamkafka "hamlet/stream/kafka"
	streamnats "hamlet/stream/nats"
	"hamlet/stream/questions"
)

// A system is one model with everything that serves it: ingest, two learners and a
// scorer on the real servers, or one hamlet up with a folder.
type system struct {
	name      string
	model     string
	kafka     string // Kafka, as its clients see it; "" of hamlet up
	redis     string // Redis itself, not a proxy; "" of hamlet up
	data      string // the folder of hamlet up
	nats      string // NATS itself
	processes map[target]*process
	learners  []string // where their metrics are

	sender *sender
	asker  *asker
	next   float64 // the most that a learner has come to
}

const (
	// Models of the lean experts with few slots: a save has some 100 KB instead of megabytes.
	tableBits = 10
	experts   = "lean"

	saveEvery = "300ms"

	questionCount = 24
)

// modelConfig is the configuration that the learners' flags make.
func modelConfig() (model.Config, error) {
	bits := tableBits
	f := settings.Model{Experts: []string{experts}, TableBits: &bits}
	return f.Config(nil)
}

// modelFlags are the flags that make modelConfig.
func modelFlags() []string {
	return []string{"--experts", experts, "--table-bits", strconv.Itoa(tableBits)}
}

// newServices returns the services of an era on the real servers, behind their proxies.
func newServices(c *campaign, era int) (*system, error) {
	name := fmt.Sprintf("faults-%d", era)
	s := &system{
		name: "services", model: name,
		kafka: c.proxies[kafka].Addr(), redis: c.servers.redis, nats: c.servers.nats,
		processes: map[target]*process{},
	}
	k, n, r := []string{"--kafka", s.kafka}, []string{"--nats", "nats://" + c.proxies[nats].Addr()},
		[]string{"--redis", c.proxies[redis].Addr()}
	learner := slices.Concat([]string{"learner", "--save-every", saveEvery}, k, n, r, modelFlags())
	for _, x := range []struct {
		name target
		args []string
	}{
		{ingest, slices.Concat([]string{"ingest", "--token", token}, k)},
		{learnerA, learner},
		{learnerB, learner},
		{scorer, slices.Concat([]string{"scorer", "--poll-interval", "100ms"}, n, r)},
	} {
		if err := c.process(s, x.name, x.args); err != nil {
			return nil, err
		}
	}
	s.learners = []string{s.processes[learnerA].http, s.processes[learnerB].http}
	return s, s.load(c, s.processes[ingest].http, "nats://"+c.proxies[nats].Addr(), c.Rate, era)
}

// newUp returns a hamlet up with a folder and a NATS of its own.
func newUp(c *campaign, as target, era int, folder string) (*system, error) {
	name := fmt.Sprintf("%s-%d", as, era)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	s := &system{
		name: string(as), model: name, data: filepath.Join(folder, "data"), nats: c.ports.address(),
		processes: map[target]*process{},
	}
	file := filepath.Join(c.dir, name+"-first.jsonl")
	if err := c.process(s, as, slices.Concat([]string{"up", file, "--data", s.data, "--open", "--token", token,
		"--save-every", saveEvery, "--listen-nats", s.nats}, modelFlags())); err != nil {
		return nil, err
	}
	s.learners = []string{s.processes[as].http}
	rate := c.Rate
	if as == upAll {
		rate /= 6 // it shares its rounds with the services
	}
	if err := s.load(c, s.processes[as].http, "nats://"+s.nats, rate, era); err != nil {
		return nil, err
	}
	return s, s.writeFirst(file, c.seed)
}

// load makes what sends to the system and asks it.
func (s *system) load(c *campaign, ingest, nats string, rate float64, era int) (err error) {
	seed := c.seed<<16 + uint64(era)
	if s.sender, err = newSender("http://"+ingest+"/v1/events", s.model, seed, rate); err != nil {
		return err
	}
	s.asker = &asker{url: nats, model: s.model, rate: rate / 3, answers: map[string]answer{}, gaps: c.scored}
	s.asker.questions, err = newQuestions(questionCount, seed)
	return err
}

// writeFirst writes the events that hamlet up reads from a file.
func (s *system) writeFirst(path string, seed uint64) error {
	items, err := synthetic.Items(synthetic.Config{Seed: seed ^ 0x75}, 40, source.FlipConfig{})
	if err != nil {
		return err
	}
	var text []byte
	for item, err := range items {
		if err != nil {
			return err
		}
		e := item.Event
		e.ID = "file-" + e.ID
		if text, err = e.AppendJSON(text); err != nil {
			return err
		}
		text = append(text, '\n')
		s.sender.ledger.send(&e)
		s.sender.ledger.ack(e.ID)
	}
	return os.WriteFile(path, text, 0o600)
}

// progressed reports whether the learners have come further than ever before.
func (s *system) progressed(ctx context.Context, client *http.Client) (progressed bool) {
	for _, addr := range s.learners {
		metrics, _ := product.Metrics(ctx, client, addr) // it may be away
		if next := metrics["hamlet_learner_next_offset"]; next > s.next {
			s.next, progressed = next, true
		}
	}
	return progressed
}

// end returns the log's end.
func (s *system) end(ctx context.Context) (int64, error) {
	log, reads, err := s.log()
	if err != nil {
		return 0, err
	}
	defer log.Close()
	b, err := follow.Bounds(ctx, reads)
	return b.End, err
}

// log returns the log, and how it is read.
func (s *system) log() (stream.Topic, follow.Config, error) {
	logs := stream.Logs(streamkafka.Config{Brokers: []string{s.kafka}})
	if s.data != "" {
		client, err := machine.NewClient(s.data)
		if err != nil {
			return nil, follow.Config{}, err
		}
		logs = client
	}
	log, err := logs.Open(stream.EventsTopic(s.model))
	if err != nil {
		return nil, follow.Config{}, err
	}
	return log, follow.Topic(log, logs), nil
}

// records reads the log from its beginning to end.
func (s *system) records(ctx context.Context, end int64) (records []record, err error) {
	if s.data == "" {
		return readLog(ctx, s.kafka, stream.EventsTopic(s.model), end)
	}
	log, reads, err := s.log()
	if err != nil {
		return nil, err
	}
	defer log.Close()
	err = follow.Range(ctx, reads, 0, end, func(r *stream.Record) error {
		records = append(records, record{offset: r.Offset, key: r.Key, value: r.Value, headers: r.Headers})
		return nil
	})
	return records, err
}

// store returns where the model is kept.
func (s *system) store() (state.Store, error) {
	if s.data == "" {
		return stateredis.New(stateredis.Config{Addr: s.redis, Model: s.model})
	}
	client, err := machine.NewClient(s.data)
	if err != nil {
		return nil, err
	}
	return client.Store(s.model)
}

// settle waits until every process is ready, and everything in the log is learnt, saved
// and served. It returns the log's end. The error says what is missing.
func (s *system) settle(ctx context.Context) (end int64, err error) {
	store, err := s.store()
	if err != nil {
		return 0, err
	}
	defer store.Close()
	conn, err := streamnats.Connect(streamnats.Config{URL: "nats://" + s.nats, Wait: true})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	client, err := streamnats.NewClient(conn, s.model)
	if err != nil {
		return 0, err
	}
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		end, err = s.settled(attempt, store, client)
		cancel()
		if err == nil {
			return end, nil
		}
		wait(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return 0, fmt.Errorf("%s: %w", s.name, err)
		}
	}
}

func (s *system) settled(ctx context.Context, store state.Store, client *streamnats.Client) (int64, error) {
	for t, p := range s.processes {
		if !p.Ready() {
			return 0, fmt.Errorf("%s is not ready", t)
		}
	}
	end, err := s.end(ctx)
	if err != nil {
		return 0, err
	}
	head, err := store.Heading(ctx, state.Head)
	if err != nil {
		return 0, err
	}
	if head.Next != end {
		return 0, fmt.Errorf("saved up to %d, the log ends at %d", head.Next, end)
	}
	info, err := client.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("the scorer: %w", err)
	}
	if !slices.Equal(info.Model.Positions, []int64{end}) || info.Stale {
		return 0, fmt.Errorf("the scorer serves positions %v (stale %v), the log ends at %d", info.Model.Positions,
			info.Stale, end)
	}
	return end, nil
}

// verify compares the system with a fresh replay of its log, and adds what it finds to
// the round. It asks the scorer all questions once more.
func (s *system) verify(ctx context.Context, end int64, r *round) error {
	cfg, err := modelConfig()
	if err != nil {
		return err
	}
	final := &asker{url: "nats://" + s.nats, model: s.model, questions: s.asker.questions, answers: map[string]answer{}}
	if err := final.once(ctx); err != nil {
		return err
	}
	answers, received, differ := s.asker.take()
	last, more, _ := final.take()
	for i := range last {
		if last[i].next != end {
			r.Wrong++
			r.problem(s, "an answer after the round is from position %d, the log ends at %d", last[i].next, end)
		}
	}
	answers = append(answers, last...)
	r.Answers += received + more
	for _, d := range differ {
		r.Wrong++
		r.problem(s, "%s", d)
	}

	store, err := s.store()
	if err != nil {
		return err
	}
	defer store.Close()
	wanted := map[int64]struct{}{}
	for i := range answers {
		wanted[answers[i].next] = struct{}{}
	}
	records, err := s.records(ctx, end)
	if err != nil {
		return err
	}
	log, err := replay(cfg, records, wanted)
	if err != nil {
		return err
	}
	c, _, err := store.Load(ctx, state.Head)
	var unlike []string
	switch {
	case errors.Is(err, state.ErrCorrupt):
		unlike = []string{err.Error()}
	case err != nil:
		return fmt.Errorf("load the model: %w", err)
	default:
		unlike = checkCheckpoint(c, log)
	}
	r.Same = r.Same && len(unlike) == 0
	lost, wrong, problems := checkEvents(s.sender.ledger, log)
	wrongAnswers, more2 := checkAnswers(answers, s.asker.questions, log)
	r.Lost += lost
	r.Wrong += wrong + wrongAnswers
	for _, p := range slices.Concat(unlike, problems, more2) {
		r.problem(s, "%s", p)
	}
	return nil
}

// once asks every question once.
func (a *asker) once(ctx context.Context) error {
	conn, err := streamnats.Connect(streamnats.Config{URL: a.url})
	if err != nil {
		return err
	}
	defer conn.Close()
	client, err := streamnats.NewClient(conn, a.model)
	if err != nil {
		return err
	}
	for i, q := range a.questions {
		attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
		verdicts, err := client.Ask(attempt, questions.Question{Body: q, ContentType: questions.Mail})
		cancel()
		if err != nil {
			return fmt.Errorf("a question after the round: %w", err)
		}
		a.note(i, &verdicts[0])
	}
	return nil
}

func (s *system) start() {
	for _, p := range s.processes {
		p.start()
	}
}

// halt ends all processes at once.
func (s *system) halt() {
	done := make(chan struct{})
	for _, p := range s.processes {
		go func() {
			p.halt()
			done <- struct{}{}
		}()
	}
	for range s.processes {
		<-done
	}
}

func (r *round) problem(s *system, format string, args ...any) {
	r.Problems = append(r.Problems, s.model+": "+fmt.Sprintf(format, args...))
}

// served waits until a scorer answers.
func (s *system) served(ctx context.Context) error {
	for {
		s.asker.mu.Lock()
		answered := s.asker.received > 0
		s.asker.mu.Unlock()
		if answered {
			return nil
		}
		wait(ctx, 50*time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("%s: no scorer answers: %w", s.name, ctx.Err())
		}
	}
}
