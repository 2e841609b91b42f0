package endtoend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	goredis "github.com/redis/go-redis/v9"
	kafkago "github.com/segmentio/kafka-go"

	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
	"hamlet/stream/predictions"
)

// needUsers skips a test where everybody may do everything.
func needUsers(t *testing.T) {
	t.Helper()
	if passwords == nil {
		t.Skip(`the servers have no users: eval "$(deploy/servers start --acl)"`)
	}
}

// What a service must not do in Kafka is refused.
func TestRightsInKafka(t *testing.T) {
	needUsers(t)
	model := modelName(t)
	topic := stream.EventsTopic(model)
	ctx := t.Context()
	// The rights that the other tests do not need to the letter.
	for _, name := range []string{topic, stream.ReceiptTopic, stream.DeadLetterTopic, predictions.Topic(model)} {
		if err := kafkaAs(t, "learner").Ensure(ctx, name, -1, time.Hour); err != nil {
			t.Fatalf("the learner makes %s: %v", name, err)
		}
	}
	read := func(topic string) func(cfg kafka.Config) error {
		return func(cfg kafka.Config) error {
			_, err := follow.Some(ctx, follow.Topic(logOf(t, cfg, topic), cfg), 0, 1, 1)
			return err
		}
	}
	write := func(topic string) func(cfg kafka.Config) error {
		return func(cfg kafka.Config) error {
			r := stream.Record{Key: []byte("k"), Value: []byte("{}")}
			if topic == stream.DeadLetterTopic { // other tests read them
				r.Headers = stream.DeadLetter{Reason: "a test of rights", Topic: model}.AppendHeaders(nil)
			}
			return logOf(t, cfg, topic).Append(ctx, r)
		}
	}
	create := func(cfg kafka.Config) error {
		return cfg.Ensure(ctx, topic+"-2", -1, time.Hour)
	}
	remove := func(cfg kafka.Config) error {
		res, err := client(cfg).DeleteTopics(ctx, &kafkago.DeleteTopicsRequest{Topics: []string{topic}})
		if err != nil {
			return err
		}
		return res.Errors[topic]
	}
	grow := func(cfg kafka.Config) error {
		res, err := client(cfg).CreatePartitions(ctx, &kafkago.CreatePartitionsRequest{
			Topics: []kafkago.TopicPartitionsConfig{{Name: topic, Count: 2}},
		})
		if err != nil {
			return err
		}
		return res.Errors[topic]
	}
	join := func(group string) func(cfg kafka.Config) error {
		return func(cfg kafka.Config) error {
			_, _, err := cfg.CommittedOffset(ctx, group, topic, 0) // it waits for the coordinator
			return err
		}
	}
	settings := func(cfg kafka.Config) error {
		_, _, err := cfg.Retention(ctx, topic)
		return err
	}
	ping := func(cfg kafka.Config) error { return cfg.Ping(ctx) }
	group := "hamlet.learner." + model
	for _, c := range []struct {
		user, what string
		try        func(kafka.Config) error
		allowed    bool
	}{
		{"ingest", "writes events", write(topic), true},
		{"ingest", "reads events", read(topic), false},
		{"ingest", "makes a topic", create, false},
		{"ingest", "deletes a topic", remove, false},
		{"ingest", "writes dead letters", write(stream.DeadLetterTopic), false},
		{"ingest", "reads the learner's offsets", join(group), false},
		{"importer", "reads events", read(topic), true},
		{"importer", "makes a topic", create, false},
		{"importer", "writes receipts", write(stream.ReceiptTopic), false},
		{"copier", "writes events", write(topic), true},
		{"copier", "writes dead letters", write(stream.DeadLetterTopic), true},
		{"copier", "reads its offsets", join("hamlet.ingest." + model + ".hamlet.feeds.desk"), true},
		{"copier", "reads the learner's offsets", join(group), false},
		{"copier", "reads events", read(topic), false},
		{"copier", "makes a topic", create, false},
		{"learner", "reads events", read(topic), true},
		{"learner", "reads offsets, as that of 0.1.0 did", join(group), false},
		{"learner", "reads a topic's settings", settings, false},
		{"learner", "writes dead letters", write(stream.DeadLetterTopic), true},
		{"learner", "writes receipts", write(stream.ReceiptTopic), true},
		{"learner", "writes predictions", write(predictions.Topic(model)), true},
		{"ingest", "writes predictions", write(predictions.Topic(model)), false},
		{"console", "reads predictions", read(predictions.Topic(model)), true},
		{"console", "writes predictions", write(predictions.Topic(model)), false},
		{"importer", "reads dead letters", read(stream.DeadLetterTopic), false},
		{"learner", "writes events", write(topic), false},
		{"learner", "reads dead letters", read(stream.DeadLetterTopic), false},
		{"learner", "deletes a topic", remove, false},
		{"learner", "adds partitions", grow, false},
		{"learner", "reads another group's offsets", join("billing"), false},
		{"scorer", "connects", ping, false},
		{"client", "connects", ping, false},
		{"operator", "connects", ping, false},
		{"console", "writes events", write(topic), true},
		{"console", "reads events", read(topic), true},
		{"console", "reads a topic's settings", settings, true},
		{"console", "makes a topic", create, false},
		{"console", "deletes a topic", remove, false},
		{"console", "reads dead letters", read(stream.DeadLetterTopic), false},
		{"console", "reads the learner's offsets", join(group), false},
	} {
		check(t, c.user, c.what, c.allowed, c.try(kafkaAs(t, c.user)), func(err error) bool {
			return errors.Is(err, kafka.ErrAuth) || errors.Is(err, kafkago.TopicAuthorizationFailed) || errors.Is(err, kafkago.GroupAuthorizationFailed)
		})
	}
	if err := (kafka.Config{Brokers: []string{kafkaAddr}}).Ping(ctx); err == nil {
		t.Error("Kafka answers without a password")
	}

	// Who sends before the topics are there learns what to do.
	_, stderr, status := runAs(t, "ingest", "ingest", ingestFlags(model+"-new", writeMail(t, 1))...)
	if status != 1 || !strings.Contains(stderr, "not authorised") || !strings.Contains(stderr, "start the learner first") {
		t.Errorf("ingest without a topic: status %d, %s", status, stderr)
	}
	// Who may not read sends files with --no-resume.
	file := writeMail(t, 3)
	_, stderr, status = runAs(t, "ingest", "ingest", ingestFlags(model, file)...)
	if status != 1 || !strings.Contains(stderr, "--no-resume") {
		t.Errorf("ingest of a file by a user who may not read: status %d, %s", status, stderr)
	}
	if _, stderr, status = runAs(t, "ingest", "ingest", ingestFlags(model, file, "--no-resume")...); status != 0 {
		t.Errorf("ingest --no-resume: status %d, %s", status, stderr)
	}
}

