package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/logtest"
	"hamlet/stream/mail"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/topics"
)

const feed = "hamlet.feeds.desk"

// feeds starts a broker with the topic of a principal, and returns how it is reached and the
// topic's partitions.
func feeds(t *testing.T, partitions int) (kafka.Config, []*kafka.Log) {
	t.Helper()
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	cfg := kafka.Config{Brokers: []string{k.Addr()}}
	topics.Make(t, cfg, feed, partitions)
	logs := make([]*kafka.Log, partitions)
	for i := range logs {
		if logs[i], err = kafka.NewPartition(cfg, feed, i); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = logs[i].Close() })
	}
	return cfg, logs
}

// copyUntil runs Copy until the letters and events that it copied are n, or it fails. A stop
// is orderly.
func copyUntil(t *testing.T, cfg CopyConfig, n int) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	copied := 0
	batch := make(chan int) // one goroutine copies each partition
	cfg.Copied = func(letters, events int) {
		select {
		case batch <- letters + events:
		case <-ctx.Done():
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- Copy(ctx, cfg) }()
	for {
		select {
		case some := <-batch:
			if copied += some; copied >= n {
				cancel()
				return <-ended
			}
		case err := <-ended:
			return err
		}
	}
}

// A crashing appender writes a part of a batch and dies, once it has written its budget.
type crashing struct {
	stream.Appender

	mu   sync.Mutex
	left int // guarded by mu
}

func (c *crashing) Append(ctx context.Context, records ...stream.Record) error {
	c.mu.Lock() // partitions are copied beside each other
	defer c.mu.Unlock()
	if c.left -= len(records); c.left >= 0 {
		return c.Appender.Append(ctx, records...)
	}
	if err := c.Appender.Append(ctx, records[:len(records)/2]...); err != nil {
		return err
	}
	return errCrash
}

