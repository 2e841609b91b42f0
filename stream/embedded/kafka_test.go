package embedded

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream/kafka"
)

func startTestKafka(t *testing.T, opts KafkaOptions) (*Kafka, kafka.Config) {
	t.Helper()
	k, err := StartKafka(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k, kafka.Config{Brokers: []string{k.Addr()}}
}

func publisher(t *testing.T, cfg kafka.Config) *kafka.Producer {
	t.Helper()
	p, err := kafka.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// values reads the values of a topic's only partition, up to its end.
func values(t *testing.T, cfg kafka.Config, topic string) []string {
	t.Helper()
	_, end, err := kafka.Offsets(t.Context(), cfg, topic)
	if err != nil {
		t.Fatal(err)
	}
	if end[0] == 0 {
		return nil
	}
	c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: cfg, Topic: topic, Group: "values"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r := &counter{end: end[0], done: cancel}
	if err := c.Run(ctx, func(context.Context, int) (kafka.Handler, error) { return r, nil }); err != nil {
		t.Fatal(err)
	}
	if r.next != end[0] {
		t.Fatalf("read up to offset %d, want %d", r.next, end[0])
	}
	return r.values
}

type counter struct {
	next, end int64
	values    []string
	done      context.CancelFunc
}

func (r *counter) Position(func(context.Context) error) (int64, bool) { return 0, true }
func (*counter) Follows(kafka.Record) bool                            { return true }
func (r *counter) Idle(context.Context) error                         { return nil }
func (r *counter) Close(context.Context) error                        { return nil }
func (r *counter) Handle(_ context.Context, batch []kafka.Record) error {
	for _, record := range batch {
		r.values = append(r.values, string(record.Value))
		r.next = record.Offset + 1
	}
	if r.next == r.end {
		r.done()
	}
	return nil
}

func TestKafkaKeepsLogsTopicsAndGroups(t *testing.T) {
	dir := t.TempDir()
	k, cfg := startTestKafka(t, KafkaOptions{Dir: dir, Topics: []string{"a"}})
	p := publisher(t, cfg)
	for i := range 10 {
		if err := p.Publish(t.Context(), kafka.Record{Topic: "a", Value: []byte(strconv.Itoa(i))}); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, cfg, "a", "group", 7)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	_, cfg = startTestKafka(t, KafkaOptions{Dir: dir, Partitions: 3, Topics: []string{"a", "b"}})
	if got := fmt.Sprint(values(t, cfg, "a")); got != "[0 1 2 3 4 5 6 7 8 9]" {
		t.Errorf("values %s", got)
	}
	if got := committed(t, cfg, "a", "group"); got != 7 {
		t.Errorf("the group's offset is %d, want 7", got)
	}
	first, _, err := kafka.Offsets(t.Context(), cfg, "b")
	if err != nil || len(first) != 3 {
		t.Errorf("a topic that is new to an old directory: %v, %v; want 3 partitions", first, err)
	}
}

func groups(t *testing.T, cfg kafka.Config) *kafkago.Client {
	transport := &kafkago.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers[0]), Transport: transport}
}