func client(cfg kafka.Config) *kafkago.Client {
	return &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers...), Timeout: patience, Transport: &kafkago.Transport{SASL: cfg.SASL}}
}

// check wants err to be nil if a user may do something, else a refusal.
func check(t *testing.T, user, what string, allowed bool, err error, refusal func(error) bool) {
	t.Helper()
	switch {
	case allowed && err != nil:
		t.Errorf("%s %s: %v", user, what, err)
	case !allowed && (err == nil || !refusal(err)):
		t.Errorf("%s %s: %v, want it refused", user, what, err)
	}
}

// What a service must not do in NATS is refused. The learner publishes an alert, and the
// operator reads it.
func TestRightsInNATS(t *testing.T) {
	needUsers(t)
	model := modelName(t)
	dial := func(user string) *natsgo.Conn {
		t.Helper()
		conn, err := nats.Connect(natsAs(user))
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		t.Cleanup(conn.Close)
		return conn
	}
	learner := dial("learner")
	publisher, err := nats.NewAlerts(learner, nats.AlertsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := publisher.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := publisher.Publish(t.Context(), stream.Alert{
		Model: model, Incident: 7, Transition: 1, Kind: stream.AlertConcept, State: stream.AlertRaised, Body: "text", Event: 7,
	}); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(dial("operator"))
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := js.OrderedConsumer(t.Context(), nats.AlertStream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{nats.IncidentSubject(model)}})
	if err != nil {
		t.Fatalf("the operator reads alerts: %v", err)
	}
	m, err := alerts.Next(jetstream.FetchMaxWait(patience))
	if err != nil {
		t.Fatalf("the operator reads alerts: %v", err)
	}
	if a, err := stream.DecodeAlert(m.Data()); err != nil || a.Event != 7 || a.Model != model {
		t.Errorf("the operator read %s, %v", m.Data(), err)
	}

	decisions, err := nats.NewJournal(dial("scorer"), nats.JournalConfig{Model: model})
	if err != nil {
		t.Fatal(err)
	}
	line := stream.JournalEntry{Time: time.Now().UTC(), Verdict: stream.DecideHam, Request: "r7"}
	if err := decisions.Append(t.Context(), model, []stream.JournalEntry{line}); err != nil {
		t.Fatalf("the scorer writes the journal: %v", err)
	}
	read := 0
	for e, err := range nats.ReadJournal(t.Context(), dial("operator"), model, time.Time{}) {
		if read++; err != nil || e.Request != "r7" {
			t.Errorf("the operator reads decisions: %+v, %v", e, err)
		}
	}
	if read != 1 {
		t.Errorf("the operator read %d decisions, want 1", read)
	}
	labels, err := nats.NewJournal(dial("learner"), nats.JournalConfig{Model: model, Labels: true})
	if err != nil {
		t.Fatal(err)
	}
	label := stream.JournalEntry{Time: time.Now().UTC(), ID: strings.Repeat("0a", 16), Label: stream.Spam}
	if err := labels.Append(t.Context(), model+"-label", []stream.JournalEntry{label}); err != nil {
		t.Fatalf("the learner writes labels into the journal: %v", err)
	}
	following, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	var lines []string
	if err := nats.FollowJournal(following, dial("learner"), model, time.Time{}, func(e *stream.JournalEntry) {
		if lines = append(lines, e.Request+e.Label.String()); len(lines) == 2 {
			stop()
		}
	}, func(err error) { t.Error(err) }); err != nil || strings.Join(lines, " ") != "r7 spam" {
		t.Errorf("the learner follows the journal: %q, %v", lines, err)
	}
	for _, user := range []string{"client", "scorer"} {
		for e, err := range nats.ReadJournal(t.Context(), dial(user), model, time.Time{}) {
			if err == nil {
				t.Errorf("%s reads the decision %+v", user, e)
			}
		}
	}

	publish := func(subject string) func(*natsgo.Conn) error {
		return func(c *natsgo.Conn) error { return c.Publish(subject, []byte("{}")) }
	}
	subscribe := func(subject, queue string) func(*natsgo.Conn) error {
		return func(c *natsgo.Conn) error {
			_, err := c.QueueSubscribeSync(subject, queue)
			return err
		}
	}
	api := func(request string) func(*natsgo.Conn) error { return publish("$JS.API." + request) }
	for _, c := range []struct {
		user, what string
		try        func(*natsgo.Conn) error
		allowed    bool
	}{
		{"learner", "answers scores", subscribe("hamlet.score", nats.ServiceName), false},
		{"learner", "hears all", subscribe(">", ""), false},
		{"learner", "asks for a score", publish("hamlet.score"), false},
		{"learner", "forges an answer", publish("_INBOX.client.x"), false},
		{"learner", "makes another stream", api("STREAM.CREATE.OTHER"), false},
		{"learner", "deletes the alerts", api("STREAM.DELETE." + nats.AlertStream), false},
		{"learner", "empties the alerts", api("STREAM.PURGE." + nats.AlertStream), false},
		{"scorer", "answers scores", subscribe("hamlet.score", nats.ServiceName), true},
		{"scorer", "answers scores of a model", subscribe("hamlet.score."+model, nats.ServiceName), true},
		{"scorer", "hears all requests", subscribe("hamlet.score", ""), false},
		{"scorer", "hears the answers", subscribe("_INBOX.client.>", ""), false},
		{"scorer", "publishes an alert", publish(nats.AlertSubject(stream.AlertConcept, model)), false},
		{"scorer", "asks for a score", publish("hamlet.score"), false},
		{"scorer", "sends what nobody asked for", publish("_INBOX.client.x"), false},
		{"scorer", "deletes the journal", api("STREAM.DELETE." + nats.JournalStream), false},
		{"scorer", "empties the journal", api("STREAM.PURGE." + nats.JournalStream), false},
		{"scorer", "makes another stream", api("STREAM.CREATE.OTHER"), false},
		{"learner", "publishes a decision", publish(nats.JournalSubject(model)), false},
		{"learner", "publishes labels", publish(nats.JournalLabelSubject(model)), true},
		{"scorer", "publishes labels", publish(nats.JournalLabelSubject(model)), false},
		{"client", "publishes labels", publish(nats.JournalLabelSubject(model)), false},
		{"client", "publishes a decision", publish(nats.JournalSubject(model)), false},
		{"client", "hears decisions", subscribe("hamlet.decisions.>", ""), false},
		{"client", "reads the journal", api("STREAM.MSG.GET." + nats.JournalStream), false},
		{"operator", "publishes a decision", publish(nats.JournalSubject(model)), false},
		{"operator", "empties the journal", api("STREAM.PURGE." + nats.JournalStream), false},
		{"client", "asks for a score", publish("hamlet.score"), true},
		{"client", "asks a model for a reason", publish("hamlet.explain." + model), true},
		{"client", "answers", subscribe("hamlet.score", nats.ServiceName), false},
		{"client", "answers for a model", subscribe("hamlet.score."+model, nats.ServiceName), false},
		{"client", "forges an answer", publish("_INBOX.client.x"), false},
		{"client", "hears others' answers", subscribe("_INBOX.>", ""), false},
		{"client", "hears alerts", subscribe("hamlet.alerts.>", ""), false},
		{"client", "hears incidents", subscribe(nats.IncidentSubject(model), ""), false},
		{"client", "publishes an alert", publish(nats.AlertSubject(stream.AlertConcept, model)), false},
		{"client", "joins the service", subscribe("$SRV.PING", ""), false},
		{"client", "reads the alerts' stream", api("STREAM.MSG.GET." + nats.AlertStream), false},
		{"gateway", "asks for a score", publish("hamlet.score"), true},
		{"gateway", "stores an answer", publish(nats.WaitingSubject(model)), false},
		{"waiting", "stores an answer", publish(nats.WaitingSubject(model)), true},
		{"waiting", "asks for a score", publish("hamlet.score"), false},
		{"gateway", "answers", subscribe("hamlet.score", nats.ServiceName), false},
		{"gateway", "reads the journal", api("STREAM.MSG.GET." + nats.JournalStream), false},
		{"waiting", "deletes what waits", api("STREAM.DELETE." + nats.WaitingStream), false},
		{"client", "stores an answer", publish(nats.WaitingSubject(model)), false},
		{"client", "hears what waits", subscribe("hamlet.waiting.>", ""), false},
		{"client", "takes what waits", api("CONSUMER.MSG.NEXT." + nats.WaitingStream + ".x"), false},
		{"scorer", "takes what waits", api("CONSUMER.MSG.NEXT." + nats.WaitingStream + ".x"), false},
		{"learner", "takes what waits", api("CONSUMER.MSG.NEXT." + nats.WaitingStream + ".x"), false},
		{"operator", "takes what waits", api("CONSUMER.MSG.NEXT." + nats.WaitingStream + ".x"), false},
		{"operator", "reads what waits", api("STREAM.MSG.GET." + nats.WaitingStream), false},
		{"mailkeeper", "stores mail", publish("$O." + nats.MailBucket + ".M.x"), true},
		{"mailkeeper", "reads mail", api("DIRECT.GET." + nats.MailStream + ".x"), false},
		{"mailreader", "reads mail", api("DIRECT.GET." + nats.MailStream + ".x"), true},
		{"mailreader", "stores mail", publish("$O." + nats.MailBucket + ".M.x"), false},
		{"scorer", "stores mail", publish("$O." + nats.MailBucket + ".M.x"), false},
		{"operator", "reads mail", api("DIRECT.GET." + nats.MailStream + ".x"), false},
		{"operator", "hears alerts", subscribe("hamlet.alerts.>", ""), true},
		{"operator", "hears incidents", subscribe(nats.IncidentSubject(model), ""), true},
		{"operator", "publishes an incident", publish(nats.IncidentSubject(model)), false},
		{"operator", "lists the scorers", publish("$SRV.PING"), true},
		{"operator", "asks which model is served", publish("hamlet.info." + model), true},
		{"operator", "publishes an alert", publish(nats.AlertSubject(stream.AlertConcept, model)), false},
		{"operator", "asks for a score", publish("hamlet.score"), false},
		{"operator", "answers", subscribe("hamlet.score", nats.ServiceName), false},
		{"operator", "changes the alerts' stream", api("STREAM.UPDATE." + nats.AlertStream), false},
		{"operator", "empties the alerts", api("STREAM.PURGE." + nats.AlertStream), false},
		{"console", "writes the audit", publish(nats.AuditSubject(model)), true},
		{"console", "asks a model for a reason", publish("hamlet.explain." + model), true},
		{"console", "hears alerts", subscribe("hamlet.alerts.>", ""), true},
		{"console", "hears others' answers", subscribe("_INBOX.>", ""), false},
		{"console", "publishes a decision", publish(nats.JournalSubject(model)), false},
		{"console", "changes the audit's stream", api("STREAM.UPDATE." + nats.AuditStream), false},
		{"console", "empties the audit", api("STREAM.PURGE." + nats.AuditStream), false},
		{"console", "deletes the audit", api("STREAM.DELETE." + nats.AuditStream), false},
		{"operator", "writes the audit", publish(nats.AuditSubject(model)), false},
		{"scorer", "writes the audit", publish(nats.AuditSubject(model)), false},
		{"learner", "writes the audit", publish(nats.AuditSubject(model)), false},
		{"client", "hears the audit", subscribe("hamlet.audit.>", ""), false},
	} {
		conn := dial(c.user) // a connection keeps its last error
		err := c.try(conn)
		if err == nil {
			err = conn.FlushTimeout(patience)
		}
		if err == nil {
			err = conn.LastError()
		}
		check(t, c.user, c.what, c.allowed, err, func(err error) bool { return errors.Is(err, natsgo.ErrPermissionViolation) })
		conn.Close()
	}
	for _, cfg := range []nats.Config{{URL: natsURL}, {URL: natsURL, User: "ingest", Password: passwords["ingest"]}} {
		if conn, err := nats.Connect(cfg); !errors.Is(err, natsgo.ErrAuthorization) {
			if err == nil {
				conn.Close()
			}
			t.Errorf("NATS takes the user %q: %v", cfg.User, err)
		}
	}
}

