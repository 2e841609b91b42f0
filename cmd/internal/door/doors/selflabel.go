package doors

import (
	"log/slog"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/door/selflabel"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream/nats"
)

// SelfLabelFlags are those of answers that the model learns itself.
type SelfLabelFlags struct {
	SelfLabel     time.Duration `help:"Learn sure answers to mail that nobody corrects within so long; the mail waits in NATS. 0: never." default:"0" placeholder:"AFTER" group:"Doors" rare:"up"`
	SelfLabelNATS string        `name:"self-label-nats" help:"NATS where that mail waits, with user and password; default: that of --nats." placeholder:"URL" group:"Doors" rare:"up"`
	SelfLabelSize int64         `help:"MiB of mail that may wait for that." default:"${self_label_size}" placeholder:"MIB" group:"Doors" rare:"up"`
}

// Bounds of --self-label: JetStream keeps the mail so long.
const (
	leastSelfLabel = time.Second
	mostSelfLabel  = 30 * 24 * time.Hour
)

func (f *SelfLabelFlags) check(mail bool) error {
	switch {
	case f.SelfLabel == 0:
		return nil
	case f.SelfLabel < leastSelfLabel || f.SelfLabel > mostSelfLabel:
		return cli.Usagef("--self-label: %v is neither 0 nor between %v and %v", f.SelfLabel, leastSelfLabel, mostSelfLabel)
	case !mail:
		return cli.Usagef("--self-label is for mail that passes a door for mail servers, and none is open")
	}
	return cli.Range("--self-label-size", f.SelfLabelSize, 1, 1<<20)
}

// Connect returns the connection to the NATS where mail waits. It is conn, which asks for scores,
// without --self-label-nats or --self-label; else a new one, which the caller closes too. access
// gives it the TLS, and no user: that of the URL has another account.
func (f *SelfLabelFlags) Connect(
	conn *natsgo.Conn, access settings.NATSAccess, log *slog.Logger,
) (*natsgo.Conn, error) {
	if f.SelfLabel == 0 || f.SelfLabelNATS == "" {
		return conn, nil
	}
	return settings.ConnectApart("--self-label-nats", f.SelfLabelNATS, "hamlet-self-label", access, log)
}

// Service returns what learns answers, or nil without --self-label. conn is Connect's.
func (f *SelfLabelFlags) Service(
	conn *natsgo.Conn, model string, teacher gateway.Teacher, registry prometheus.Registerer, log *slog.Logger,
) (*selflabel.Service, error) {
	if f.SelfLabel == 0 {
		return nil, nil
	}
	store, err := nats.NewWaiting(conn, nats.WaitingConfig{
		Model: model, After: f.SelfLabel, Bytes: f.SelfLabelSize << 20, Log: log,
	})
	if err != nil {
		return nil, err
	}
	return selflabel.New(selflabel.Config{
		Store: store, Teacher: teacher, After: f.SelfLabel, Registerer: registry, Log: log,
	}), nil
}
