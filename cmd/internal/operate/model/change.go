package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync"

	"hamlet/cmd/internal/web/page"
)

// What may be done to the versions that answer: the values of the field "do".
const (
	doPin      = "pin"
	doRollback = "rollback"
	doUnpin    = "unpin"
)

// A request is a change that a form asks for.
type request struct {
	Do       string
	Version  int64
	Incident string // the id of the incident that the change answers; "": none
}

// anIncident is the form of an incident's id: model, partition, event.
var anIncident = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9-]+\.[0-9]{1,10}\.[0-9]{1,20}$`)
})

// mostIncident bounds the id of an incident, in bytes.
const mostIncident = 128

func ask(form url.Values) (a request, err error) {
	a.Do, a.Incident = form.Get("do"), form.Get("incident")
	if a.Incident != "" && (len(a.Incident) > mostIncident || !anIncident().MatchString(a.Incident)) {
		return request{}, errors.New("the address names an incident, but not by its id, such as default.0.6102")
	}
	switch a.Do {
	case doRollback, doUnpin:
		return a, nil
	case doPin:
	default:
		return a, errors.New("this page pins a version, rolls back, or unpins; the address says none of these")
	}
	if a.Version, err = strconv.ParseInt(form.Get("version"), 10, 64); err != nil || a.Version < 1 {
		return a, errors.New("choose a version: the address has none")
	}
	return a, nil
}

// plan says what the change does, as things stand.
func (a request) plan(kept Kept) (Plan, error) {
	switch a.Do {
	case doPin:
		return kept.Pin(a.Version)
	case doRollback:
		return kept.Rollback()
	}
	return kept.Unpin(), nil
}

// address returns where the change is asked for.
func (a request) address() string {
	q := url.Values{"do": {a.Do}}
	if a.Do == doPin {
		q.Set("version", strconv.FormatInt(a.Version, 10))
	}
	if a.Incident != "" {
		q.Set("incident", a.Incident)
	}
	return path + "/change?" + q.Encode()
}

// signature says which version a plan pins, such as "0:5"; "unpin" unpins. The 0 is the
// partition: lines of the audit of hamlet 0.1.0 have it.
func signature(plan *Plan) string {
	if plan.Pin == 0 {
		return doUnpin
	}
	return fmt.Sprintf("0:%d", plan.Pin)
}

// A confirmation is the page that says what will be answered from then on.
type confirmation struct {
	request
	Plan
	Title       string
	Nothing     bool  // answers come from the same version as before
	Fewer, More int64 // events that the versions differ in; at most one is not 0
	Expect      string
}

func (p *pages) confirm(w http.ResponseWriter, r *http.Request) {
	a, err := ask(r.URL.Query())
	if err != nil {
		p.site.Fail(w, r, http.StatusBadRequest, page.Sentence(err))
		return
	}
	kept, err := p.kept.Get(r.Context())
	if err != nil {
		p.site.Fail(w, r, http.StatusServiceUnavailable, page.Sentence(err))
		return
	}
	plan, err := a.plan(kept)
	if err != nil {
		p.site.Fail(w, r, http.StatusConflict, page.Sentence(err))
		return
	}
	data := &confirmation{request: a, Plan: plan, Expect: signature(&plan)}
	data.Title = map[string]string{doPin: fmt.Sprintf("Pin version %d", a.Version), doRollback: "Roll back",
		doUnpin: "Unpin"}[a.Do]
	if plan.From != nil && plan.To != nil {
		d := int64(plan.To.Events) - int64(plan.From.Events)
		data.Fewer, data.More = max(0, -d), max(0, d)
		data.Nothing = plan.From.Version == plan.To.Version
	}
	p.site.Render(w, r, changeTemplates, http.StatusOK, data.Title, data)
}

// change answers POST /model/change. It does what the page before showed, and nothing else: if
// the plan would be another one by now, the reader has to look again.
func (p *pages) change(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.site.Fail(w, r, http.StatusBadRequest, "The form cannot be read.")
		return
	}
	a, err := ask(r.PostForm)
	if err != nil {
		p.site.Fail(w, r, http.StatusBadRequest, page.Sentence(err))
		return
	}
	p.kept.Forget()
	kept, err := p.kept.Get(r.Context())
	if err != nil {
		p.site.Back(w, r, path, "Nothing was done. "+page.Sentence(err), true)
		return
	}
	plan, err := a.plan(kept)
	if err != nil {
		p.site.Back(w, r, path, "Nothing was done. "+page.Sentence(err), true)
		return
	}
	if signature(&plan) != r.PostForm.Get("expect") {
		p.site.Back(w, r, a.address(),
			"Nothing was done: what would be pinned has changed since you looked. Look again.", true)
		return
	}
	detail := map[string]string{"versions": signature(&plan), "before": ""}
	if plan.From != nil {
		detail["before"] = fmt.Sprintf("0:%d", plan.From.Version)
	}
	if a.Incident != "" {
		detail["incident"] = a.Incident
	}
	action := page.Action{Name: a.Do, Target: "model " + p.site.Model, Detail: detail}
	p.site.Act(w, r, action, func(ctx context.Context) (string, error) {
		defer p.kept.Forget()
		if err := plan.Do(ctx, p.Store); err != nil {
			return "", err
		}
		return done(a, &plan), nil
	}, path)
}

func done(a request, plan *Plan) string {
	if a.Do == doUnpin {
		return "Unpinned. Answers come from the newest version again. Scorers follow within seconds."
	}
	return fmt.Sprintf("Pinned. Answers come from version %d until you unpin. Scorers follow within seconds, "+
		"and learning goes on.", plan.Pin)
}