// What a service must not do in Redis is refused. The learner's rights are enough for
// repairs too, the scorer's for all that it reads, and the operator's to pin and unpin.
func TestRightsInRedis(t *testing.T) {
	needUsers(t)
	model, ctx := modelName(t), t.Context()
	store := func(user string) *redis.Store {
		t.Helper()
		s, err := redis.New(redisAs(user, model))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	dial := func(user string) *goredis.Client {
		c := goredis.NewClient(&goredis.Options{Addr: redisAddr, Username: user, Password: passwords[user]})
		t.Cleanup(func() { c.Close() })
		return c
	}
	all, learner, scorer, operator := dial(admin), store("learner"), store("scorer"), store("operator")
	key := "hamlet:{" + model + "}:0:"
	lease, err := learner.Seize(ctx, "w")
	if err != nil {
		t.Fatal(err)
	}
	c := &state.Checkpoint{Schema: 1, Numerics: "1/test", Config: []byte(`{}`), Epoch: lease.Epoch, Model: make([]byte, 3*state.ChunkSize)}
	for i := range 5 { // the fifth trims
		c.Events, c.Position.Next, c.Model[0] = uint64(i+1), int64(i+1), byte(i)
		if i == 3 { // a chunk was damaged, and a fresh writer repairs it
			for _, k := range all.Keys(ctx, key+"chunk:*").Val() {
				if err := all.SetRange(ctx, k, 0, "decay").Err(); err != nil {
					t.Fatal(err)
				}
			}
			learner = store("learner")
		}
		if _, err := learner.Save(ctx, c); err != nil {
			t.Fatalf("the learner's save %d: %v", i, err)
		}
	}
	for user, s := range map[string]*redis.Store{"learner": learner, "scorer": scorer} {
		for _, pointer := range []state.Pointer{state.Head, state.Served} {
			if got, _, err := s.Load(ctx, pointer); err != nil || got.Events != 5 {
				t.Errorf("%s loads %v: %v", user, pointer, err)
			}
			if _, err := s.Heading(ctx, pointer); err != nil {
				t.Errorf("%s reads the heading: %v", user, err)
			}
		}
		if err := s.Layout(ctx); err != nil {
			t.Errorf("%s sees how the model is laid out: %v", user, err)
		}
		if _, err := s.Versions(ctx); err != nil {
			t.Errorf("%s lists the versions: %v", user, err)
		}
	}
	versions, err := operator.Versions(ctx)
	if err != nil {
		t.Fatalf("the operator lists the versions: %v", err)
	}
	oldest := versions[len(versions)-1].Version
	if err := operator.Pin(ctx, oldest); err != nil {
		t.Errorf("the operator pins: %v", err)
	}
	if h, err := scorer.Heading(ctx, state.Served); err != nil || h.Version != oldest || h.Pinned != oldest {
		t.Errorf("the scorer sees %+v, %v; want version %d, pinned", h, err, oldest)
	}
	if pinned, err := operator.Pinned(ctx); err != nil || pinned != oldest {
		t.Errorf("the operator sees version %d pinned, %v; want %d", pinned, err, oldest)
	}
	if err := operator.Layout(ctx); err != nil {
		t.Errorf("the operator sees how the model is laid out: %v", err)
	}
	if err := operator.Unpin(ctx); err != nil {
		t.Errorf("the operator unpins: %v", err)
	}
	if err := scorer.Pin(ctx, oldest); err == nil {
		t.Error("the scorer pins")
	}

	foreign := fmt.Sprintf("billing:%s", run)
	for _, c := range []struct {
		user    string
		command []any
	}{
		{"learner", []any{"GET", foreign}},
		{"learner", []any{"SET", foreign, "1"}},
		{"learner", []any{"KEYS", "*"}},
		{"learner", []any{"FLUSHALL"}},
		{"learner", []any{"CONFIG", "SET", "maxmemory", "1mb"}},
		{"learner", []any{"ACL", "LIST"}},
		{"learner", []any{"MONITOR"}},
		{"learner", []any{"EVAL", "return redis.call('SET', KEYS[1], 1)", "1", foreign}},
		{"learner", []any{"EVAL", "return redis.call('FLUSHALL')", "0"}},
		{"learner", []any{"PUBLISH", "x", "y"}},
		{"operator", []any{"SET", key + "head", "1"}},
		{"operator", []any{"DEL", key + "versions"}},
		{"operator", []any{"HSET", key + "version:1", "next", "1"}},
		{"operator", []any{"EVAL", "return redis.call('SET', KEYS[1], 1)", "1", key + "head"}},
		{"operator", []any{"EVAL", "return redis.call('SET', ARGV[1], 1)", "0", key + "head"}},
		{"operator", []any{"GET", foreign}},
		{"operator", []any{"SET", foreign, "1"}},
		{"operator", []any{"FLUSHALL"}},
		{"operator", []any{"KEYS", "*"}},
		{"console", []any{"SET", key + "head", "1"}},
		{"console", []any{"GET", foreign}},
		{"console", []any{"FLUSHALL"}},
		{"scorer", []any{"SET", key + "pinned", "1"}},
		{"scorer", []any{"SET", key + "head", "1"}},
		{"scorer", []any{"INCR", key + "epoch"}},
		{"scorer", []any{"HSET", key + "refs", "a", "1"}},
		{"scorer", []any{"DEL", key + "head"}},
		{"scorer", []any{"GETDEL", key + "head"}},
		{"scorer", []any{"EVAL", "return redis.call('SET', KEYS[1], 1)", "1", key + "head"}},
		{"scorer", []any{"GET", foreign}},
		{"scorer", []any{"FLUSHALL"}},
		{"scorer", []any{"CONFIG", "GET", "*"}},
	} {
		err := dial(c.user).Do(ctx, c.command...).Err()
		check(t, c.user, fmt.Sprint(c.command...), false, err, func(err error) bool {
			return strings.Contains(err.Error(), "NOPERM") || strings.Contains(err.Error(), "executing the script can't") ||
				strings.Contains(err.Error(), "ACL failure in script")
		})
	}
	for _, user := range []string{"", "default", "ingest", "client"} {
		if err := dial(user).Ping(ctx).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") && !strings.Contains(err.Error(), "WRONGPASS") {
			t.Errorf("Redis answers the user %q: %v", user, err)
		}
	}
	for _, k := range all.Keys(ctx, key+"*").Val() {
		if err := all.Del(ctx, k).Err(); err != nil {
			t.Error(err)
		}
	}
}
