package sizing

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"hamlet/cmd/internal/show/progress"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// A run is one day with its processes.
type run struct {
	day      *Day
	dir      string
	model    string
	progress *progress.Counter
	sent     int // labels

	ingest, learner, scorer, gateway *process
	servers                          []*process
}

// stop ends the services.
func (r *run) stop() {
	for _, p := range []*process{r.gateway, r.ingest, r.scorer, r.learner} {
		p.stop()
	}
}

// start starts the services. The learner is first: it makes the topics.
func (r *run) start(ctx context.Context) (err error) {
	c := r.day
	model := []string{"--model", r.model}
	kafka := append(model, "--kafka", c.Kafka)
	redis, nats := []string{"--redis", c.Redis}, []string{"--nats", c.NATS}
	for _, s := range []struct {
		process **process
		name    string
		ready   bool
		args    [][]string
	}{
		{&r.learner, "learner", true, [][]string{kafka, redis, nats,
			{"--save-every", c.SaveEvery.String(), "--table-bits", strconv.Itoa(c.TableBits)}}},
		{&r.ingest, "ingest", true, [][]string{kafka, {"--token", token}}},
		{&r.scorer, "scorer", false, [][]string{model, redis, nats}},
		{&r.gateway, "gateway", false, [][]string{model, nats, {"--deadline", "20s"}}},
	} {
		var args []string
		for _, a := range s.args {
			args = append(args, a...)
		}
		if *s.process, err = start(ctx, r.dir, s.name, s.ready, args...); err != nil {
			return err
		}
	}
	if c.Servers != "" {
		r.servers = servers(c.Servers)
	}
	return nil
}

// each calls f for all processes.
func (r *run) each(f func(*process) error) (err error) {
	for _, p := range append([]*process{r.ingest, r.learner, r.scorer, r.gateway}, r.servers...) {
		err = errors.Join(err, f(p))
	}
	return err
}

// learnt waits until n labels are learnt and saved, and returns how many saves there were.
func (r *run) learnt(ctx context.Context, n int) (saves float64, err error) {
	for {
		m, err := r.learner.metrics(ctx)
		if err != nil {
			return 0, err
		}
		if m["hamlet_learner_records_total"] >= float64(n) && m["hamlet_learner_unsaved_records"] == 0 {
			return m["hamlet_learner_save_seconds_count"], nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(200 * time.Millisecond): // a scrape takes a millisecond of the learner
		}
	}
}

// measure runs the day in three phases: half of the labels at once; the others beside the
// questions; and a few single labels, each of which is a save.
func (r *run) measure(ctx context.Context, mail *post) (*result, error) {
	c := r.day
	memory, err := redisMemory(ctx, c.Redis)
	if err != nil {
		return nil, err
	}
	before := journal(ctx, c.NATS)
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	first, err := r.teach(ctx, mail, c.Labels/2)
	if err != nil {
		return nil, err
	}
	res := &result{Model: r.model, Labels: c.Labels, Load: c.load()}
	second, err := r.ask(ctx, mail, c.Labels-c.Labels/2, res)
	if err != nil {
		return nil, err
	}
	third, err := r.save(ctx, mail)
	if err != nil {
		return nil, err
	}
	res.Saves = first.saves + second.saves
	if err := r.sizes(ctx, res, before, memory); err != nil {
		return nil, err
	}
	res.costs(first, second, third)
	res.Demand = Plan(res.Costs, res.Load)
	return res, nil
}

// A phase is what was done, and the processor time of the services.
type phase struct {
	scores, labels, saves            float64
	ingest, learner, scorer, gateway float64 // seconds of one core
}

// costs splits what the phases used by what they did. A label costs what it does in a backlog,
// with the few saves of that phase. Labels that come one by one cost more: what they add is
// called rest, and does not grow with their number, because many come in one batch.
func (r *result) costs(first, second, third phase) {
	c := &r.Costs
	c.Save, c.Load = third.learner/third.saves, third.scorer/third.saves
	c.Ingest, c.Learn, c.Gateway = first.ingest/first.labels, first.learner/first.labels, second.gateway/second.scores
	c.Rest = max(0, second.learner-c.Save*second.saves-c.Learn*second.labels) / r.Seconds
	c.Score = (second.scorer - c.Load*second.saves) / second.scores
	if c.Score <= 0 {
		c.Score = second.scorer / second.scores
		r.Warnings = append(r.Warnings, "there were too few questions: the cost of a score includes that of loading "+
			"models")
	}
}

