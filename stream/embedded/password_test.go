package embedded

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hamlet/stream"
	"hamlet/stream/kafka"
	streamnats "hamlet/stream/nats"
)

func scramUser(t *testing.T, user, password string) sasl.Mechanism {
	t.Helper()
	m, err := scram.Mechanism(scram.SHA256, user, password)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A client hears which mechanisms there are, whether its own is one or not. Some give up if
// theirs is not among them.
func TestKafkaNamesItsMechanism(t *testing.T) {
	t.Parallel()
	k, err := StartKafka(KafkaOptions{Password: "right"})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for name, code := range map[string]int16{mechanism: 0, "GSSAPI": kerr.UnsupportedSaslMechanism.Code} {
		conn, err := net.Dial("tcp", k.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		request := kmsg.NewPtrSASLHandshakeRequest()
		request.Version, request.Mechanism = 1, name
		if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, request, 7)); err != nil {
			t.Fatal(err)
		}
		size := make([]byte, 4)
		if _, err := io.ReadFull(conn, size); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, binary.BigEndian.Uint32(size))
		if _, err := io.ReadFull(conn, answer); err != nil {
			t.Fatal(err)
		}
		response := kmsg.NewPtrSASLHandshakeResponse()
		response.Version = 1
		if err := response.ReadFrom(answer[4:]); err != nil || response.ErrorCode != code || !slices.Contains(response.SupportedMechanisms, mechanism) {
			t.Errorf("%s: %+v, %v", name, response, err)
		}
	}
}

