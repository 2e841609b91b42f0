package console

import (
	"context"
	"net/http"

	"hamlet/cmd/internal/operate/console/audit"
	"hamlet/cmd/internal/operate/doubtful"
	"hamlet/cmd/internal/operate/history"
	"hamlet/cmd/internal/operate/incidents"
	"hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/operate/now"
	"hamlet/cmd/internal/operate/review"
	"hamlet/cmd/internal/operate/score"
	"hamlet/cmd/internal/operate/sources"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
)

// addPages adds all pages in the order of the navigation.
func (c *Console) addPages() {
	log := incidents.NewLog(c.cfg.NATS, c.cfg.Model, c.site.Now)
	follower := now.New(now.Config{
		Model: c.cfg.Model, NATS: c.cfg.NATS, Alarms: log.Open, Store: c.cfg.Store, Bounds: c.logBounds(), Log: c.cfg.Log,
	})
	c.work = append(c.work, follower.Run)
	c.site.Add(now.Page(c.site, follower))
	c.site.Add(incidents.Page(c.site, incidents.Config{Log: log, Audit: c.audit, Store: c.cfg.Store}))
	c.work = append(c.work, sources.Add(c.site, sources.Config{Store: c.cfg.Store, Kafka: c.cfg.Kafka, Info: c.info}))
	c.site.Add(score.Page(c.site, score.Config{NATS: c.cfg.NATS, Kept: c.kept()}))
	c.site.Add(review.Page(c.site, review.Config{NATS: c.cfg.NATS, Kept: c.kept(), Teacher: c.teacher(), Ask: c.cfg.Ask}))
	c.site.Add(doubtful.Page(c.site, doubtful.Config{NATS: c.cfg.NATS,
		Judge: doubtful.Judge{Logs: c.cfg.Kafka, Topic: c.cfg.Topic, Kept: c.kept(), To: c.teacher()}}))
	c.site.Add(history.Page(c.site, history.Config{NATS: c.cfg.NATS}))
	c.site.Add(model.New(c.site, model.Config{Store: c.cfg.Store, Look: follower.Look, Matches: follower.Matches}))
	c.site.Add(audit.Page(c.site, c.audit))
}

func (c *Console) info(ctx context.Context) (stream.Info, error) {
	return score.Info(ctx, c.cfg.NATS, c.cfg.Model)
}

// kept returns what reads kept mail; nil without a reader.
func (c *Console) kept() func(context.Context, string) (nats.ArchivedMail, error) {
	if c.cfg.Kept == nil {
		return nil
	}
	return c.cfg.Kept.Get
}

// teacher returns what brings labels to the learner; nil without brokers.
func (c *Console) teacher() review.Teacher {
	if c.cfg.Kafka == nil {
		return nil
	}
	return review.LogTeacher{Logs: c.cfg.Kafka, Topic: c.cfg.Topic, Ask: c.cfg.Ask}
}

// logBounds returns what asks Kafka where the log begins and ends; nil without brokers. It logs
// nothing: the page says what it could not learn.
func (c *Console) logBounds() func(context.Context) (stream.Bounds, error) {
	cfg := c.cfg.Kafka
	if cfg == nil {
		return nil
	}
	if kafka, ok := cfg.(kafka.Config); ok {
		kafka.Log = nil
		cfg = kafka
	}
	return func(ctx context.Context) (stream.Bounds, error) {
		log, err := cfg.Open(c.cfg.Topic)
		if err != nil {
			return stream.Bounds{}, err
		}
		defer log.Close()
		return log.Bounds(ctx)
	}
}

func (c *Console) keep(ctx context.Context, r *http.Request, id string, a page.Action, outcome string) error {
	u := access.FromContext(r.Context())
	line := stream.AuditEntry{
		ID: id, Time: c.site.Now(), Model: c.cfg.Model, User: u.Name, Roles: u.Role.String(),
		Action: a.Name, Target: a.Target, Detail: a.Detail, Outcome: outcome,
	}
	if from := access.Address(r.Context()); from.IsValid() {
		line.From = from.String()
	}
	return c.audit.Append(ctx, line)
}
