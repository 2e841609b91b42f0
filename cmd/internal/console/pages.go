package console

import (
	"context"
	"errors"
	"net/http"

	"hamlet/cmd/internal/console/history"
	"hamlet/cmd/internal/console/page"
)

// addPages adds all pages in the order of the navigation.
func (c *Console) addPages() error {
	c.site.Add(history.Page(c.site, history.Config{NATS: c.cfg.NATS, Model: c.cfg.Model}))
	return nil
}

// audit returns what keeps the lines of actions.
func (c *Console) audit() page.Audit {
	return func(context.Context, *http.Request, string, page.Action, string) error {
		return errors.New("there is no audit yet")
	}
}
