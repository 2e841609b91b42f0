package page

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hamlet/cmd/internal/web/access"
	"hamlet/stream"
)

// An Action is what a user does.
type Action struct {
	Name   string            // "pin", "withdraw", "label", "acknowledge", "standing", …
	Target string            // of the action: an incident, a source, a version, an identity; no content of mail
	Detail map[string]string // small, no content of mail
}

// An Audit writes a line about an action: with Intended before it, then with Done or with
// what failed. Both lines have the same id. It returns once the line is kept.
type Audit func(ctx context.Context, r *http.Request, id string, a Action, outcome string) error

// Outcomes of an action. One that failed has Failed and the error's text.
const (
	Intended = "intended"
	Done     = "done"
	Failed   = "failed: "
)

const (
	auditTime = 10 * time.Second
	actTime   = time.Minute
)

// Act does what a form asked for. It writes the audit line, acts, writes the outcome, and
// sends the reader back to a page of the console, which shows the notice, or the error, once.
// If the line cannot be kept, nothing is done. Whether the user may act is checked before.
//
// An action goes on where the browser has left, for at most a minute.
func (s *Site) Act(
	w http.ResponseWriter, r *http.Request, a Action, do func(ctx context.Context) (string, error), back string,
) {
	u := access.FromContext(r.Context())
	ctx := context.WithoutCancel(r.Context())
	id := rand.Text()
	if err := s.audit(ctx, r, id, a, Intended); err != nil {
		s.Back(w, r, back, fmt.Sprintf("Nothing was done, because the audit's line could not be kept: %v", err), true)
		return
	}
	acting, cancel := context.WithTimeout(ctx, actTime)
	defer cancel()
	text, err := do(acting)
	outcome := Done
	if err != nil {
		outcome, text = Failed+err.Error(), err.Error()
	}
	log := s.Log.With("action", a.Name, "id", id)
	if err := s.audit(ctx, r, id, a, outcome); err != nil {
		log.Error("the outcome of an action is missing in the audit", "error", err)
		text += " The audit has no line about the outcome."
	}
	log.Info("an action in the console", "user", stream.Unaddressed(u.Name), "outcome", outcome)
	s.Back(w, r, back, text, outcome != Done)
}

func (s *Site) audit(ctx context.Context, r *http.Request, id string, a Action, outcome string) error {
	ctx, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	return s.Audit(ctx, r, id, a, outcome)
}

// Back sends the reader to a page of the console that shows text once.
func (s *Site) Back(w http.ResponseWriter, r *http.Request, to, text string, failed bool) {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n") {
		to = "/" // never to another site
	}
	at, err := url.Parse(to)
	if err != nil {
		at = &url.URL{Path: "/"}
	}
	id := rand.Text()
	s.flashes.put(id, flash{text, failed, access.FromContext(r.Context()).Session, s.Now().Add(flashTime)})
	query := at.Query()
	query.Set(flashKey, id)
	at.RawQuery = query.Encode()
	http.Redirect(w, r, at.String(), http.StatusSeeOther)
}
