package incidents

import (
	"context"
	"slices"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/service/answered"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// infoTime bounds the wait for a scorer.
const infoTime = 2 * time.Second

// Asked returns what a scorer says of the model that it serves; nil if none answers.
func Asked(ctx context.Context, conn *natsgo.Conn, model string) *stream.Info {
	client, err := nats.NewClient(conn, model)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, infoTime)
	defer cancel()
	info, err := client.Info(ctx)
	if err != nil {
		return nil
	}
	return &info
}

// Known returns the doubts of a model: those of the incidents that NATS keeps, and those that its scorer has open
// and NATS does not know. Learners may publish no alerts, and an alert may be damaged. Where NATS may lack some and
// no scorer answers, nobody can say: that is a doubt of no kind. lacking: some alert is damaged, or NATS keeps
// none at all. When an incident began that NATS does not know is not known either, so it has no beginning.
func Known(all []*Incident, lacking bool, info *stream.Info, model string) answered.Doubts {
	doubts := Doubts(all)
	if info == nil {
		if lacking {
			doubts = append(doubts, answered.Doubt{})
		}
		return doubts
	}
	if info.Model.Name != model {
		return doubts
	}
	for _, open := range info.Incidents {
		kept := slices.ContainsFunc(all, func(i *Incident) bool { return i.ID() == open.Incident })
		if !kept && open.Kind != stream.AlertCovariate {
			doubts = append(doubts, answered.Doubt{Kind: open.Kind})
		}
	}
	return doubts
}
