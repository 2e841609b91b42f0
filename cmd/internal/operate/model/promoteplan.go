package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/operate/comparison"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
	"hamlet/stream"
)

// An atHead is the newest version of both models, without its bytes. old is nil where hamlet 0.1.0
// saved it from a log of several partitions: no scorer of this release reads it, and no model of
// this release has learnt its log. So there is nothing to wait for and nothing to compare.
type atHead struct{ old, by *state.Manifest }

// check returns an error if the candidate may not answer in the place of the model, however
// far it has come. The logs are compared as far as both have learnt.
func (p *promotion) check(ctx context.Context) (numerics string, err error) {
	h, err := p.heads(ctx)
	if err != nil {
		return "", err
	}
	if h.old == nil {
		return "", fmt.Errorf("--promote-when better compares predictions of one log, "+
			"and hamlet 0.1.0 has learnt %s from several "+
			"partitions: promote %s without it", p.model, p.candidate)
	}
	if h.by.Position.Next < h.old.Position.Next {
		h.old, h.by = h.by, h.old // records between them are read from the earlier on
	}
	if !p.lostBeginning {
		if err := p.oneLog(ctx, &h); err != nil {
			return "", err
		}
	}
	c, err := p.readable(ctx)
	if err != nil {
		return "", err
	}
	return c.Numerics, nil
}

func (p *promotion) heads(ctx context.Context) (h atHead, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(p.patience, time.Second))
	defer cancel()
	if err := p.by.Layout(ctx); err != nil {
		return h, err
	}
	unread := p.store.Layout(ctx)
	if unread == nil {
		h.old, _, unread = p.store.Manifest(ctx, state.Head)
	}
	h.by, _, err = p.by.Manifest(ctx, state.Head)
	none := errors.Is(err, state.ErrNone)
	switch {
	case none && errors.Is(unread, state.ErrPartitions):
		return h, fmt.Errorf("the store keeps no version of model %s, which is to answer: %w", p.candidate, unread)
	case none:
		return h, fmt.Errorf("the store keeps no version of model %s: its learner has saved none yet, "+
			"or the name is another one; "+
			"learner --model %[1]s --events-of %s --shadow makes one", p.candidate, p.model)
	case err != nil:
		return h, err
	case errors.Is(unread, state.ErrNone):
		return h, fmt.Errorf("the store keeps no version of model %s: there is nothing to answer in the place of", p.model)
	case errors.Is(unread, state.ErrPartitions):
		h.old = nil
		return h, nil
	}
	return h, unread
}

// plan waits until the candidate has learnt as far as the model had when it was asked, checks
// that both have learnt one log and that the candidate can answer, and prints what will change.
// It returns the candidate's numerics.
func (p *promotion) plan(ctx context.Context) (numerics string, err error) {
	h, err := p.heads(ctx)
	if err != nil {
		return "", err
	}
	who := fmt.Sprintf("%s in the place of %s", p.candidate, p.model)
	if p.candidate == p.model {
		who = p.model + ", by itself again"
	}
	p.say("answers    %s\n", who)
	p.noWayBack = h.old == nil
	if h.old != nil {
		if err := p.await(ctx, &h); err != nil {
			return "", err
		}
	}
	log := "not compared"
	switch {
	case h.old == nil:
		log = "not compared: of " + p.model + " this release reads nothing"
	case p.candidate == p.model:
		log = "its own"
	case !p.lostBeginning:
		if err := p.oneLog(ctx, &h); err != nil {
			return "", err
		}
		log = "the same"
	}
	c, err := p.readable(ctx)
	if err != nil {
		return "", err
	}
	p.describe(&h, c, log)
	return c.Numerics, nil
}

// pollEvery is how often await asks how far the candidate is.
const pollEvery = 100 * time.Millisecond

// await waits until the candidate's newest version is as far as the model's was.
func (p *promotion) await(ctx context.Context, h *atHead) error {
	ctx, cancel := context.WithTimeout(ctx, max(p.patience, time.Second))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for h.by.Position.Next < h.old.Position.Next {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("model %s has learnt up to %d of the log, and %s up to %d: "+
				"does its learner run? --wait says how long this waits",
				p.candidate, h.by.Position.Next, p.model, h.old.Position.Next)
		}
		if p.candidate == p.model {
			return nil
		}
		by, _, err := p.by.Manifest(ctx, state.Head)
		if err != nil && !errors.Is(err, state.ErrTransient) {
			return err
		}
		if err == nil {
			h.by = by
		}
	}
	return nil
}

// oneLog returns an error unless both models have learnt one log. The records between them are
// read from Kafka and compared.
func (p *promotion) oneLog(ctx context.Context, h *atHead) error {
	err := p.follows(ctx, h.old.Position, h.by.Position)
	if err != nil {
		return fmt.Errorf("%w. One that began later in the log has another beginning: --accept-lost-beginning", err)
	}
	return nil
}

