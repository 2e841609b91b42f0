package services

import (
	"bytes"
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"hamlet/cmd/internal/learner"
	"hamlet/cmd/internal/settings"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// A new topic of several partitions has one model of all. What is saved stays as it is: a topic
// that gets more partitions keeps a model for each. --models wins over both.
func TestLayout(t *testing.T) {
	k, err := embedded.StartKafka(embedded.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	r, err := embedded.StartRedis(embedded.RedisOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var said bytes.Buffer
	// open returns what a learner of the model does; it saves a checkpoint with an order before
	// if saved says so.
	open := func(model, of, models string, partitions int, saved string) *learner.Order {
		t.Helper()
		said.Reset()
		s := New("test", model, slog.New(slog.NewTextHandler(&said, nil)))
		defer s.Close()
		s.EventsOf = of
		reach := settings.Redis{Redis: r.Addr()}
		brokers := kafka.Config{Brokers: []string{k.Addr()}}
		if err := kafka.EnsureTopic(t.Context(), brokers, stream.EventsTopic(cmp.Or(of, model)), max(partitions, 1), 1, -1); err != nil {
			t.Fatal(err)
		}
		topic := settings.Topic{Replication: 1, Retention: -1}
		cfg, producer, err := s.OpenKafka(t.Context(), settings.Kafka{Kafka: []string{k.Addr()}}, topic)
		if err != nil {
			t.Fatal(err)
		}
		store, err := s.OpenRedis(t.Context(), reach, settings.Versions{KeepVersions: 2})
		if err != nil {
			t.Fatal(err)
		}
		if saved != "" {
			epoch, err := store.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := state.Checkpoint{Epoch: epoch, Model: []byte("m"), Config: []byte("{}")}
			if saved == settings.OneModel {
				c.Order = []byte("order")
			}
			if _, err := store.Save(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
		}
		o, err := s.OpenOrder(t.Context(), settings.Learner{Models: models}, topic, reach, store, cfg, producer)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for _, c := range []struct {
		model, of, models string
		partitions        int
		saved             string
		topic             string // of the order log; "" without one
		says              string
	}{
		{model: "alone", partitions: 1},
		{model: "several", partitions: 2, topic: "several"},
		{model: "grown", partitions: 2, saved: settings.ModelEach, says: "--model NAME --events-of grown --models one"},
		{model: "one", partitions: 2, saved: settings.OneModel, topic: "one"},
		{model: "asked", partitions: 1, models: settings.OneModel, topic: "asked"},
		{model: "each", partitions: 3, models: settings.ModelEach},
		{model: "clean", of: "one", topic: "one"},
		{model: "clean", of: "grown", says: "--events-of grown --models one"},
		{model: "clean", of: "grown", models: settings.OneModel, topic: "grown"},
	} {
		o := open(c.model, c.of, c.models, c.partitions, c.saved)
		if got := c.topic != ""; got != (o != nil) || o != nil && (o.Topic != order.Topic(c.topic) || o.Writer == "") {
			t.Errorf("%+v: %+v", c, o)
		}
		if text := said.String(); c.says == "" && strings.Contains(text, "--models") || !strings.Contains(text, c.says) {
			t.Errorf("%+v: the log says %q", c, text)
		}
		want := "hamlet.learner." + c.model
		if o != nil {
			want += ".order"
		}
		if got := LearnerGroup(c.model, o); got != want {
			t.Errorf("%+v: group %s", c, got)
		}
	}

	// What is damaged or deleted of one model leaves it one.
	open("hurt", "", "", 2, settings.OneModel)
	open("hurt", "", "", 2, settings.OneModel)
	client := goredis.NewClient(&goredis.Options{Addr: r.Addr()})
	defer client.Close()
	keys := func(pattern string) []string {
		t.Helper()
		found, err := client.Keys(t.Context(), pattern).Result()
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		slices.Sort(found)
		return found
	}
	versions := keys("hamlet:{hurt}:0:version:*")
	if err := client.HSet(t.Context(), versions[len(versions)-1], "manifest", "?").Err(); err != nil || len(versions) < 2 {
		t.Fatalf("%q, %v", versions, err)
	}
	if o := open("hurt", "", "", 2, ""); o == nil {
		t.Error("one model whose newest version is damaged is several now")
	}
	if err := client.Del(t.Context(), keys("hamlet:{hurt}:0:[^p]*")...).Err(); err != nil {
		t.Fatal(err)
	}
	if o := open("hurt", "", "", 2, ""); o == nil || len(keys("hamlet:{hurt}:0:partitions")) != 1 {
		t.Error("one model that is learnt again is several now")
	}

	// Without Redis the groups say what the models were.
	read := func(group, topic string, partitions int) {
		t.Helper()
		cfg := kafka.Config{Brokers: []string{k.Addr()}}
		client, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()), kgo.MaxVersions(kversion.V2_8_0()))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if err := kafka.EnsureTopic(t.Context(), cfg, topic, partitions, 1, time.Hour); err != nil {
			t.Fatal(err)
		}
		last := kmsg.NewPtrOffsetCommitRequest()
		last.Group = group
		last.Generation = -1
		last.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: int32(partitions - 1), Offset: 7}}}}
		if res, err := last.RequestWith(t.Context(), client); err != nil || res.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	read(LearnerGroup("lost", nil), stream.EventsTopic("lost"), 2)
	for _, model := range []string{"lost", "fresh"} {
		if o := open(model, "lost", "", 2, ""); o != nil || !strings.Contains(said.String(), "Redis has lost the models") {
			t.Errorf("model %s: models whose learners have read partition 1 are one now; the log says %q", model, said.String())
		}
	}
	read(LearnerGroup("both", nil), stream.EventsTopic("both"), 2)
	open("both", "", settings.OneModel, 2, "") // makes the order log
	read(LearnerGroup("both", &learner.Order{}), order.Topic("both"), 1)
	if o := open("both", "", "", 2, ""); o == nil {
		t.Error("one model that was several before is several again")
	}
	if o := open("lost", "", settings.OneModel, 2, ""); o == nil {
		t.Error("--models one is not heard")
	}
}
