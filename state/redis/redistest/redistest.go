//go:build unix

// Package redistest starts real Redis servers for tests: a master that Sentinels watch, or a
// Cluster. The servers listen on loopback, keep their data below the test's directory, and end
// with the test. Their fail-overs take about two seconds.
//
//	group := redistest.Sentinel(t)
//	store, err := redis.New(redis.Config{Addr: group.Addr(), Sentinel: group.Name})
//	…
//	group.Master(t, "").Kill(t)
package redistest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is how long a group may take to come up, and to replace a master.
const patience = 60 * time.Second

// A Group is a set of servers that replace a lost master by themselves.
type Group struct {
	Name    string    // that Sentinels have for the master; "" in a Cluster
	Servers []*Server // that hold data
	front   []*Server // that clients are told of: Sentinels, or the servers
}

// A Server is one process.
type Server struct {
	Addr    string
	Client  *redis.Client
	process *exec.Cmd
}

// Require skips the test unless HAMLET_NIGHTLY is set.
func Require(t testing.TB) {
	t.Helper()
	if os.Getenv("HAMLET_NIGHTLY") == "" {
		t.Skip("fail-overs take too long for every run: set HAMLET_NIGHTLY=1")
	}
}

// installed skips the test if redis-server is not installed.
func installed(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed: sudo apt-get install redis-server")
	}
}

// Addr returns what clients are told: addresses, separated by commas.
func (g *Group) Addr() string {
	addrs := make([]string, len(g.front))
	for i, s := range g.front {
		addrs[i] = s.Addr
	}
	return strings.Join(addrs, ",")
}

// Sentinel starts a master, two replicas and three Sentinels.
func Sentinel(t testing.TB) *Group {
	t.Helper()
	installed(t)
	ports := freePorts(t, 6)
	g := &Group{Name: "hamlet"}
	for i, port := range ports[:3] {
		lines := []string{}
		if i > 0 {
			lines = append(lines, "replicaof 127.0.0.1 "+ports[0])
		}
		g.Servers = append(g.Servers, start(t, port, lines...))
	}
	await(t, "the replicas follow", func(ctx context.Context) bool { return g.Servers[0].replicas(ctx) == 2 })
	for _, port := range ports[3:] {
		g.front = append(g.front, start(t, port,
			"sentinel monitor hamlet 127.0.0.1 "+ports[0]+" 2",
			"sentinel down-after-milliseconds hamlet 1000",
			"sentinel failover-timeout hamlet 3000"))
	}
	await(t, "the Sentinels know each other and the replicas", func(ctx context.Context) bool {
		for _, s := range g.front {
			info := s.Client.Info(ctx, "sentinel").Val()
			if !strings.Contains(info, "status=ok") || !strings.Contains(info, "slaves=2,sentinels=3") {
				return false
			}
		}
		return true
	})
	return g
}

// Cluster starts three masters with a replica each.
func Cluster(t testing.TB) *Group {
	t.Helper()
	installed(t)
	ports := freePorts(t, 12)
	g := &Group{}
	for i := range 6 {
		g.Servers = append(g.Servers, start(t, ports[i], "cluster-enabled yes", "cluster-port "+ports[6+i],
			"cluster-node-timeout 1000", "cluster-replica-validity-factor 0", "cluster-config-file nodes.conf"))
	}
	g.front = g.Servers
	ctx := t.Context()
	ids := make([]string, 6)
	for i, s := range g.Servers {
		must(t, s.Client.Do(ctx, "cluster", "set-config-epoch", i+1).Err())
		ids[i] = s.Client.Do(ctx, "cluster", "myid").Val().(string)
		if i < 3 {
			must(t, s.Client.ClusterAddSlotsRange(ctx, i*16384/3, (i+1)*16384/3-1).Err())
		}
		must(t, s.Client.Do(ctx, "cluster", "meet", "127.0.0.1", ports[0], ports[6]).Err())
	}
	await(t, "the nodes know each other", func(ctx context.Context) bool { return g.all(ctx, "cluster_known_nodes:6") })
	for i := range 3 {
		replica := g.Servers[3+i]
		await(t, "a replica has a master", func(ctx context.Context) bool {
			return replica.Client.ClusterReplicate(ctx, ids[i]).Err() == nil
		})
	}
	await(t, "the cluster is whole", func(ctx context.Context) bool {
		for _, master := range g.Servers[:3] {
			if master.replicas(ctx) != 1 {
				return false
			}
		}
		return g.all(ctx, "cluster_state:ok")
	})
	return g
}

// all reports whether CLUSTER INFO of all servers has a line.
func (g *Group) all(ctx context.Context, line string) bool {
	for _, s := range g.Servers {
		if !strings.Contains(s.Client.ClusterInfo(ctx).Val(), line+"\r\n") {
			return false
		}
	}
	return true
}

