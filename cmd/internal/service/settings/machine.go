package settings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/credentials"
	"hamlet/cmd/internal/service/machine"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
)

// Machine says which machine a command works on, where no Kafka and no Redis is named: the logs and
// models of a `hamlet up`. It finds it once; Close it at the end.
type Machine struct {
	Data string `help:"Folder of a hamlet up --data, also a stopped one; default: the one that runs." type:"path" placeholder:"DIR"`

	// Running has it use a running `hamlet up` alone: a service would keep the files of a stopped one from it.
	Running bool `kong:"-"`

	found machine.Machine
}

// find returns the machine that --data names, or that of the one `hamlet up` which this user runs. It
// is nil if there is none. Several are wrong usage.
func (m *Machine) find(ctx context.Context, log *slog.Logger) (machine.Machine, error) {
	if m.found != nil {
		return m.found, nil
	}
	dir, err := m.folder()
	if err != nil || dir == "" {
		return nil, err
	}
	if m.Running {
		m.found, err = machine.NewClient(dir)
		return m.found, err
	}
	found, err := machine.Find(ctx, dir, log)
	if err == nil {
		m.found = found
	}
	return found, err
}

// folder returns what --data names, or the folder of the one that runs; "" if none does.
func (m *Machine) folder() (string, error) {
	if m.Data != "" {
		return m.Data, nil
	}
	var running []string
	for _, a := range credentials.Running() {
		if a.Data != "" {
			running = append(running, a.Data)
		}
	}
	switch len(running) {
	case 0:
		return "", nil
	case 1:
		return running[0], nil
	}
	return "", cli.Usagef("several `hamlet up` run: name the folder of one with --data: %s", strings.Join(running, ", "))
}

// Beside is Logs for a service that runs beside a `hamlet up`: it never opens the folder itself, and
// does not wait for the other program.
func (m *Machine) Beside(f Kafka, client string, log *slog.Logger) (stream.Logs, error) {
	dir, err := m.folder()
	if err == nil && len(f.Kafka) == 0 && dir != "" {
		return machine.NewClient(dir)
	}
	if err != nil && len(f.Kafka) == 0 {
		return nil, err
	}
	cfg, err := f.Config(client, log)
	return cfg, usage(err)
}

// LogsIfAny is Logs, and nil where there are none.
func (m *Machine) LogsIfAny(ctx context.Context, f Kafka, client string, log *slog.Logger) (stream.Logs, error) {
	if len(f.Kafka) == 0 {
		found, err := m.find(ctx, log)
		if err != nil || found == nil {
			return nil, err
		}
		return found, nil
	}
	cfg, err := f.Config(client, log)
	return cfg, usage(err)
}

// Logs returns the logs of the Kafka that the flags name, or else the machine's.
func (m *Machine) Logs(ctx context.Context, f Kafka, client string, log *slog.Logger) (stream.Logs, error) {
	logs, err := m.LogsIfAny(ctx, f, client, log)
	if err == nil && logs == nil {
		return nil, usage(errors.New("no log: name Kafka's brokers with --kafka HOST:PORT (or HAMLET_KAFKA), " +
			"or the folder of a hamlet up with --data; without either the hamlet up of this user is asked, and none runs"))
	}
	return logs, err
}

// Store returns the store of a model in the Redis that the flags name, or else in the machine. The
// caller closes it.
func (m *Machine) Store(ctx context.Context, f Redis, model string, log *slog.Logger) (state.Store, error) {
	if f.Redis == "" {
		found, err := m.find(ctx, log)
		if err != nil {
			return nil, err
		}
		if found == nil {
			return nil, usage(errors.New("no models: name Redis with --redis HOST:PORT (or HAMLET_REDIS), " +
				"or the folder of a hamlet up with --data; without either the hamlet up of this user is asked, and none runs"))
		}
		return found.Store(model)
	}
	cfg, err := f.Config(model, log)
	if err != nil {
		return nil, usage(err)
	}
	redis.SetLogger(log)
	return redis.New(cfg)
}

// Stopped returns the folder of the machine that was found, if its `hamlet up` does not run: its files are
// open then, nobody learns, and it cannot start before Close. "": it runs, or none was found.
func (m *Machine) Stopped() string {
	if files, ok := m.found.(*machine.Dir); ok {
		return files.Path()
	}
	return ""
}

// WithoutServers says that a running `hamlet up` has no Kafka and no Redis, to who looks for them where nobody
// listens. In 0.1.0 it had both.
func WithoutServers(err error) error {
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	for _, a := range credentials.Running() {
		if a.Data != "" {
			return fmt.Errorf("%w; %s", err, withoutServers(a))
		}
	}
	return err
}

func withoutServers(a credentials.Access) string {
	return "the hamlet up of this user has no Kafka and no Redis: leave --kafka and --redis out, or say --data " + a.Data +
		"; ingest --http, learner and scorer need real ones"
}

// checkNotUp refuses the address of the NATS of a running `hamlet up` for a Kafka or a Redis: neither protocol
// would lead to words.
func checkNotUp(flag, addr string) error {
	for _, a := range credentials.Running() {
		if a.Data != "" && a.NATS.Reached(addr) {
			return fmt.Errorf("--%s: a NATS is at %s; %s", flag, addr, withoutServers(a))
		}
	}
	return nil
}

// Close frees the machine, if one was found.
func (m *Machine) Close() error {
	if m.found == nil {
		return nil
	}
	return m.found.Close()
}