// Who lacks the password neither reads nor writes nor deletes. A directory of a Kafka
// without a password, or with another one, gets the new one at the next start.
func TestKafkaTakesOnlyItsUser(t *testing.T) {
	t.Parallel()
	opts := KafkaOptions{Dir: t.TempDir(), Topics: []string{"mail"}}
	first, err := StartKafka(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := openLog(t, kafka.Config{Brokers: []string{first.Addr()}}, "mail").Append(t.Context(), stream.Record{Value: []byte("secret")}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	opts.Password = "old"
	old, err := StartKafka(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	opts.Password = "right"
	k, cfg := startTestKafka(t, opts)

	for name, mechanism := range map[string]sasl.Mechanism{
		"nobody":                nil,
		"a wrong password":      scramUser(t, User, "wrong"),
		"the password before":   scramUser(t, User, "old"),
		"another user":          scramUser(t, "client", "right"),
		"another mechanism":     plain.Mechanism{Username: User, Password: "right"},
		"nobody's empty words":  plain.Mechanism{},
		"kfake's own superuser": scramUser(t, "admin", "admin"),
	} {
		client := &kafkago.Client{Addr: kafkago.TCP(k.Addr()), Timeout: 20 * time.Second, Transport: &kafkago.Transport{SASL: mechanism}}
		_, listing := client.Metadata(t.Context(), &kafkago.MetadataRequest{})
		_, reading := client.Fetch(t.Context(), &kafkago.FetchRequest{Topic: "mail", MinBytes: 1, MaxBytes: 1 << 20, MaxWait: time.Millisecond})
		_, writing := client.Produce(t.Context(), &kafkago.ProduceRequest{
			Topic: "mail", RequiredAcks: kafkago.RequireAll, Records: kafkago.NewRecordReader(kafkago.Record{Value: kafkago.NewBytes([]byte("forged"))}),
		})
		_, deleting := client.DeleteTopics(t.Context(), &kafkago.DeleteTopicsRequest{Topics: []string{"mail"}})
		for what, err := range map[string]error{"list topics": listing, "read": reading, "write": writing, "delete": deleting} {
			if err == nil {
				t.Errorf("%s may %s", name, what)
			}
		}
		client.Transport.(*kafkago.Transport).CloseIdleConnections()
	}
	cfg.SASL = scramUser(t, User, "right")
	if got := values(t, cfg, "mail"); !slices.Equal(got, []string{"secret"}) {
		t.Errorf("the log holds %q", got)
	}
	if err := openLog(t, cfg, "mail").Append(t.Context(), stream.Record{Value: []byte("ours")}); err != nil {
		t.Error(err)
	}
}

// A resp is a connection to Redis without a client library.
type resp struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dialResp(t *testing.T, r *Redis) *resp {
	t.Helper()
	conn, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &resp{t, conn, bufio.NewReader(conn)}
}

// do returns the first line of the reply.
func (r *resp) do(command string) string {
	r.t.Helper()
	words := strings.Fields(command)
	fmt.Fprintf(r.conn, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(r.conn, "$%d\r\n%s\r\n", len(w), w)
	}
	line, err := r.in.ReadString('\n')
	if err != nil {
		r.t.Fatalf("%s: %v", command, err)
	}
	return strings.TrimSpace(line)
}

// Before the password every command is refused, those that this package answers itself
// included; a wrong password changes nothing.
func TestRedisTakesOnlyItsUser(t *testing.T) {
	t.Parallel()
	r := startTestRedis(t, RedisOptions{Password: "right"})
	owner := dialResp(t, r)
	if got := owner.do("AUTH right"); got != "+OK" {
		t.Fatal(got)
	}
	if got := owner.do("SET hamlet:{default}:0:head model"); got != "+OK" {
		t.Fatal(got)
	}
	commands := []string{
		"GET hamlet:{default}:0:head", "SET hamlet:{default}:0:head forged", "DEL hamlet:{default}:0:head",
		"FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "RENAME hamlet:{default}:0:head x", "EXPIRE hamlet:{default}:0:head 0",
		"KEYS *", "SCAN 0", "DBSIZE", "INFO", "COMMAND", "CLIENT LIST", "PING", "ECHO x", "SELECT 1", "TIME",
		"MULTI", "EXEC", "DISCARD", "WATCH x", "UNWATCH", "SUBSCRIBE x", "PSUBSCRIBE *", "PUBLISH x y", "PUBSUB CHANNELS",
		"EVAL return(redis.call('FLUSHALL')) 0", "EVALSHA 0 0", "SCRIPT FLUSH", "MEMORY USAGE x", "HELLO", "HELLO 3", "HELLO 3 SETNAME AUTH",
		"BLPOP x 0", "XADD x * a b", "SETRANGE x 0 y", "no-such-command", // these are refused to everybody
	}
	for name, words := range map[string][]string{
		"nobody":           {},
		"a wrong password": {"AUTH wrong", "AUTH default wrong", "HELLO 3 AUTH default wrong"},
		"another user":     {"AUTH hamlet right", "AUTH client right", "HELLO 3 AUTH client right", "HELLO 2 SETNAME x AUTH client right"},
		"an empty one":     {"AUTH default", "AUTH"},
	} {
		for _, command := range commands {
			stranger := dialResp(t, r)
			for _, w := range words {
				if got := stranger.do(w); !strings.HasPrefix(got, "-") {
					t.Errorf("%s: %s: %s", name, w, got)
				}
			}
			if got := stranger.do(command); !strings.HasPrefix(got, "-NOAUTH") {
				t.Errorf("%s: %s: %s", name, command, got)
			}
			stranger.conn.Close()
		}
	}
	owner.do("GET hamlet:{default}:0:head") // the length; then the value
	if got, err := owner.in.ReadString('\n'); err != nil || got != "model\r\n" {
		t.Errorf("the owner finds %q, %v", got, err)
	}
	for _, words := range []string{"AUTH default right", "HELLO 3 AUTH default right", "HELLO 3 SETNAME x AUTH default right"} {
		late := dialResp(t, r)
		late.do("GET x")
		if got := late.do(words); strings.HasPrefix(got, "-") {
			t.Errorf("%s: %s", words, got)
		}
	}
	client := redisOptions()
	client.Addr, client.Password = r.Addr(), "right"
	checkRedisScript(t, client)
}

// Who asks can ask and hear alerts, and no more: not answer, not forge an answer, an
// alert or a decision, not read another's answers or decisions, not touch the stream of alerts.
func TestNATSUserWhoAsksCannotAnswer(t *testing.T) {
	t.Parallel()
	publish, subscribe := streamnats.AskerSubjects()
	n := startTestNATS(t, NATSOptions{Users: []NATSUser{
		{Name: "service", Password: "right"},
		{Name: "asker", Password: "lesser", Publish: publish, Subscribe: subscribe},
		{Name: "listener", Password: "quiet", Subscribe: []string{"hamlet.>"}},
	}})
	for _, user := range [][]string{{"", ""}, {"service", "wrong"}, {"service", "lesser"}, {"asker", "right"}, {"asker", ""}, {"nobody", "right"}} {
		c, err := nats.Connect(n.URL(), nats.UserInfo(user[0], user[1]), nats.Timeout(30*time.Second))
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("user %q with password %q: %v", user[0], user[1], err)
		}
		if err == nil {
			c.Close()
		}
	}
	connect := func(user, password string, options ...nats.Option) (*nats.Conn, chan error) {
		t.Helper()
		refused := make(chan error, 100)
		c, err := nats.Connect(n.URL(), append(options, nats.UserInfo(user, password), nats.Timeout(30*time.Second),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c, refused
	}
	service, _ := connect("service", "right", nats.CustomInboxPrefix("_INBOX_service"))
	asker, refused := connect("asker", "lesser")
	flush := func(c *nats.Conn) {
		t.Helper()
		if err := c.FlushTimeout(30 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	js, err := jetstream.New(service)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "HAMLET_ALERTS", Subjects: []string{"hamlet.alerts.>"}}); err != nil {
		t.Fatal(err)
	}
	endpoints := []string{"hamlet.score", "hamlet.explain.billing", "hamlet.info"}
	for _, subject := range endpoints {
		if _, err := service.QueueSubscribe(subject, "hamlet", func(m *nats.Msg) {
			if err := m.Respond([]byte("true")); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	flush(service)

	// What it may not do. Each refusal arrives as an error of the connection.
	mustRefuse := func(what string) {
		t.Helper()
		flush(asker)
		select {
		case err := <-refused:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("may %s", what)
		}
	}
	forge := func(m *nats.Msg) { _ = m.Respond([]byte("forged")) }
	for _, subject := range append([]string{">", "hamlet.>", "hamlet.*", "hamlet.decisions.>", "$SRV.>", "$JS.>", "_INBOX_service.>", "_INBOX*", "$SYS.>"}, endpoints...) {
		if _, err := asker.QueueSubscribe(subject, "hamlet", forge); err != nil {
			t.Fatal(err)
		}
		mustRefuse("answer on " + subject)
		if _, err := asker.Subscribe(subject, forge); err != nil {
			t.Fatal(err)
		}
		mustRefuse("listen on " + subject)
	}
	for _, subject := range []string{
		"hamlet.alerts.concept.default", "_INBOX.x", "_INBOX_service.x", "hamlet.other", "hamlet.score.a.b",
		"$JS.API.STREAM.DELETE.HAMLET_ALERTS", "$JS.API.STREAM.PURGE.HAMLET_ALERTS", "$JS.API.STREAM.NAMES",
		"hamlet.decisions.default", "$JS.API.STREAM.MSG.GET.HAMLET_DECISIONS", "$JS.API.CONSUMER.CREATE.HAMLET_DECISIONS.x",
		"$JS.API.STREAM.MSG.DELETE.HAMLET_ALERTS", "$JS.API.CONSUMER.CREATE.HAMLET_ALERTS",
	} {
		if err := asker.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		mustRefuse("publish to " + subject)
	}

	// What it may.
	alerts, err := asker.SubscribeSync("hamlet.alerts.>")
	if err != nil {
		t.Fatal(err)
	}
	flush(asker)
	if _, err := js.Publish(t.Context(), "hamlet.alerts.concept.default", []byte("ours")); err != nil {
		t.Fatal(err)
	}
	if m, err := alerts.NextMsg(30 * time.Second); err != nil || string(m.Data) != "ours" {
		t.Errorf("the alert: %v, %v", m, err)
	}
	for range 50 {
		for _, subject := range endpoints {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			m, err := asker.RequestWithContext(ctx, subject, nil)
			cancel()
			if err != nil || string(m.Data) != "true" {
				t.Fatalf("ask on %s: %v, %v", subject, m, err)
			}
		}
	}
	if stream, err := js.Stream(t.Context(), "HAMLET_ALERTS"); err != nil || stream.CachedInfo().State.Msgs != 1 {
		t.Errorf("the stream of alerts: %v, %v", stream, err)
	}
	select {
	case err := <-refused:
		t.Error(err)
	default:
	}

	// A user with subjects of one kind has none of the other.
	listener, refusals := connect("listener", "quiet")
	if err := listener.Publish("hamlet.score", nil); err != nil {
		t.Fatal(err)
	}
	flush(listener)
	select {
	case <-refusals:
	case <-time.After(30 * time.Second):
		t.Error("a user without subjects to publish to may publish")
	}
}

// checkRedisScript runs a script, whose commands come through the server's hook too.
func checkRedisScript(t *testing.T, options *redis.Options) {
	t.Helper()
	client := redis.NewClient(options)
	defer client.Close()
	if got, err := client.Eval(t.Context(), "redis.call('SET', KEYS[1], 'y') return redis.call('GET', KEYS[1])", []string{"x"}).Text(); err != nil || got != "y" {
		t.Errorf("a script: %q, %v", got, err)
	}
}
