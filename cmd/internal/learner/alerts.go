package learner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"hamlet/algos/model"
	"hamlet/cmd/internal/convert"
	"hamlet/stream"
)

// An AlertPublisher publishes alerts and returns when they are acknowledged. An
// alert may be given again. An error that wraps stream.ErrAlerts is final. Package
// alerttest has the laws.
type AlertPublisher interface {
	Publish(ctx context.Context, alerts ...stream.Alert) error
}

const (
	// mostAlerts is how many alerts a partition holds that are not acknowledged
	// yet: a few megabytes. With so many the partition stands still until there is
	// somebody to tell them to.
	mostAlerts = 1000
	// alertPatience bounds an attempt to publish while learning waits for it. An
	// acknowledgement takes one write to a disk. After an attempt that failed the
	// next may take alertHurry, or where that is more an alertShare of the pause
	// before it: a NATS that is down takes at most a sixteenth of the time once the
	// pauses are long, and one that is merely slow is given the time it needs.
	alertPatience = 2 * time.Second
	alertHurry    = 500 * time.Millisecond
	alertShare    = 15
)

// newAlertPauses returns the pauses between attempts that failed.
func newAlertPauses() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = 250*time.Millisecond, 30*time.Second, 2
	b.Reset()
	return b
}

// heard takes over what an event said of alarms and rebuilds. It is said to
// people once, however often the event is read: first is false where it was read
// before a reload.
func (p *partitionModel) heard(effect *model.Effect, first bool) {
	for i := range effect.Alerts {
		a := convert.Alert(&effect.Alerts[i])
		a.Model, a.Partition = p.l.cfg.Name, p.partition
		p.alerts = append(p.alerts, a)
		if first {
			p.l.cfg.Heard(&a)
			p.l.cfg.Metrics.alert(&a)
		}
	}
	if !first {
		return
	}
	for i := range effect.Rebuilds {
		b := &effect.Rebuilds[i]
		p.l.cfg.Metrics.rebuilt(b)
		if b.Err != nil {
			p.log.Warn("rebuild failed: the ensemble before it goes on", "ensemble", b.Ensemble, "body", b.Body,
				"started", b.Started, "rows", b.Rows, "reason", b.Err)
		} else {
			p.log.Debug("rebuilt", "ensemble", b.Ensemble, "body", b.Body, "started", b.Started, "rows", b.Rows)
		}
	}
}

// publishAlerts tries to publish what is not acknowledged. Without NATS learning
// goes on, and no save is made until they are out: a save covers the events that
// it has absorbed, so an alert that was not published before it never would be.
// After a crash those events are read again, and say the same.
func (p *partitionModel) publishAlerts(ctx context.Context) error {
	full := len(p.alerts) >= mostAlerts
	if len(p.alerts) == 0 || !full && time.Now().Before(p.alertsAt) {
		return nil
	}
	attempt, cancel := ctx, context.CancelFunc(func() {})
	switch {
	case full:
		if p.alertPauses != nil {
			p.log.Warn("as many alerts as are held wait to be published: learning stands still until they are out", "alerts", len(p.alerts))
		}
	case p.alertPauses != nil:
		attempt, cancel = context.WithTimeout(ctx, min(max(alertHurry, p.alertPause/alertShare), alertPatience))
	default:
		attempt, cancel = context.WithTimeout(ctx, alertPatience)
	}
	err := p.insistOnAlerts(attempt)
	cancel()
	if err == nil || errors.Is(err, stream.ErrAlerts) || ctx.Err() != nil {
		return err
	}
	if p.alertPauses == nil {
		p.alertPauses = newAlertPauses()
		p.log.Warn("alerts cannot be published: learning goes on, saving waits for them", "alerts", len(p.alerts), "error", err)
	}
	p.alertPause = p.alertPauses.NextBackOff()
	p.alertsAt = time.Now().Add(p.alertPause)
	p.publishStatus()
	return nil
}

// insistOnAlerts publishes what is not acknowledged, trying until ctx ends.
func (p *partitionModel) insistOnAlerts(ctx context.Context) error {
	n := len(p.alerts)
	for len(p.alerts) > 0 {
		if err := p.l.cfg.Alerts.Publish(ctx, p.alerts[0]); err != nil {
			return fmt.Errorf("%d of %d alerts acknowledged: %w", n-len(p.alerts), n, err)
		}
		p.alerts = p.alerts[1:]
	}
	if n > 0 {
		p.alerts, p.alertsAt = nil, time.Time{}
		if p.alertPauses != nil {
			p.alertPauses = nil
			p.log.Info("alerts are published again", "alerts", n)
		}
		p.publishStatus()
	}
	return nil
}
