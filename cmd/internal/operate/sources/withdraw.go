package sources

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hamlet/cmd/internal/operate/withdraw"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
)

const (
	compared  = 1000            // events of other sources whose answers a plan compares
	startWait = 2 * time.Second // a plan that is made so soon is shown at once
	askTime   = 2 * time.Second // to ask what the learner has saved
)

func planURL(id string) string { return withdrawPath + "?" + url.Values{"plan": {id}}.Encode() }

// A withdrawal is what the page shows.
type withdrawal struct {
	Plans        []*jobState
	NoKafka      string
	Asked        bool // for one plan
	Gone         bool // it is not known any more
	One          *jobState
	Learnt       string // whether the learner has saved what was written
	Source       string // of the form
	Since, Until string
	Muted        string // the page to mute the source
}

func (p *pages) withdrawal(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	v := withdrawal{Source: query.Get("source"), Since: query.Get("since"), Until: query.Get("until")}
	if err := p.needKafka(); err != nil {
		v.NoKafka = err.Error()
	}
	status := http.StatusOK
	if id := query.Get("plan"); id != "" {
		v.Asked = true
		if j := p.plans.find(id); j == nil {
			v.Gone, status = true, http.StatusNotFound
		} else {
			v.One = p.plans.one(j)
			v.Source, v.Since, v.Until, v.Muted = j.Source, j.Since, j.Until, URL(j.Source)
			if v.One.Done && v.One.Written > 0 {
				v.Learnt = p.learnt(r.Context(), v.One.Plan)
			}
		}
	}
	v.Plans = p.plans.view()
	p.site.Render(w, r, planTemplates, status, "Withdraw", v)
}

// learnt says whether the saved model has learnt what was written.
func (p *pages) learnt(ctx context.Context, plan *withdraw.Plan) string {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if plan.Until == 0 {
		return "Whether the learner has saved it is not known: where it ends in the log could not be asked."
	}
	learnt, err := plan.Learnt(ctx, p.cfg.Store)
	switch {
	case err != nil:
		return fmt.Sprintf("Whether the learner has saved it is not known: %v.", err)
	case !learnt:
		return "The learner has not saved it yet."
	}
	return "The learner has learnt and saved it. Scorers follow within seconds."
}

func (p *pages) startPlan(w http.ResponseWriter, r *http.Request) {
	j := &job{jobState: jobState{
		Source: r.PostFormValue("source"), By: access.FromContext(r.Context()).Name,
		Since: strings.TrimSpace(r.PostFormValue("since")), Until: strings.TrimSpace(r.PostFormValue("until")),
	}}
	form := WithdrawURL(j.Source, j.Since)
	if j.Until != "" {
		form += "&" + url.Values{"until": {j.Until}}.Encode()
	}
	request, err := p.request(j)
	if err == nil {
		err = p.plans.start(j, func(ctx context.Context, progress func(withdraw.Progress)) (*withdraw.Plan, error) {
			request.SpamAt, request.HamAt = p.thresholds(ctx)
			return withdraw.Make(ctx, p.servers(), request, progress)
		})
	}
	if err != nil {
		p.site.Back(w, r, form, fmt.Sprintf("No plan is made: %v.", err), true)
		return
	}
	soon := time.NewTimer(startWait)
	defer soon.Stop()
	select {
	case <-j.ended:
	case <-soon.C:
	case <-r.Context().Done():
	}
	http.Redirect(w, r, planURL(j.ID), http.StatusSeeOther)
}

// most bounds the text of a field, in bytes.
const most = stream.MaxNameLength

func (p *pages) request(j *job) (*withdraw.Request, error) {
	if err := p.needKafka(); err != nil {
		return nil, err
	}
	if j.Source == "" || len(j.Source) > most || len(j.Since) > most || len(j.Until) > most {
		return nil, fmt.Errorf("name a source, and when to begin, each in at most %d bytes", most)
	}
	now := p.site.Now()
	since, err := withdraw.ParseBound("from", j.Since, p.site.Model, now)
	if err != nil {
		return nil, err
	}
	var until withdraw.Bound
	if j.Until != "" {
		if until, err = withdraw.ParseBound("to", j.Until, p.site.Model, now); err != nil {
			return nil, err
		}
	}
	return &withdraw.Request{Model: p.site.Model, Source: j.Source, Since: since, Until: until,
		Recent: compared}, nil
}

