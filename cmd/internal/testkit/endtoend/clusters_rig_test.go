package endtoend

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream/nats"
)

// A node is one server of a cluster, on loopback.
type node struct {
	t       *testing.T
	addr    string // of clients
	args    []string
	process *exec.Cmd

	mu     sync.Mutex
	output bytes.Buffer
}

func (n *node) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.output.Write(b)
}

// start starts the node, with the data that it had.
func (n *node) start() {
	n.t.Helper()
	n.process = exec.Command(n.args[0], n.args[1:]...)
	n.process.Stdout, n.process.Stderr = n, n
	if err := n.process.Start(); err != nil {
		n.t.Fatal(err)
	}
}

// kill is kill −9.
func (n *node) kill() {
	_ = n.process.Process.Kill()
	_ = n.process.Wait() // it was killed
}

// awaitOpen waits until the node takes connections.
func (n *node) awaitOpen() {
	n.t.Helper()
	await(n.t, "a server answers at "+n.addr, func() bool {
		conn, err := net.DialTimeout("tcp", n.addr, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// A cluster is nodes of one kind.
type cluster []*node

func newCluster(t *testing.T, ports []string, args func(i int) []string) cluster {
	t.Helper()
	var c cluster
	for i, port := range ports {
		c = append(c, &node{t: t, addr: "127.0.0.1:" + port, args: args(i)})
	}
	t.Cleanup(func() {
		for _, n := range c {
			if n.process != nil {
				n.kill()
			}
			if t.Failed() {
				lines := strings.SplitAfter(n.output.String(), "\n")
				t.Logf("%s said at the end:\n%s", n.addr, strings.Join(lines[max(0, len(lines)-8):], ""))
			}
		}
	})
	for _, n := range c {
		n.start()
	}
	for _, n := range c {
		n.awaitOpen()
	}
	return c
}

// addrs returns the addresses of all nodes.
func (c cluster) addrs() (addrs []string) {
	for _, n := range c {
		addrs = append(addrs, n.addr)
	}
	return addrs
}

// at returns the node of an address.
func (c cluster) at(t *testing.T, addr string) *node {
	t.Helper()
	i := slices.IndexFunc(c, func(n *node) bool { return n.addr == addr })
	if i < 0 {
		t.Fatalf("no node has the address %s", addr)
	}
	return c[i]
}

// fetched returns where deploy/servers keeps a program.
func fetched(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("../../../../deploy/servers", "fetch").Output()
	if err != nil {
		t.Skipf("deploy/servers fetch: %v: Java, Maven and redis-server are needed", err)
	}
	for line := range strings.Lines(string(out)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return value
		}
	}
	t.Fatalf("deploy/servers fetch does not say %s: %s", name, out)
	return ""
}

// portsInARow returns n ports.
func portsInARow(t *testing.T, n int) (ports []string) {
	first := freePorts(t, n)
	for i := range n {
		ports = append(ports, fmt.Sprint(first+i))
	}
	return ports
}

// startKafkas starts three brokers, which are controllers too. A topic has three replicas, and
// a record counts once two have it.
func startKafkas(t *testing.T) cluster {
	t.Helper()
	jars := fetched(t, "KAFKA_JARS") + "/*"
	single, err := os.ReadFile("../../../../deploy/kafka/server.properties")
	if err != nil {
		t.Fatal(err)
	}
	ports, dir := portsInARow(t, 6), t.TempDir()
	voters := fmt.Sprintf("1@127.0.0.1:%s,2@127.0.0.1:%s,3@127.0.0.1:%s", ports[3], ports[4], ports[5])
	java := []string{"java", "-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir=" + dir, "-cp", jars}
	return newCluster(t, ports[:3], func(i int) []string {
		file := filepath.Join(dir, fmt.Sprint(i+1, ".properties"))
		properties := string(single) + fmt.Sprintf(`
node.id=%d
controller.quorum.voters=%s
listeners=PLAINTEXT://127.0.0.1:%s,CONTROLLER://127.0.0.1:%s
advertised.listeners=PLAINTEXT://127.0.0.1:%[3]s
log.dirs=%[5]s
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
controller.quorum.election.timeout.ms=500
controller.quorum.fetch.timeout.ms=1000
`, i+1, voters, ports[i], ports[3+i], filepath.Join(dir, fmt.Sprint("data", i+1)))
		if err := os.WriteFile(file, []byte(properties), 0o600); err != nil {
			t.Fatal(err)
		}
		format := exec.Command(java[0], append(slices.Clone(java[1:]), "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", file)...)
		if out, err := format.CombinedOutput(); err != nil {
			t.Fatalf("format: %v\n%s", err, out)
		}
		return append(slices.Clone(java), "kafka.Kafka", file)
	})
}

// leaderOf returns the broker that leads a partition.
func leaderOf(t *testing.T, brokers cluster, topic string, partition int) *node {
	t.Helper()
	client := &kafkago.Client{Addr: kafkago.TCP(brokers.addrs()...)}
	var addr string
	await(t, "a partition has a leader and all its replicas", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		meta, err := client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{topic}})
		if err != nil || len(meta.Topics) != 1 {
			return false
		}
		for _, p := range meta.Topics[0].Partitions {
			if p.ID == partition && len(p.Isr) == len(brokers) && p.Leader.Port != 0 {
				addr = net.JoinHostPort(p.Leader.Host, fmt.Sprint(p.Leader.Port))
				return true
			}
		}
		return false
	})
	return brokers.at(t, addr)
}

// startNATS starts three servers with JetStream.
func startNATS(t *testing.T) cluster {
	t.Helper()
	program := fetched(t, "NATS_SERVER")
	ports, dir := portsInARow(t, 6), t.TempDir()
	return newCluster(t, ports[:3], func(i int) []string {
		file := filepath.Join(dir, fmt.Sprint(i+1, ".conf"))
		settings := fmt.Sprintf(`
server_name: n%d
listen: "127.0.0.1:%s"
jetstream { store_dir: %q }
cluster {
  name: hamlet
  listen: "127.0.0.1:%s"
  routes: ["nats://127.0.0.1:%s", "nats://127.0.0.1:%s", "nats://127.0.0.1:%s"]
}
`, i+1, ports[i], filepath.Join(dir, fmt.Sprint("data", i+1)), ports[3+i], ports[3], ports[4], ports[5])
		if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{program, "-c", file}
	})
}

// leaderOfStream returns the server that leads a stream of JetStream.
func leaderOfStream(t *testing.T, servers cluster, name string) *node {
	t.Helper()
	var found int
	await(t, "the stream "+name+" has a leader and all its replicas", func() bool {
		conn, err := nats.Connect(nats.Config{URL: natsURL})
		if err != nil {
			return false
		}
		defer conn.Close()
		js, err := jetstream.New(conn)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s, err := js.Stream(ctx, name)
		if err != nil {
			return false
		}
		info, err := s.Info(ctx)
		if err != nil || info.Cluster == nil || len(info.Cluster.Replicas) != 2 ||
			slices.ContainsFunc(info.Cluster.Replicas, func(p *jetstream.PeerInfo) bool { return !p.Current }) {
			return false
		}
		_, err = fmt.Sscanf(info.Cluster.Leader, "n%d", &found)
		return err == nil
	})
	return servers[found-1]
}
