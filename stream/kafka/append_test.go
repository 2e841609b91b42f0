package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/loopback"
)

func TestTooLarge(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name)
	small := stream.Record{Value: []byte("small")}
	// Noise, which is no smaller and soon done when compressed.
	large := stream.Record{Value: make([]byte, 3<<19)}
	_, _ = rand.NewChaCha8([32]byte{}).Read(large.Value)

	err := newLog(t, cfg, name).Append(t.Context(), small, large)
	if !errors.Is(err, stream.ErrTooLarge) || !strings.Contains(err.Error(), "record 2 of 2") {
		t.Errorf("our limit: %v", err)
	}
	cfg.MaxRecordBytes = 8 << 20
	log := newLog(t, cfg, name)
	err = log.Append(t.Context(), small, small, large, small)
	if !errors.Is(err, stream.ErrTooLarge) || !strings.Contains(err.Error(), "2 of 4 records acknowledged") {
		t.Errorf("the broker's limit: %v", err)
	}
	if got := len(all(t, log)); got != 2 {
		t.Errorf("%d records are in the log, want the 2 before the large one", got)
	}
}

func TestUnknownTopic(t *testing.T) {
	t.Parallel()
	cfg, name := cluster(t), topic(t)
	err := newLog(t, cfg, name).Append(within(t, 30*time.Second), stream.Record{})
	if !errors.Is(err, stream.ErrNoLog) || !strings.Contains(err.Error(), name) {
		t.Errorf("Append = %v, want ErrNoLog with the name", err)
	}
	if _, err := kafka.NewLog(cfg, ""); err == nil {
		t.Error("a log without a topic")
	}
}

// The records of one Append keep their order beside those of others.
func TestAppendConcurrently(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name)
	log := newLog(t, cfg, name)
	const writers, each = 32, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := 0; i < each; i += 5 {
				records := numbered(i, 5)
				for j := range records {
					records[j].Key = []byte(strconv.Itoa(w))
				}
				if err := log.Append(t.Context(), records...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	next := map[string]int{}
	for _, r := range all(t, log) {
		if string(r.Value) != strconv.Itoa(next[string(r.Key)]) {
			t.Fatalf("writer %s: %s, want %d", r.Key, r.Value, next[string(r.Key)])
		}
		next[string(r.Key)]++
	}
	for w := range writers {
		if n := next[strconv.Itoa(w)]; n != each {
			t.Errorf("writer %d: %d records, want %d", w, n, each)
		}
	}
}

// A cancelled call must not remove another call's records.
func TestCancelledAppendLeavesOthersAlone(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name)
	log := newLog(t, cfg, name)
	var wg sync.WaitGroup
	var mu sync.Mutex
	acked := map[string]bool{}
	for i := range 200 {
		wg.Go(func() {
			ctx := t.Context()
			if i%2 == 1 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Duration(i)*50*time.Microsecond)
				defer cancel()
			}
			key := strconv.Itoa(i)
			err := log.Append(ctx, stream.Record{Key: []byte(key), Value: words(2000, uint64(i))})
			if err == nil {
				mu.Lock()
				acked[key] = true
				mu.Unlock()
			} else if i%2 == 0 {
				t.Errorf("%d: %v", i, err)
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d: %v, want a deadline exceeded", i, err)
			}
		})
	}
	wg.Wait()
	for _, r := range all(t, log) {
		delete(acked, string(r.Key))
	}
	if len(acked) > 0 {
		t.Errorf("acknowledged and not in the log: %v", acked)
	}
}

// A cancelled Append returns while its request is in flight. What is appended later waits for the
// request, because the broker may still write it. What did not travel is never sent.
func TestCancelledAppendKeepsTheOrder(t *testing.T) {
	fake, cfg := fakeCluster(t)
	ensure(t, cfg, "t")
	log := newLog(t, cfg, "t")
	requests, arrived, answer := 0, make(chan struct{}), make(chan struct{})
	fake.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if requests++; requests == 1 { // the others pass
			close(arrived)
			fake.SleepControl(func() { <-answer })
		}
		return nil, nil, false
	})
	first, cancel := context.WithCancel(t.Context())
	cancelled := make(chan error, 1)
	go func() { cancelled <- log.Append(first, stream.Record{Value: []byte("1")}) }()
	<-arrived
	cancel()
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("Append = %v, want context.Canceled", err)
	}
	second, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := log.Append(second, stream.Record{Value: []byte("2")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append = %v, want its deadline: a request is in flight", err)
	}
	close(answer)
	add(t, log, stream.Record{Value: []byte("3")})
	records := all(t, log)
	if len(records) != 2 || string(records[0].Value) != "1" || string(records[1].Value) != "3" {
		t.Errorf("%d records, want 1 and 3: %v", len(records), records)
	}
}