// measured runs a phase that ends once all labels are learnt and saved, and says what it used.
func (r *run) measured(ctx context.Context, labels int, do func() error) (p phase, err error) {
	p.labels = float64(labels)
	if p.saves, err = r.learnt(ctx, r.sent); err != nil {
		return p, err
	}
	if err := r.each((*process).mark); err != nil {
		return p, err
	}
	if err := do(); err != nil {
		return p, err
	}
	r.sent += labels
	saves, err := r.learnt(ctx, r.sent)
	if err != nil {
		return p, err
	}
	if err := r.served(ctx); err != nil {
		return p, err
	}
	p.saves = saves - p.saves
	for _, s := range []struct {
		of  *process
		cpu *float64
	}{{r.ingest, &p.ingest}, {r.learner, &p.learner}, {r.scorer, &p.scorer}, {r.gateway, &p.gateway}} {
		u, err := s.of.since()
		if err != nil {
			return p, err
		}
		*s.cpu = u.cpu
	}
	return p, nil
}

// teach sends labels as fast as ingest takes them.
func (r *run) teach(ctx context.Context, mail *post, labels int) (phase, error) {
	return r.measured(ctx, labels, func() error { return mail.teach(ctx, r.ingest.http, labels) })
}

// ask asks all questions, and sends labels in step with them.
func (r *run) ask(ctx context.Context, mail *post, labels int, res *result) (phase, error) {
	c := r.day
	p, err := r.measured(ctx, labels, func() error {
		begun := time.Now()
		got, err := mail.ask(ctx, r.gateway.http, r.ingest.http, c.Scores, labels, c.InFlight, func(i int) {
			if i%100 == 0 {
				r.progress.Set(i, c.Scores)
			}
		})
		res.Seconds, res.Scores, res.Refused = time.Since(begun).Seconds(), got.answered, got.refused
		res.Median, res.Late = quantile(got.seconds, .5), quantile(got.seconds, .99)
		if err == nil && got.answered == 0 {
			err = fmt.Errorf("all %d questions were refused", got.refused)
		}
		return err
	})
	if err != nil {
		return p, err
	}
	if p.scores = float64(res.Scores); res.Refused > 0 {
		res.Warnings = append(res.Warnings, fmt.Sprintf("%d questions were refused, and what they cost is counted "+
			"with the others", res.Refused))
	}
	return p, r.each(func(of *process) error {
		u, err := of.since()
		res.Processes = append(res.Processes, used{Name: of.name, CPU: u.cpu, Memory: u.memory})
		return err
	})
}

// singleSaves is how many labels the last phase sends.
const singleSaves = 5

// save sends single labels and waits after each until it is saved and loaded.
func (r *run) save(ctx context.Context, mail *post) (phase, error) {
	return r.measured(ctx, singleSaves, func() error {
		for i := range singleSaves {
			if err := mail.teach(ctx, r.ingest.http, 1); err != nil {
				return err
			}
			if _, err := r.learnt(ctx, r.sent+i+1); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pollEvery): // the scorer loads it
			}
		}
		return nil
	})
}

// pollEvery is more than the scorer's --poll-interval and a load.
const pollEvery = 800 * time.Millisecond

// sizes adds what the processes and the servers hold to the result.
func (r *run) sizes(ctx context.Context, res *result, before journalState, memory float64) (err error) {
	cost := &res.Costs
	cost.ScorerBytes, cost.LearnerBytes = res.process("scorer").Memory, res.process("learner").Memory
	cost.NATS = res.process("nats").CPU / float64(res.Scores) // 0 if it was not measured
	cost.GatewayBytes, cost.IngestBytes = res.process("gateway").Memory, res.process("ingest").Memory
	ofLearner, err1 := r.learner.metrics(ctx)
	ofScorer, err2 := r.scorer.metrics(ctx)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	cost.ModelBytes = ofLearner["hamlet_learner_model_bytes"]
	after, err := redisMemory(ctx, r.day.Redis)
	if err != nil {
		return err
	}
	res.RedisBytes = after - memory
	lines := ofScorer["hamlet_scorer_journal_lines_total"]
	if s := journal(ctx, r.day.NATS); lines > 0 && s.messages > 0 {
		cost.JournalBytes = s.bytes / s.messages * (s.last - before.last) / lines
	}
	if r.day.Servers != "" {
		disk, err := logBytes(filepath.Join(r.day.Servers, "kafka"), stream.EventsTopic(r.model))
		if err != nil {
			return err
		}
		cost.EventBytes = disk / float64(r.sent)
	}
	return nil
}

// served waits until the gateway gets an answer.
func (r *run) served(ctx context.Context) error {
	conn, err := nats.Connect(nats.Config{URL: r.day.NATS})
	if err != nil {
		return err
	}
	defer conn.Close()
	client, err := nats.NewClient(conn, r.model)
	if err != nil {
		return err
	}
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		info, err := client.Info(attempt)
		cancel()
		if err == nil && len(info.Model.Positions) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
