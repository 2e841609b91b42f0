package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hamlet/cmd/internal/console/page"
	"hamlet/cmd/internal/pinning"
)

// What may be done to the versions that answer: the values of the field "do".
const (
	doPin      = "pin"
	doRollback = "rollback"
	doUnpin    = "unpin"
)

// An asked is a change that a request asks for.
type asked struct {
	Do        string
	Partition int
	Version   int64
	Only      bool   // this partition alone
	Incident  string // the id of the incident that the change answers; "": none
}

// anIncident is the form of an incident's id: model, partition, event.
var anIncident = regexp.MustCompile(`^[a-z0-9-]+\.[0-9]{1,10}\.[0-9]{1,20}$`)

// mostIncident bounds the id of an incident, in bytes.
const mostIncident = 128

// ask reads the fields of a form.
func ask(form url.Values) (a asked, err error) {
	a.Do, a.Incident = form.Get("do"), form.Get("incident")
	if a.Incident != "" && (len(a.Incident) > mostIncident || !anIncident.MatchString(a.Incident)) {
		return asked{}, errors.New("the address names an incident, but not by its id, such as default.0.6102")
	}
	switch a.Do {
	case doRollback, doUnpin:
		return a, nil
	case doPin:
	default:
		return a, errors.New("this page pins a version, rolls back, or unpins; the address says none of these")
	}
	var badPartition, badVersion error
	a.Partition, badPartition = strconv.Atoi(form.Get("partition"))
	a.Version, badVersion = strconv.ParseInt(form.Get("version"), 10, 64)
	if badPartition != nil || badVersion != nil || a.Version < 1 {
		return a, errors.New("choose a version: the address has none")
	}
	a.Only = form.Get("only") != ""
	return a, nil
}

// plan says what the change does, as things stand.
func (a asked) plan(kept pinning.Kept) (pinning.Plan, error) {
	switch a.Do {
	case doPin:
		return kept.Pin(a.Version, &a.Partition, a.Only)
	case doRollback:
		return kept.Rollback()
	}
	return kept.Unpin(), nil
}

// Address returns where the change is asked for, of this partition alone or not.
func (a asked) Address(only bool) string {
	q := url.Values{"do": {a.Do}}
	if a.Do == doPin {
		q.Set("partition", strconv.Itoa(a.Partition))
		q.Set("version", strconv.FormatInt(a.Version, 10))
		if only {
			q.Set("only", "1")
		}
	}
	if a.Incident != "" {
		q.Set("incident", a.Incident)
	}
	return path + "/change?" + q.Encode()
}

// signature says which versions a plan pins, such as "0:5,1:7"; "unpin" unpins all.
func signature(plan *pinning.Plan) string {
	pins := plan.Pins()
	if pins == nil {
		return doUnpin
	}
	var all []string
	for _, partition := range slices.Sorted(maps.Keys(pins)) {
		all = append(all, fmt.Sprintf("%d:%d", partition, pins[partition]))
	}
	return strings.Join(all, ",")
}

// A confirmation is the page that says what will be answered from then on.
type confirmation struct {
	asked
	Title   string
	Steps   []step
	Nothing bool // no partition answers from another version than before
	Several bool // the model has several partitions
	Expect  string
}

// A step is what changes in a partition.
type step struct {
	pinning.Step
	Fewer, More int64 // events that the versions differ in; at most one is not 0
}

// confirm answers GET /model/change.
func (p *pages) confirm(w http.ResponseWriter, r *http.Request) {
	a, err := ask(r.URL.Query())
	if err != nil {
		p.site.Fail(w, r, http.StatusBadRequest, sentence(err))
		return
	}
	kept, err := p.kept.get(r.Context())
	if err != nil {
		p.site.Fail(w, r, http.StatusServiceUnavailable, sentence(err))
		return
	}
	plan, err := a.plan(kept)
	if err != nil {
		p.site.Fail(w, r, http.StatusConflict, sentence(err))
		return
	}
	data := &confirmation{asked: a, Several: len(kept.Partitions) > 1, Nothing: true, Expect: signature(&plan)}
	data.Title = map[string]string{doPin: fmt.Sprintf("Pin version %d", a.Version), doRollback: "Roll back", doUnpin: "Unpin"}[a.Do]
	for _, s := range plan.Steps() {
		one := step{Step: s}
		if s.From != nil && s.To != nil {
			d := int64(s.To.Events) - int64(s.From.Events)
			one.Fewer, one.More = max(0, -d), max(0, d)
			data.Nothing = data.Nothing && s.From.Version == s.To.Version
		} else {
			data.Nothing = false
		}
		data.Steps = append(data.Steps, one)
	}
	p.site.Render(w, r, changeTemplates, http.StatusOK, data.Title, data)
}

const mostForm = 1 << 16 // bytes

// change answers POST /model/change. It does what the page before showed, and nothing else: if
// the plan would be another one by now, the reader has to look again.
func (p *pages) change(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := r.ParseForm(); err != nil {
		p.site.Fail(w, r, http.StatusBadRequest, "The form cannot be read.")
		return
	}
	a, err := ask(r.PostForm)
	if err != nil {
		p.site.Fail(w, r, http.StatusBadRequest, sentence(err))
		return
	}
	p.kept.forget()
	kept, err := p.kept.get(r.Context())
	if err != nil {
		p.site.Back(w, r, path, "Nothing was done. "+sentence(err), true)
		return
	}
	plan, err := a.plan(kept)
	if err != nil {
		p.site.Back(w, r, path, "Nothing was done. "+sentence(err), true)
		return
	}
	if signature(&plan) != r.PostForm.Get("expect") {
		p.site.Back(w, r, a.Address(a.Only), "Nothing was done: what would be pinned has changed since you looked. Look again.", true)
		return
	}
	before := make([]string, 0, len(kept.Partitions))
	for _, s := range plan.Steps() {
		if s.From != nil {
			before = append(before, fmt.Sprintf("%d:%d", s.Partition, s.From.Version))
		}
	}
	detail := map[string]string{"versions": cut(signature(&plan)), "before": cut(strings.Join(before, ","))}
	if a.Incident != "" {
		detail["incident"] = a.Incident
	}
	action := page.Action{Name: a.Do, Target: "model " + p.Model, Detail: detail}
	p.site.Act(w, r, action, func(ctx context.Context) (string, error) {
		defer p.kept.forget()
		if err := plan.Do(ctx, p.Store); err != nil {
			return "", err
		}
		return done(a, &plan), nil
	}, path)
}

// mostDetail bounds a detail of an action, in bytes: a model may have many partitions.
const mostDetail = 200

func cut(s string) string {
	if len(s) > mostDetail {
		return s[:mostDetail] + "…"
	}
	return s
}

// done says what was done.
func done(a asked, plan *pinning.Plan) string {
	if a.Do == doUnpin {
		return "Unpinned. Answers come from the newest version again. Scorers follow within seconds."
	}
	var all []string
	for _, s := range plan.Steps() {
		all = append(all, fmt.Sprintf("%d of partition %d", s.To.Version, s.Partition))
	}
	which := "version " + all[0]
	if len(all) > 1 {
		which = fmt.Sprintf("the pinned versions of %d partitions", len(all))
	}
	return "Pinned. Answers come from " + which + " until you unpin. Scorers follow within seconds, and learning goes on."
}