// Kills lose nothing. What they leave twice has the same id and the same bytes, and the
// first copies of a key's events are in order. An orderly stop leaves nothing twice.
func TestCopyGoesOnAfterKills(t *testing.T) {
	cfg, from := feeds(t, 2)
	events, letters := new(logtest.Memory), new(logtest.Memory)
	const n = 400
	write := func(first, end int) { // a key's events are in one partition
		t.Helper()
		for i := first; i < end; i++ {
			e := stream.Event{ID: strconv.Itoa(i), Source: "trap", Label: stream.Spam, Body: stream.Body{Kind: stream.Text, Text: "x"}}
			value, headers, err := e.EncodeRecord()
			if err != nil {
				t.Fatal(err)
			}
			r := stream.Record{Key: []byte(fmt.Sprint("k", i%5)), Value: value, Headers: headers}
			if err := from[i%5%2].Append(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(0, n-1)
	to := CopyConfig{
		Kafka: cfg, From: feed, Group: "g", Letters: letters, Source: "desk", Tenants: []string{"a"}, Log: slog.New(slog.DiscardHandler),
	}
	for _, budget := range []int{150, 0} {
		to.Events = &crashing{Appender: events, left: budget}
		if err := copyUntil(t, to, n); !errors.Is(err, errCrash) {
			t.Fatalf("a publisher that dies after %d: %v", budget, err)
		}
	}
	written := len(read(t, events))
	next := map[int]int64{} // what the kills left to do
	left := n - 1
	for partition := range 2 {
		at, _, err := cfg.CommittedOffset(t.Context(), "g", feed, partition)
		if err != nil {
			t.Fatal(err)
		}
		next[partition] = max(at, 0)
		left -= int(next[partition])
	}
	to.Events = events
	if err := copyUntil(t, to, left); err != nil {
		t.Fatal(err)
	}
	if got := len(read(t, events)); got != written+left {
		t.Errorf("%d copies after the kills, %d of them new; want %d new, from %v on", got, got-written, left, next)
	}
	write(n-1, n)
	if err := copyUntil(t, to, 1); err != nil {
		t.Fatal(err)
	}
	if got := len(read(t, events)); got != written+left+1 {
		t.Errorf("%d copies after an orderly stop, want one more than %d", got, written+left)
	}
	seen := map[string][]byte{}
	last := map[string]int{}
	for _, r := range read(t, events) {
		e, err := stream.DecodeRecord(r.Headers, r.Value)
		if err != nil {
			t.Fatal(err)
		}
		id, err := strconv.Atoi(e.ID)
		if err != nil || e.Source != "desk" || e.Tenant != "a" || string(r.Key) != fmt.Sprint("k", id%5) || e.Time.IsZero() {
			t.Fatalf("%+v with the key %q", e, r.Key)
		}
		if first, again := seen[e.ID]; again {
			if !bytes.Equal(first, r.Value) {
				t.Errorf("event %d has two forms", id)
			}
			continue
		}
		seen[e.ID] = r.Value
		if at, ok := last[string(r.Key)]; ok && id < at {
			t.Errorf("event %d stands behind event %d", id, at)
		}
		last[string(r.Key)] = id
	}
	if len(seen) != n {
		t.Errorf("%d of %d events were copied", len(seen), n)
	}
	if n := len(read(t, letters)); n > 0 {
		t.Errorf("%d dead letters", n)
	}
}

// A group whose offset Kafka has forgotten starts at the beginning, and the log says of how many records.
func TestCopyWarnsWhereItBeginsAnew(t *testing.T) {
	cfg, from := feeds(t, 1)
	var said bytes.Buffer
	to := CopyConfig{
		Kafka: cfg, From: feed, Source: "desk", Tenants: []string{"a"}, Events: new(logtest.Memory), Letters: new(logtest.Memory),
		Log: slog.New(slog.NewTextHandler(&said, nil)),
	}
	e := stream.Event{ID: "1", Source: "desk", Label: stream.Spam, Body: stream.Body{Kind: stream.Text, Text: "x"}}
	value, headers, err := e.EncodeRecord()
	if err != nil {
		t.Fatal(err)
	}
	record := stream.Record{Value: value, Headers: headers}
	for i, c := range []struct {
		group string
		more  int // records before the copier starts
		want  int // copies
		warns string
	}{{"g", 3, 3, "records=3"}, {"g", 2, 2, ""}, {"another", 1, 6, "records=6"}} {
		if err := from[0].Append(t.Context(), slices.Repeat([]stream.Record{record}, c.more)...); err != nil {
			t.Fatal(err)
		}
		said.Reset()
		to.Group = c.group
		if err := copyUntil(t, to, c.want); err != nil {
			t.Fatal(err)
		}
		warned := strings.Contains(said.String(), "no offset")
		if warned != (c.warns != "") || !strings.Contains(said.String(), c.warns) {
			t.Errorf("run %d says %q, want %q", i+1, said.String(), c.warns)
		}
	}
}

// A before appends after it has called do.
type before struct {
	stream.Appender
	do func()
}

func (b before) Append(ctx context.Context, records ...stream.Record) error {
	b.do()
	return b.Appender.Append(ctx, records...)
}

// A topic that is deleted and made again under the copy ends it, so that no record is skipped. The
// error says how all of the new topic is copied.
func TestCopyOfATopicMadeAgain(t *testing.T) {
	const first, second = 20, 30
	for name, c := range map[string]struct {
		early bool // the topic is made again before the last offset is committed, which then is of the new one
		want  string
	}{
		"between two batches": {false, "the consumer group g has no offset in it: a restart copies the topic"},
		"during a batch":      {true, "the consumer group g would go on at offset 20: delete its offsets"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, from := feeds(t, 1)
			write := func(n int) {
				records := make([]stream.Record, n)
				for i := range records {
					records[i].Value = fmt.Appendf(nil, `{"id":"%d of %d","label":"spam","text":"x"}`, i, n)
				}
				if err := from[0].Append(t.Context(), records...); err != nil {
					t.Error(err)
				}
			}
			write(first)
			client := &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers...), Transport: &kafkago.Transport{}}
			defer client.Transport.(*kafkago.Transport).CloseIdleConnections()
			var again sync.Once
			makeAgain := func() {
				again.Do(func() {
					_, err := client.DeleteTopics(t.Context(), &kafkago.DeleteTopicsRequest{Topics: []string{feed}})
					if err != nil {
						t.Error(err)
					}
					topics.Make(t, cfg, feed, 1)
					write(second)
				})
			}
			events := new(logtest.Memory)
			to := CopyConfig{
				Kafka: cfg, From: feed, Group: "g", Events: events, Letters: new(logtest.Memory), Source: "desk",
				Tenants: []string{"a"}, Log: slog.New(slog.DiscardHandler),
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			copied := 0
			to.Copied = func(_, n int) {
				if copied += n; copied > second {
					cancel()
				}
				makeAgain()
			}
			if c.early {
				to.Events = before{events, makeAgain}
			}
			// A fetch that comes after the topic was made again gets what is behind its offset there. The
			// record before it is compared within 5 s.
			err := Copy(ctx, to)
			late := copied == second && err != nil && strings.Contains(err.Error(), ": delete its offsets")
			if !errors.Is(err, follow.ErrReplaced) || !late && (copied != first || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("%d records are copied, then %v; want %d and %q", copied, err, first, c.want)
			}
			if c.early || late {
				return
			}
			if err := copyUntil(t, to, second); err != nil {
				t.Fatal(err)
			}
			if n := len(read(t, events)); n != first+second {
				t.Errorf("after a restart there are %d copies, want %d", n, first+second)
			}
		})
	}
}

// A principal gives itself no right: neither another source nor another tenant nor another's
// events. What cannot be copied is a dead letter with its place.
func TestCopyOfHostileRecords(t *testing.T) {
	_, from := feeds(t, 1) // takes what is made of them: no record is too large
	h := func(kv ...string) (out []stream.Header) {
		for i := 0; i < len(kv); i += 2 {
			out = append(out, stream.Header{Key: kv[i], Value: []byte(kv[i+1])})
		}
		return out
	}
	const event = `{"id":"1","label":"spam","text":"x"}`
	parsed := mail.Parse([]byte("Subject: x\n\ny\n"))
	identity := mail.Identity("a", &parsed)
	for i, c := range []struct {
		key, value string
		headers    []stream.Header
		want       string // the copy, or the reason of the letter
	}{
		{"k", event, nil, "desk of a, own only false, key k"},
		{"", event, nil, "desk of a, own only false, key a"},
		{"k", event, h("ce_source", "trap", "hamlet-synthetic", "1", "hamlet-ordinal", "7", "x", "y"), "desk of a, own only false, key k"},
		{"k", `{"id":"1","source":"trap","tenant":"a","label":"spam","text":"x"}`, nil, "desk of a, own only false, key k"},
		{"k", `{"id":"1","action":"unlearn","of":"0","source":"trap","text":"x"}`, h("ce_type", "hamlet.unlearn.v1"), "desk of a, own only true, key k"},
		{"k", `{"id":"1","action":"relearn","of":"0","own_only":true,"label":"ham","text":"x"}`, nil, "desk of a, own only true, key k"},
		{"k", `{"id":"1","action":"assume","of":"m","label":"ham","text":"x"}`, nil, "action: only hamlet itself"},
		{"k", `{"id":"1","label":"spam","mail":"U3ViamVjdDogeAoKeQo="}`, nil, "desk of a, own only false, key a/" + identity},
		{"k", event, h("ce_tenant", "b"), "tenant: this topic may not name it"},
		{"k", `{"id":"1","tenant":"a ","label":"spam","text":"x"}`, nil, "tenant: this topic may not name it"},
		{"k", event, h("ce_ownonly", "true"), "own_only: learn has none"},
		{"k", `{"id":"1","action":"unlearn","of":"0","text":"x"}`, h("ce_ownonly", "false"), "ce_ownonly: not true"},
		{"k", `{"id":"1","action":"unlearn","of":"0","own_only":false,"text":"x"}`, nil, "own_only: it is true"},
		{"k", `{"id":"1","action":"correct","of":"m","label":"ham","text":"x"}`, nil, "desk of a, own only true, key k"},
		{"k", `{"type":"hamlet.standing.v1","id":"1","source":"desk","role":"anchor"}`, h("ce_type", "hamlet.standing.v1"), `unknown field "type"`},
		{"k", event, h("ce_type", "hamlet.standing.v1"), "ce_type: the event's action"},
		{"k", `{"id":"1","text":"x"}`, nil, "label: missing"},
		{"k", `{"id":"1","label":"ham","sampled":{"probability":1,"why":"review"},"text":"x"}`, nil, "desk of a, own only false, key k"},
		{"k", "\xff\xff", nil, "not a message"},
		{"k", "", nil, "id: missing"},
		{strings.Repeat("k", 2000), event, nil, "key has 2000 bytes"},
		{"k", `{"id":"1","label":"spam","mail":""}`, nil, "mail: "},
		{"k", strings.Repeat("x", 1000<<10), nil, "event in protobuf"},
		{"k", "x", h("big", strings.Repeat("x", 1000<<10)), "not a message"},
	} {
		record := stream.Record{Value: []byte(c.value), Headers: c.headers}
		if c.key != "" {
			record.Key = []byte(c.key)
		}
		events, letters := new(logtest.Memory), new(logtest.Memory)
		handler := &copier{cfg: &CopyConfig{
			From: feed, Events: events, Letters: letters, Source: "desk", Tenants: []string{"a"}, Log: slog.New(slog.DiscardHandler),
		}, commit: func(int64) {}}
		record.Offset, record.Time = int64(i), time.Unix(1, 0)
		if err := handler.Handle(t.Context(), []stream.Record{record}, record.Offset+1); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		out := append(read(t, events), read(t, letters)...)
		if len(out) != 1 {
			t.Fatalf("%+v: %d records", c, len(out))
		}
		r := out[0]
		if err := from[0].Append(t.Context(), r); err != nil {
			t.Errorf("%.60s: Kafka refuses what is made of it: %v", c.value, err)
		}
		if len(read(t, letters)) > 0 {
			d, err := stream.ParseDeadLetter(r.Headers)
			if err != nil || !strings.Contains(d.Reason, c.want) || d.Topic != feed || d.Offset != int64(i) || (d.Truncated > 0) != (len(c.value) > 900<<10 || len(c.headers) == 1 && len(c.headers[0].Value) > 900<<10) {
				t.Errorf("%.60s: %+v, %v; want %q", c.value, d, err, c.want)
			}
			continue
		}
		e, err := stream.DecodeRecord(r.Headers, r.Value)
		got := fmt.Sprintf("%s of %s, own only %v, key %s", e.Source, e.Tenant, e.OwnOnly, r.Key)
		if err != nil || got != c.want {
			t.Errorf("%.60s: %s, %v; want %s", c.value, got, err, c.want)
		}
		if (e.Sampled != stream.Sampled{}) {
			t.Errorf("%.60s: a feed says that its label was asked for", c.value)
		}
		handler.cfg.Sampled = new(float64)
		*handler.cfg.Sampled = 0.5
		asked := e.Action != stream.Unlearn
		copied, err := handler.copy(&record)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := stream.DecodeRecord(copied.Headers, copied.Value); err != nil || (e.Sampled == stream.SampledShare(0.5, stream.SampledAll)) != asked {
			t.Errorf("%.60s: with --sampled it was asked for as %+v, %v", c.value, e.Sampled, err)
		}
		for _, header := range r.Headers {
			if strings.HasPrefix(header.Key, "hamlet-") || header.Key == "x" {
				t.Errorf("%.60s: the header %s came along", c.value, header.Key)
			}
		}
	}
}

// A feed may be what brings the rescue of a chosen mail.
func TestCopyAsks(t *testing.T) {
	e := stream.Event{ID: "1", Source: "s", Tenant: "t", Label: stream.Ham,
		Body: stream.Body{Kind: stream.Mail, Mail: []byte("Subject: x\n\ny\n")}}
	for i := 0; !Asking(MostAsked).Asks(identityOf(&e)); i++ {
		e.Body.Mail = fmt.Appendf(nil, "Message-ID: <%d@example.org>\nSubject: x\n\ny\n", i)
	}
	record, err := Record(&e)
	if err != nil {
		t.Fatal(err)
	}
	share := 0.25
	for _, c := range []struct {
		cfg  CopyConfig
		want stream.Sampled
	}{
		{CopyConfig{}, stream.Sampled{}},
		{CopyConfig{Ask: MostAsked}, stream.SampledShare(MostAsked, stream.SampledReview)},
		{CopyConfig{Ask: MostAsked, Sampled: &share}, stream.SampledShare(share, stream.SampledAll)},
	} {
		c.cfg.From, c.cfg.Source, c.cfg.Tenants = "feed", "desk", []string{"t"}
		copied, err := (&copier{cfg: &c.cfg}).copy(&record)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := stream.DecodeRecord(copied.Headers, copied.Value); err != nil || e.Sampled != c.want {
			t.Errorf("it was asked for as %+v, %v; want %+v", e.Sampled, err, c.want)
		}
	}
}

func TestCopyRefuses(t *testing.T) {
	for _, cfg := range []CopyConfig{
		{From: stream.EventsTopic("default"), Source: "desk", Tenants: []string{"a"}},
		{From: stream.DeadLetterTopic, Source: "desk", Tenants: []string{"a"}},
		{From: stream.ReceiptTopic, Source: "desk", Tenants: []string{"a"}},
		{From: feed, Source: "a@example.org", Tenants: []string{"a"}},
		{From: feed, Source: "desk", Tenants: []string{"a\n"}},
	} {
		if err := Copy(t.Context(), cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}
