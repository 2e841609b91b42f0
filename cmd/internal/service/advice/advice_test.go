package advice

import (
	"errors"
	"fmt"
	"testing"

	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
)

func TestAdd(t *testing.T) {
	refused := func(stream string, help nats.Setting) error {
		return &nats.RefusedError{Stream: stream, Setting: help, Err: errors.New("refused")}
	}
	for _, c := range []struct {
		err  error
		want string // "": as it is
	}{
		{errors.New("any"), ""},
		{state.ErrPartitions, ""}, // who says only this has words of its own
		{refused(nats.JournalStream, nats.SettingStream), "refused, or go without (--no-journal)"},
		{refused(nats.JournalStream, nats.SettingUser), ""},
		{refused(nats.AuditStream, nats.SettingStream), ""},
		{fmt.Errorf("wrapped %w", refused(nats.WaitingStream, nats.SettingBytes)), "wrapped refused, or lower --self-label-size"},
		{kafka.ErrOutage, "kafka outage, or wait longer with --kafka-outage"},
		{redis.ErrIsCluster, "it is a node of a Redis Cluster: add --redis-cluster"},
		{fmt.Errorf("leave it out%w", stream.ErrDamaged), "leave it outthe log is damaged with hamlet log skip"},
		{&state.PartitionsError{Model: "m", Partitions: []int{0, 1}},
			(&state.PartitionsError{Model: "m", Partitions: []int{0, 1}}).Error() +
				`: make one log of theirs with "hamlet log merge --from m --to NAME", and have it learnt under that name`},
	} {
		got := Add(Add(c.err))
		if want := max(c.want, c.err.Error()); got.Error() != want || !errors.Is(got, c.err) {
			t.Errorf("%v gets\n%v, want\n%v", c.err, got, want)
		}
	}
	if err := Add(nil); err != nil {
		t.Errorf("nil gets %v", err)
	}
}