func commit(t *testing.T, cfg kafka.Config, topic, group string, offset int64) {
	t.Helper()
	res, err := groups(t, cfg).OffsetCommit(t.Context(), &kafkago.OffsetCommitRequest{
		GroupID: group, GenerationID: -1,
		Topics: map[string][]kafkago.OffsetCommit{topic: {{Offset: offset}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Topics[topic][0].Error; err != nil {
		t.Fatal(err)
	}
}

func committed(t *testing.T, cfg kafka.Config, topic, group string) int64 {
	t.Helper()
	res, err := groups(t, cfg).OffsetFetch(t.Context(), &kafkago.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {0}}})
	if err != nil {
		t.Fatal(err)
	}
	return res.Topics[topic][0].CommittedOffset
}

func TestKafkaErrorsSayWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = StartKafka(KafkaOptions{Addr: taken.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), taken.Addr().String()) || !strings.Contains(err.Error(), "another port") {
		t.Errorf("port taken: %v", err)
	}
	dir := t.TempDir()
	// A start that fails unlocks the directory.
	if _, err = StartKafka(KafkaOptions{Dir: dir, Addr: taken.Addr().String()}); err == nil {
		t.Error("started on a port that is taken")
	}
	startTestKafka(t, KafkaOptions{Dir: dir})
	_, err = StartKafka(KafkaOptions{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "another hamlet uses it") {
		t.Errorf("directory in use: %v", err)
	}
	file := dir + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = StartKafka(KafkaOptions{Dir: file}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("directory is a file: %v", err)
	}
}

func TestKafkaMaxBytes(t *testing.T) {
	t.Parallel()
	_, cfg := startTestKafka(t, KafkaOptions{MaxBytes: 20 << 20, Topics: []string{"t"}})
	p := publisher(t, cfg)
	value := make([]byte, 500<<10)
	rand.NewChaCha8([32]byte{}).Read(value) // does not compress
	for {
		if err := p.Publish(t.Context(), kafka.Record{Topic: "t", Value: value}); err != nil {
			t.Fatal(err)
		}
		first, end, err := kafka.Offsets(t.Context(), cfg, "t")
		if err != nil {
			t.Fatal(err)
		}
		if first[0] > 0 {
			return
		}
		if end[0] > 2000 {
			t.Fatal("nothing was deleted in 1 GB")
		}
	}
}

func TestLockDir(t *testing.T) {
	dir := t.TempDir() + "/new/dir"
	unlock, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockDir(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("locked twice: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}

// The environment variable killDir makes this test binary the process to be killed.
const killDir = "HAMLET_TEST_KILL_DIR"

// TestKafkaToBeKilled is the process that TestKafkaSurvivesKill starts. It publishes
// consecutive numbers and prints the acknowledged ones until it is killed. In any other
// run it does nothing.
func TestKafkaToBeKilled(t *testing.T) {
	dir := os.Getenv(killDir)
	if dir == "" {
		return
	}
	_, cfg := startTestKafka(t, KafkaOptions{Dir: dir, Topics: []string{"t"}})
	p := publisher(t, cfg)
	_, end, err := kafka.Offsets(t.Context(), cfg, "t")
	if err != nil {
		t.Fatal(err)
	}
	commit(t, cfg, "t", "group", end[0])
	fmt.Println("committed", end[0])
	for n := int(end[0]); ; {
		var records []kafka.Record
		for range 1 + n%5 {
			records = append(records, kafka.Record{Topic: "t", Value: fmt.Appendf(nil, "%d", n)})
			n++
		}
		if err := p.Publish(t.Context(), records...); err != nil {
			t.Fatal(err)
		}
		fmt.Println("acknowledged", n)
	}
}

func TestKafkaSurvivesKill(t *testing.T) {
	dir := t.TempDir()
	var offset, atLeast int64
	for round := range 3 {
		child := exec.Command(os.Args[0], "-test.run=^TestKafkaToBeKilled$")
		child.Env = append(os.Environ(), killDir+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		printed := 0
		var last string
		for lines := bufio.NewScanner(out); lines.Scan(); {
			last = lines.Text()
			if n, ok := strings.CutPrefix(last, "committed "); ok {
				offset, _ = strconv.ParseInt(n, 10, 64)
			}
			if n, ok := strings.CutPrefix(last, "acknowledged "); ok {
				atLeast, _ = strconv.ParseInt(n, 10, 64)
				if printed++; printed == 300 {
					child.Process.Kill() // SIGKILL; its last output is still read
				}
			}
		}
		child.Wait()
		if printed < 300 {
			t.Fatalf("round %d: the child ended by itself, last it printed %q", round, last)
		}
	}
	_, cfg := startTestKafka(t, KafkaOptions{Dir: dir})
	got := values(t, cfg, "t")
	if int64(len(got)) < atLeast {
		t.Errorf("%d records, of %d acknowledged", len(got), atLeast)
	}
	for i, v := range got {
		if v != strconv.Itoa(i) {
			t.Fatalf("record %d is %q", i, v)
		}
	}
	if n := committed(t, cfg, "t", "group"); n != offset || n == 0 {
		t.Errorf("the group's offset is %d, want %d", n, offset)
	}
	t.Logf("%d records, %d acknowledged, over three kills", len(got), atLeast)
}

// BenchmarkStartKafka measures the time from the start to a group's first record.
func BenchmarkStartKafka(b *testing.B) {
	for b.Loop() {
		k, err := StartKafka(KafkaOptions{Topics: []string{"t"}})
		if err != nil {
			b.Fatal(err)
		}
		cfg := kafka.Config{Brokers: []string{k.Addr()}}
		p, err := kafka.NewProducer(cfg)
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Publish(b.Context(), kafka.Record{Topic: "t"}); err != nil {
			b.Fatal(err)
		}
		c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: cfg, Topic: "t", Group: "g"})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		r := &counter{end: 1, done: cancel}
		if err := c.Run(ctx, func(context.Context, int) (kafka.Handler, error) { return r, nil }); err != nil {
			b.Fatal(err)
		}
		p.Close()
		k.Close()
	}
}
