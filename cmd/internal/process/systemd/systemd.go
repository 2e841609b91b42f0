// Package systemd tells systemd how a service stands, as units with Type=notify want it:
// when it is ready, what it waits for, that it is alive, and that it stops.
//
//	systemd.Status("waiting for Redis", log)
//	defer systemd.Notify(ctx, ready, log)()
//
// Where the environment names no NOTIFY_SOCKET, no notification is sent and nothing runs.
//
// A service whose sockets systemd holds takes them with [Listener].
//
// For systemd a service is ready once it serves, as Notify's caller does. A boot waits for
// that, and must not wait for a first model or for a broker. Ready is the condition of
// /readyz, and is shown in the status alone. The watchdog is fed as long as ready returns,
// whatever it returns. A new process would not bring the broker back. A ready that hangs
// stops the feeding, and systemd starts the service again.
package systemd

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// How often ready is asked: before its first nil, and from then on without a watchdog.
const (
	startPoll  = 200 * time.Millisecond
	steadyPoll = 10 * time.Second
)

// Status tells systemd what a service does that does not serve yet.
func Status(text string, log *slog.Logger) {
	n := &notifier{log: log}
	n.send("STATUS=" + text)
}

// Notify tells systemd that the service serves, and how it stands until ctx ends or stop is called. Both say that the
// service stops. Stop waits for a call of ready that is under way. A nil ready is ready.
func Notify(ctx context.Context, ready func() error, log *slog.Logger) (stop func()) {
	inherited.warnOfUnused(log)
	n := &notifier{ready: ready, log: log}
	if !n.send(daemon.SdNotifyReady + "\nSTATUS=starting") {
		return func() {}
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd's watchdog is not fed", "error", err)
	}
	n.watchdog = watchdog
	ctx, cancel := context.WithCancel(ctx)
	told, ended := make(chan struct{}), make(chan struct{})
	context.AfterFunc(ctx, func() { // at once, even while ready is being asked
		defer close(told)
		n.send(daemon.SdNotifyStopping + "\nSTATUS=stopping")
	})
	go func() {
		defer close(ended)
		n.run(ctx)
	}()
	return func() {
		cancel()
		<-told
		<-ended
	}
}

// A notifier sends what has changed. Only run uses its mutable fields.
type notifier struct {
	ready    func() error
	watchdog time.Duration // systemd restarts a service that is silent for so long; 0: it does not
	log      *slog.Logger

	begun  bool   // ready was nil once
	status string // the last one that was sent
}

// run asks ready and sends what follows from it, until ctx ends.
func (n *notifier) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		message := n.message()
		if ctx.Err() != nil {
			return // systemd shall hear nothing behind STOPPING
		}
		if message != "" {
			n.send(message)
		}
		timer.Reset(n.pause())
	}
}

// message asks ready and returns what systemd should hear; "" is nothing.
func (n *notifier) message() string {
	var lines []string
	status := "ready"
	if n.ready != nil {
		if err := n.ready(); err != nil {
			status = "not ready: " + strings.Join(strings.Fields(err.Error()), " ") // a line break ends a status
		}
	}
	n.begun = n.begun || status == "ready"
	if status != n.status {
		n.status = status
		lines = append(lines, "STATUS="+status)
	}
	if n.watchdog > 0 {
		lines = append(lines, daemon.SdNotifyWatchdog)
	}
	return strings.Join(lines, "\n")
}

// pause returns how long to wait before ready is asked again. The watchdog is fed three times
// in its time.
func (n *notifier) pause() time.Duration {
	pause := steadyPoll
	if !n.begun {
		pause = startPoll
	}
	if n.watchdog > 0 {
		pause = min(pause, n.watchdog/3)
	}
	return pause
}

// send sends a notification and reports whether somebody listens. An error is logged: without
// notifications systemd ends the service, and the log must say why.
func (n *notifier) send(message string) bool {
	sent, err := daemon.SdNotify(false, message)
	if err != nil {
		n.log.Warn("systemd cannot be told how the service stands", "error", err)
	}
	return sent || err != nil
}