// follows returns an error unless the second position follows from the first by the records of
// the model's log.
func (p *promotion) follows(ctx context.Context, from, to state.Position) error {
	if to.Next < from.Next {
		return fmt.Errorf("model %s is behind", p.candidate)
	}
	if from.Next < to.Next {
		logs, err := p.kafka()
		if err != nil {
			return fmt.Errorf("model %s and %s are %d records apart, and these must be compared: %w",
				p.candidate, p.model, to.Next-from.Next, err)
		}
		log, err := logs.Open(stream.EventsTopic(p.model))
		if err != nil {
			return err
		}
		defer log.Close()
		err = follow.Range(ctx, follow.Topic(log, logs), from.Next, to.Next, func(record *stream.Record) error {
			from = follow.Advance(from, record)
			return nil
		})
		if err != nil {
			return fmt.Errorf("compare the logs: %w", err)
		}
	}
	if from.Chain != to.Chain {
		return fmt.Errorf("model %s has learnt another log than %s: start its learner with --events-of %s",
			p.candidate, p.model, p.model)
	}
	return nil
}

// readable loads the version of the candidate that will answer, and restores it as a scorer does.
func (p *promotion) readable(ctx context.Context) (*state.Checkpoint, error) {
	h, err := p.by.Heading(ctx, state.Served)
	if err != nil {
		return nil, err
	}
	c, err := p.by.LoadVersion(ctx, h.Version)
	if err != nil {
		return nil, err
	}
	if _, err := model.Restore(c.Model); err != nil {
		return nil, fmt.Errorf("version %d of model %s, which would answer, cannot be read: %w", h.Version, p.candidate, err)
	}
	return c, nil
}

// describe prints what answers after the promotion, and how it differs.
func (p *promotion) describe(h *atHead, c *state.Checkpoint, log string) {
	p.say("learnt     %d events of %s, up to %d of the log (%s); saved %v ago\n", c.Events, p.candidate,
		c.Position.Next, log, time.Since(c.Saved).Round(time.Second))
	if h.old == nil {
		p.say("numerics   %s\n", c.Numerics)
		return
	}
	if c.Position.Next < h.old.Position.Next {
		p.say("pinned     an earlier version of %s, %d, which answers\n", p.candidate, c.Position.Next)
	}
	var here, there model.Config
	if err := errors.Join(json.Unmarshal(h.old.Config, &here), json.Unmarshal(c.Config, &there)); err == nil {
		if d := there.Differences(here); len(d) > 0 {
			p.say("settings   %s\n", strings.Join(d, "; "))
		}
	}
	p.say("numerics   %s; of %s %s\n", c.Numerics, p.model, h.old.Numerics)
}

// untilBetter returns nil once the candidate is shown to predict better than the model that
// answers, and its calibration holds. It may ask as often as it likes: the interval of the
// comparison holds at all times together. While Kafka cannot be reached, it goes on trying.
func (p *promotion) untilBetter(ctx context.Context, answers string, patience time.Duration) error {
	cfg, err := p.kafka()
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reader, err := comparison.NewReader(waiting, cfg, answers, p.candidate, comparison.Options{Since: p.since})
	if err != nil {
		return err
	}
	defer reader.Close()
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	events, failed := -1, false
	for {
		r, err := reader.Advance(waiting)
		switch {
		case err == nil || waiting.Err() != nil:
			failed = false
		case comparison.Final(err):
			return err
		case !failed: // Kafka may restart in a week
			failed = true
			p.log.Warn("the predictions cannot be read: trying again", "error", err)
		}
		if err == nil && r.Events != events {
			events = r.Events
			if err := p.progress(answers, &r); err != nil {
				return err
			}
		}
		if err == nil && r.Better && r.Calibrated {
			return nil
		}
		select {
		case <-tick.C:
		case <-waiting.Done():
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if waiting.Err() != nil {
			return fmt.Errorf("in %v model %s was not shown to be better than %s, after %d common events: nothing was changed",
				patience, p.candidate, answers, max(events, 0))
		}
	}
}

func (p *promotion) progress(answers string, r *comparison.Result) error {
	verdict := "not shown to be better"
	switch {
	case r.Better && r.Calibrated:
		verdict = "better"
	case r.Better:
		verdict = "better, but not calibrated"
	case r.Worse:
		verdict = "worse"
	}
	return p.say("%s  %d events: log loss %.5f of %s, %.5f of %s; difference %+.5f in [%+.5f, %+.5f]: %s\n",
		cli.Stamp(time.Now()), r.Events, r.A.LogLoss, answers, r.B.LogLoss, p.candidate,
		r.Difference.Mean, r.Difference.Low, r.Difference.High, verdict)
}

func newer(a, b string) bool {
	x, err1 := strconv.Atoi(a)
	y, err2 := strconv.Atoi(b)
	return err1 == nil && err2 == nil && x > y
}