// Master returns the server that holds a key, and takes writes.
func (g *Group) Master(t testing.TB, key string) *Server {
	t.Helper()
	var master *Server
	await(t, "there is a master", func(ctx context.Context) bool {
		addr := ""
		for _, s := range g.front {
			if g.Name != "" {
				reply, err := s.Client.Do(ctx, "sentinel", "get-master-addr-by-name", g.Name).StringSlice()
				if err == nil && len(reply) == 2 {
					addr = net.JoinHostPort(reply[0], reply[1])
				}
			} else if slot, err := s.Client.ClusterKeySlot(ctx, key).Result(); err == nil {
				addr = s.masterOf(ctx, slot)
			}
			for _, server := range g.Servers {
				if server.Addr == addr && server.Client.Ping(ctx).Err() == nil {
					master = server
					return true
				}
			}
		}
		return false
	})
	return master
}

// masterOf returns the address of the master that has a slot, as a node sees it; "" without one.
func (s *Server) masterOf(ctx context.Context, slot int64) string {
	shards, _ := s.Client.ClusterShards(ctx).Result()
	for _, shard := range shards {
		if !slices.ContainsFunc(shard.Slots, func(r redis.SlotRange) bool { return r.Start <= slot && slot <= r.End }) {
			continue
		}
		for _, node := range shard.Nodes {
			if node.Role == "master" && node.Health == "online" {
				return net.JoinHostPort(node.IP, strconv.FormatInt(node.Port, 10))
			}
		}
	}
	return ""
}

// Replicas returns the servers that follow a master.
func (g *Group) Replicas(t testing.TB, master *Server) (replicas []*Server) {
	t.Helper()
	_, port, _ := net.SplitHostPort(master.Addr)
	for _, s := range g.Servers {
		info := s.Client.Info(t.Context(), "replication").Val()
		if strings.Contains(info, "role:slave") && strings.Contains(info, "master_port:"+port+"\r\n") {
			replicas = append(replicas, s)
		}
	}
	return replicas
}

// Cut ends the replication from a master: its replicas keep what they have, and can follow no more.
func (g *Group) Cut(t testing.TB, master *Server) {
	t.Helper()
	replicas := g.Replicas(t, master)
	if len(replicas) == 0 {
		t.Fatal("the master has no replicas")
	}
	for _, replica := range replicas {
		// The master has no password, and refuses one.
		must(t, replica.Client.ConfigSet(t.Context(), "masterauth", "wrong").Err())
	}
	must(t, master.Client.Do(t.Context(), "client", "kill", "type", "replica").Err())
	await(t, "the replicas are cut off", func(ctx context.Context) bool { return master.replicas(ctx) == 0 })
}

// replicas returns how many replicas have caught up with a master.
func (s *Server) replicas(ctx context.Context) int {
	return strings.Count(s.Client.Info(ctx, "replication").Val(), "state=online")
}

// Kill ends a server as a crash does.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.process.Process.Kill(); err != nil {
		t.Fatalf("kill %s: %v", s.Addr, err)
	}
	_ = s.process.Wait() // it was killed
}

// Stop has the kernel stop a server: its connections stay, and nothing answers.
func (s *Server) Stop(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Continue ends a Stop.
func (s *Server) Continue(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		t.Fatalf("%v to %s: %v", signal, s.Addr, err)
	}
}

// start starts one server. A configuration that watches a master makes it a Sentinel.
func start(t testing.TB, port string, lines ...string) *Server {
	t.Helper()
	dir := filepath.Join(t.TempDir(), port)
	must(t, os.Mkdir(dir, 0o700))
	all := append([]string{"bind 127.0.0.1", "port " + port, "dir " + dir}, lines...)
	args := []string{filepath.Join(dir, "redis.conf")}
	if strings.Contains(strings.Join(lines, "\n"), "sentinel monitor") {
		args = append(args, "--sentinel")
	} else {
		all = append(all, `save ""`, "appendonly no", "repl-diskless-sync-delay 0", "repl-ping-replica-period 1")
	}
	must(t, os.WriteFile(args[0], []byte(strings.Join(all, "\n")+"\n"), 0o600))
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", port), process: exec.Command("redis-server", args...)}
	var output bytes.Buffer
	s.process.Stdout, s.process.Stderr = &output, &output
	must(t, s.process.Start())
	s.Client = redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true,
		MaxRetries: -1, DialerRetries: 1, ReadTimeout: time.Second, ContextTimeoutEnabled: true})
	t.Cleanup(func() {
		_ = s.Client.Close()
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		if t.Failed() {
			t.Logf("redis-server at %s said at the end:\n%s", s.Addr, tail(output.String(), 5))
		}
	})
	await(t, "redis-server answers at "+s.Addr, func(ctx context.Context) bool { return s.Client.Ping(ctx).Err() == nil })
	return s
}

// tail returns the last lines of a text.
func tail(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// freePorts returns ports that were free a moment ago.
func freePorts(t testing.TB, n int) []string {
	t.Helper()
	ports := make([]string, n)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer listener.Close()
		ports[i] = strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// await polls until something holds.
func await(t testing.TB, what string, holds func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("redistest: %w", err))
	}
}
