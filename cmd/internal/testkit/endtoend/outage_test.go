package endtoend

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/loopback"
)

// The broker goes away and comes back with what it had, again and again. The learners go
// on, and the model is what its logs say.
func TestModelAfterOutages(t *testing.T) {
	outages := rounds(t, 3, 30)
	withoutUsers(t)
	random := rand.New(rand.NewPCG(6, 19))
	options := servertest.KafkaOptions{Dir: t.TempDir(), Addr: loopback.Hold(t)}
	broker, err := servertest.StartKafka(options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = broker.Close() }()
	redis, err := servertest.StartRedis(servertest.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	o := newReplicasOn(t, servers{kafka: broker.Addr(), redis: redis.Addr()}, kafka.Config{Brokers: []string{broker.Addr()}})
	learners := []*process{o.learner(), o.learner()}
	o.survive(outages, learners, func() {
		o.wait(random, 300*time.Millisecond)
		if err := broker.Close(); err != nil {
			t.Fatal(err)
		}
		o.wait(random, 300*time.Millisecond)
		if broker, err = servertest.StartKafka(options); err != nil {
			t.Fatal(err)
		}
	})
}

// survive makes outages while events flow and are learnt, and checks the model.
func (o *replicas) survive(outages int, learners []*process, outage func()) {
	o.t.Helper()
	stop := o.flow(4, 20*time.Millisecond)
	for range outages {
		o.awaitActive(learners...)
		outage()
	}
	o.awaitActive(learners...)
	stop()
	o.wantReplayed()
	for _, p := range learners {
		p.stop()
	}
	o.wantLetters(o.wantReplayed())
	o.t.Logf("%d outages", outages)
}

// withoutUsers is for a test with servers of its own, which let everybody in.
func withoutUsers(t *testing.T) {
	had := passwords
	passwords = nil
	t.Cleanup(func() { passwords = had })
}

// A real Kafka is killed with kill −9, and started again. It may lose nothing that it has
// acknowledged. The model is what its logs say.
func TestModelAfterKillsOfKafka(t *testing.T) {
	if !nightly {
		t.Skip("starts Kafka again and again: HAMLET_NIGHTLY=1 runs it")
	}
	withoutUsers(t)
	random := rand.New(rand.NewPCG(7, 19))
	dir := t.TempDir()
	ports := freePorts(t, 4)
	command := func(args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, "../../../../deploy/servers", append(args, dir)...)
		c.Env = append(os.Environ(), fmt.Sprint("KAFKA_PORT=", ports), fmt.Sprint("NATS_PORT=", ports+2), fmt.Sprint("REDIS_PORT=", ports+3))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("deploy/servers %v: %v\n%s", args, err, out)
		}
	}
	t.Cleanup(func() { command("stop") })
	command("start")
	kafkaAddr, redisAddr := fmt.Sprint("127.0.0.1:", ports), fmt.Sprint("127.0.0.1:", ports+3)
	o := newReplicasOn(t, servers{kafka: kafkaAddr, redis: redisAddr}, kafka.Config{Brokers: []string{kafkaAddr}})
	learners := []*process{o.learner(), o.learner()}
	o.survive(10, learners, func() {
		o.wait(random, time.Second)
		command("kill", "kafka")
		command("start")
	})
}

// freePorts returns the first of n ports in a row that nobody uses now.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for range 100 {
		first := 20000 + rand.IntN(10000)
		free := true
		for i := range n {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+i))
			if free = free && err == nil; err == nil {
				l.Close()
			}
		}
		if free {
			return first
		}
	}
	t.Fatal("no free ports")
	return 0
}
