package console

import (
	"context"
	"net/http"

	"hamlet/cmd/internal/console/access"
	"hamlet/cmd/internal/console/audit"
	"hamlet/cmd/internal/console/feed"
	"hamlet/cmd/internal/console/history"
	"hamlet/cmd/internal/console/model"
	"hamlet/cmd/internal/console/now"
	"hamlet/cmd/internal/console/page"
	"hamlet/cmd/internal/console/sources"
	"hamlet/cmd/internal/console/why"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// addPages adds all pages in the order of the navigation.
func (c *Console) addPages() {
	follower := feed.New(feed.Config{Model: c.cfg.Model, NATS: c.cfg.NATS, Store: c.cfg.Store, End: c.logEnd(), Log: c.cfg.Log})
	c.work = append(c.work, follower.Run)
	c.site.Add(now.Page(c.site, follower))
	c.work = append(c.work, sources.Add(c.site, sources.Config{Store: c.cfg.Store, Kafka: c.cfg.Kafka}))
	c.site.Add(why.Page(c.site, why.Config{NATS: c.cfg.NATS, Model: c.cfg.Model}))
	c.site.Add(history.Page(c.site, history.Config{NATS: c.cfg.NATS, Model: c.cfg.Model}))
	c.site.Add(model.New(c.site, model.Config{Model: c.cfg.Model, Store: c.cfg.Store, Look: follower.Look, Matches: follower.Matches}))
	c.site.Add(audit.Page(c.site, c.audit))
}

// logEnd returns what asks Kafka for the next offset of each partition; nil without brokers. It
// logs nothing: the page says what it could not learn.
func (c *Console) logEnd() func(context.Context) (map[int]int64, error) {
	cfg := c.cfg.Kafka
	if len(cfg.Brokers) == 0 {
		return nil
	}
	cfg.Log = nil
	return func(ctx context.Context) (map[int]int64, error) {
		_, end, err := kafka.Offsets(ctx, cfg, c.cfg.Topic)
		return end, err
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