// infoTime bounds the wait for a scorer's thresholds.
const infoTime = 2 * time.Second

// thresholds returns those of the scorers' verdicts now: spam and ham. Of several scorers one
// answers. The plan decides with the interval. A budget does not: of doubtful mail it calls more spam than the plan says.
func (p *pages) thresholds(ctx context.Context) (spam, ham float64) {
	const usualSpam, usualHam = 0.9, 0.5
	ctx, cancel := context.WithTimeout(ctx, infoTime)
	defer cancel()
	info, err := p.cfg.Info(ctx)
	if err != nil || !(0 < info.HamAt && info.HamAt <= info.SpamAt && info.SpamAt <= 1) {
		return usualSpam, usualHam
	}
	return info.SpamAt, info.HamAt
}

func (p *pages) servers() withdraw.Servers {
	return withdraw.Servers{Kafka: p.cfg.Kafka, Store: p.cfg.Store}
}

// confirmTime bounds confirm, which may first have to learn what the saved model lacks.
const confirmTime = 5 * time.Minute

// confirm writes the plan that was shown, if it still holds. It has longer than other actions.
func (p *pages) confirm(w http.ResponseWriter, r *http.Request) {
	id := r.PostFormValue("plan")
	j := p.plans.find(id)
	if j == nil {
		p.site.Back(w, r, withdrawPath, "Nothing was withdrawn: the plan is not kept any more. Make another.", true)
		return
	}
	v := p.plans.one(j)
	if !v.Ready() || v.Plan.Withdrawable == 0 {
		p.site.Back(w, r, planURL(id), "Nothing was withdrawn: there is no plan to write.", true)
		return
	}
	all := v.Plan.Withdrawable
	detail := map[string]string{"since": j.Since, "labels": strconv.Itoa(all)}
	if j.Until != "" {
		detail["until"] = j.Until
	}
	p.site.Act(w, r, page.Action{Name: "withdraw", Target: j.Source, Detail: detail},
		func(ctx context.Context) (string, error) {
			plan, err := p.plans.take(j)
			if err != nil {
				return "", err
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
			defer cancel()
			written, done := 0, false
			defer func() { p.plans.put(j, written, done) }()
			if err := plan.Recheck(ctx, p.servers(), func(withdraw.Progress) {}); err != nil {
				return "", notRechecked(ctx, err)
			}
			written, err = plan.Write(ctx, p.servers(), func(withdraw.Progress) {})
			done = written == all
			return wrote(written, all, err)
		}, planURL(id))
}

// notRechecked says why a plan was not written.
func notRechecked(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.New("nothing was withdrawn: the learner is still applying what was written before; " +
			"confirm again when it has saved it")
	}
	return fmt.Errorf("nothing was withdrawn: %w", err)
}

// wrote says what withdraw.Plan.Write did. Once all are written, an error is about what it
// asked then, and there is nothing to repeat.
func wrote(written, all int, err error) (string, error) {
	if err != nil && written < all {
		return "", fmt.Errorf("%d of %d withdrawals are written, confirm again for the others: %w", written, all, err)
	}
	return fmt.Sprintf("%d withdrawals are written, as they were shown. The learner applies one after the other, "+
		"some hundreds take minutes. Receipts are in topic %s.", written, stream.ReceiptTopic), nil
}

func (p *pages) cancel(w http.ResponseWriter, r *http.Request) {
	if j := p.plans.find(r.PostFormValue("plan")); j != nil {
		j.cancel()
		select {
		case <-j.ended:
		case <-r.Context().Done():
		}
	}
	http.Redirect(w, r, withdrawPath, http.StatusSeeOther)
}