// Close ends a request that nobody waits for.
func TestCloseEndsTheRequestInFlight(t *testing.T) {
	fake, cfg := fakeCluster(t)
	ensure(t, cfg, "t")
	log := newLog(t, cfg, "t")
	arrived, answer := make(chan struct{}), make(chan struct{})
	fake.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		close(arrived)
		fake.SleepControl(func() { <-answer })
		return nil, nil, false
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if err := log.Append(ctx, stream.Record{Value: []byte("1")}); !errors.Is(err, context.Canceled) {
		t.Errorf("Append = %v, want context.Canceled", err)
	}
	began := time.Now()
	if err := log.Close(); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("Close = %v after %v", err, time.Since(began))
	}
	close(answer)
}

func TestAppendWithoutBroker(t *testing.T) {
	t.Parallel()
	k, err := servertest.StartKafka(servertest.KafkaOptions{Addr: loopback.Hold(t), Topics: []string{"t"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	enough := errors.New("enough")
	lines := slog.New(slog.NewTextHandler(lineFunc(func(line []byte) {
		// Not where it counts two failures, as on a machine that stood still: the first one is
		// of a connection that was open.
		if bytes.Contains(line, []byte("appending again")) && !bytes.HasSuffix(line, []byte(" times=2\n")) {
			cancel(enough)
		}
	}), nil))
	log := newLog(t, kafka.Config{Brokers: []string{k.Addr()}, Log: lines}, "t")
	add(t, log, stream.Record{})
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	err = log.Append(ctx, stream.Record{})
	if !errors.Is(err, enough) || !strings.Contains(err.Error(), "0 of 1 records") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("Append = %v, want why it ended and the last failure", err)
	}
}

// A lineFunc hears every line of a log.
type lineFunc func(line []byte)

func (f lineFunc) Write(line []byte) (int, error) {
	f(line)
	return len(line), nil
}

func TestCloseEndsAppend(t *testing.T) {
	k, err := servertest.StartKafka(servertest.KafkaOptions{Addr: loopback.Hold(t), Topics: []string{"t"}})
	if err != nil {
		t.Fatal(err)
	}
	log := newLog(t, kafka.Config{Brokers: []string{k.Addr()}}, "t")
	add(t, log, stream.Record{})
	k.Close()
	ended := make(chan error)
	go func() { ended <- log.Append(context.Background(), stream.Record{}) }()
	go log.Close()
	if err := <-ended; !errors.Is(err, kafka.ErrClosed) {
		t.Errorf("under way: %v, want ErrClosed", err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	if err := log.Append(context.Background(), stream.Record{}); !errors.Is(err, kafka.ErrClosed) {
		t.Errorf("afterwards: %v, want ErrClosed", err)
	}
}

func TestConfigErrors(t *testing.T) {
	_, err := kafka.NewLog(kafka.Config{Brokers: []string{"localhost"}, MaxRecordBytes: -1}, "t")
	if err == nil || !strings.Contains(err.Error(), `"localhost" is not host:port`) || !strings.Contains(err.Error(), "max record bytes") {
		t.Errorf("NewLog = %v, want both faults", err)
	}
}

func ExampleLog() {
	broker, err := servertest.StartKafka(servertest.KafkaOptions{Topics: []string{"hamlet.events.default"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer broker.Close()
	log, err := kafka.NewLog(kafka.Config{Brokers: []string{broker.Addr()}}, "hamlet.events.default")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = log.Append(ctx, stream.Record{Key: []byte("alice"), Value: []byte("an event")}, stream.Record{Key: []byte("bob"), Value: []byte("another")})
	fmt.Println("acknowledged:", err == nil)
	records, end, err := log.Read(ctx, 1, stream.Limit{}, time.Second)
	fmt.Printf("%s, the log ends at %d, %v\n", records[0].Value, end, err)
	// Output:
	// acknowledged: true
	// another, the log ends at 2, <nil>
}
