package page_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
)

// The log has no address of a user, nor what an action was about. The audit has both.
func TestActionsInTheLog(t *testing.T) {
	var log bytes.Buffer
	site := page.NewSite(page.Config{Model: "default", Log: slog.New(slog.NewTextHandler(&log, nil)),
		Audit: func(context.Context, *http.Request, string, page.Action, string) error { return nil }})
	r := httptest.NewRequest("POST", "/", nil)
	r = r.WithContext(access.WithUser(r.Context(), access.User{Name: "ann@example.org", Role: access.Look}))
	site.Act(httptest.NewRecorder(), r, page.Action{Name: "withdraw", Target: "feed-7", Detail: map[string]string{"since": "5210"}},
		func(context.Context) (string, error) { return "", nil }, "/")
	text := log.String()
	if !strings.Contains(text, "action=withdraw") || !strings.Contains(text, "user=#") {
		t.Errorf("the log says %s", text)
	}
	for _, private := range []string{"ann", "example.org", "feed-7", "5210"} {
		if strings.Contains(text, private) {
			t.Errorf("the log has %s: %s", private, text)
		}
	}
}
