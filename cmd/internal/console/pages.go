package console

import (
	"context"
	"net/http"
	"time"

	"hamlet/cmd/internal/console/access"
	"hamlet/cmd/internal/console/audit"
	"hamlet/cmd/internal/console/feed"
	"hamlet/cmd/internal/console/history"
	"hamlet/cmd/internal/console/incidents"
	"hamlet/cmd/internal/console/model"
	"hamlet/cmd/internal/console/now"
	"hamlet/cmd/internal/console/page"
	"hamlet/cmd/internal/console/review"
	"hamlet/cmd/internal/console/sources"
	"hamlet/cmd/internal/console/why"
	"hamlet/cmd/internal/gateway/doors"
	library "hamlet/cmd/internal/review"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
)

// addPages adds all pages in the order of the navigation.
func (c *Console) addPages() {
	follower := feed.New(feed.Config{Model: c.cfg.Model, NATS: c.cfg.NATS, Store: c.cfg.Store, Bounds: c.logBounds(), Log: c.cfg.Log})
	c.work = append(c.work, follower.Run)
	c.site.Add(now.Page(c.site, follower))
	c.site.Add(incidents.Page(c.site, incidents.Config{NATS: c.cfg.NATS, Audit: c.audit, Store: c.cfg.Store}))
	c.work = append(c.work, sources.Add(c.site, sources.Config{Store: c.cfg.Store, Kafka: c.cfg.Kafka, Info: c.info}))
	c.site.Add(why.Page(c.site, why.Config{NATS: c.cfg.NATS, Model: c.cfg.Model, Kept: c.kept()}))
	c.site.Add(review.Page(c.site, review.Config{NATS: c.cfg.NATS, Model: c.cfg.Model, Kept: c.kept(), Teacher: c.teacher()}))
	c.site.Add(history.Page(c.site, history.Config{NATS: c.cfg.NATS, Model: c.cfg.Model}))
	c.site.Add(model.New(c.site, model.Config{Model: c.cfg.Model, Store: c.cfg.Store, Look: follower.Look, Matches: follower.Matches}))
	c.site.Add(audit.Page(c.site, c.audit))
}

// info asks a scorer of the model about itself.
func (c *Console) info(ctx context.Context) (stream.Info, error) {
	client, err := nats.NewClient(c.cfg.NATS, c.cfg.Model)
	if err != nil {
		return stream.Info{}, err
	}
	return client.Info(ctx)
}

// kept returns what reads kept mail; nil without a reader.
func (c *Console) kept() func(context.Context, string) (nats.KeptMail, error) {
	if c.cfg.Kept == nil {
		return nil
	}
	return c.cfg.Kept.Get
}

// teacher returns what brings labels to the learner; nil without brokers.
func (c *Console) teacher() library.Teacher {
	if len(c.cfg.Kafka.Brokers) == 0 {
		return nil
	}
	return teacher{c.cfg.Kafka, c.cfg.Topic}
}

// A teacher connects to Kafka for each label. People give few.
type teacher struct {
	cfg   kafka.Config
	topic string
}

// teachTime bounds the time for one label: its giver waits.
const teachTime = 15 * time.Second

func (t teacher) Publish(ctx context.Context, events ...stream.Event) error {
	ctx, cancel := context.WithTimeout(ctx, teachTime)
	defer cancel()
	log, err := kafka.NewLog(t.cfg, t.topic)
	if err != nil {
		return err
	}
	defer log.Close()
	return doors.Teacher{Events: log}.Publish(ctx, events...)
}

// logBounds returns what asks Kafka where the log begins and ends; nil without brokers. It logs
// nothing: the page says what it could not learn.
func (c *Console) logBounds() func(context.Context) (stream.Bounds, error) {
	cfg := c.cfg.Kafka
	if len(cfg.Brokers) == 0 {
		return nil
	}
	cfg.Log = nil
	return func(ctx context.Context) (stream.Bounds, error) {
		log, err := kafka.NewLog(cfg, c.cfg.Topic)
		if err != nil {
			return stream.Bounds{}, err
		}
		defer log.Close()
		return log.Bounds(ctx)
	}
}

// keep writes the line of an action to the audit.
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
