package embedded

import (
	"bufio"
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

	"hamlet/stream"
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

func openLog(t *testing.T, cfg kafka.Config, topic string) *kafka.Log {
	t.Helper()
	log, err := kafka.NewLog(cfg, topic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

func bounds(t *testing.T, log *kafka.Log) stream.Bounds {
	t.Helper()
	b, err := log.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// values reads the values of a topic, up to its end.
func values(t *testing.T, cfg kafka.Config, topic string) (values []string) {
	t.Helper()
	log := openLog(t, cfg, topic)
	for next, end := int64(0), bounds(t, log).End; next < end; {
		records, _, err := log.Read(t.Context(), next, stream.Limit{}, 20*time.Second)
		if err != nil || len(records) == 0 {
			t.Fatalf("read from %d of %d: %d records, %v", next, end, len(records), err)
		}
		for i := range records {
			values = append(values, string(records[i].Value))
			next = records[i].Offset + 1
		}
	}
	return values
}

func TestKafkaKeepsLogsTopicsAndGroups(t *testing.T) {
	dir := t.TempDir()
	k, cfg := startTestKafka(t, KafkaOptions{Dir: dir, Topics: []string{"a"}})
	log := openLog(t, cfg, "a")
	for i := range 10 {
		if err := log.Append(t.Context(), stream.Record{Value: []byte(strconv.Itoa(i))}); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, cfg, "a", "group", 7)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	_, cfg = startTestKafka(t, KafkaOptions{Dir: dir, Topics: []string{"a", "b"}})
	if got := fmt.Sprint(values(t, cfg, "a")); got != "[0 1 2 3 4 5 6 7 8 9]" {
		t.Errorf("values %s", got)
	}
	if got := committed(t, cfg, "a", "group"); got != 7 {
		t.Errorf("the group's offset is %d, want 7", got)
	}
	if b := bounds(t, openLog(t, cfg, "b")); b.End != 0 {
		t.Errorf("a topic that is new to an old directory has %d records", b.End)
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
	log := openLog(t, cfg, "t")
	value := make([]byte, 500<<10)
	rand.NewChaCha8([32]byte{}).Read(value) // does not compress
	for {
		if err := log.Append(t.Context(), stream.Record{Value: value}); err != nil {
			t.Fatal(err)
		}
		b := bounds(t, log)
		if b.First > 0 {
			return
		}
		if b.End > 2000 {
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
	log := openLog(t, cfg, "t")
	end := bounds(t, log).End
	commit(t, cfg, "t", "group", end)
	fmt.Println("committed", end)
	for n := int(end); ; {
		var records []stream.Record
		for range 1 + n%5 {
			records = append(records, stream.Record{Value: fmt.Append(nil, n)})
			n++
		}
		if err := log.Append(t.Context(), records...); err != nil {
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

// BenchmarkStartKafka measures the time from the start to the first record.
func BenchmarkStartKafka(b *testing.B) {
	for b.Loop() {
		k, err := StartKafka(KafkaOptions{Topics: []string{"t"}})
		if err != nil {
			b.Fatal(err)
		}
		log, err := kafka.NewLog(kafka.Config{Brokers: []string{k.Addr()}}, "t")
		if err != nil {
			b.Fatal(err)
		}
		if err := log.Append(b.Context(), stream.Record{}); err != nil {
			b.Fatal(err)
		}
		if got, _, err := log.Read(b.Context(), 0, stream.Limit{}, time.Second); len(got) != 1 {
			b.Fatal(err)
		}
		log.Close()
		k.Close()
	}
}
