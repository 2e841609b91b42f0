package redis

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	resp "github.com/alicebob/miniredis/v2/server"

	"hamlet/state"
)

// A store of a Cluster goes where a node sends it. MOVED comes for good: the slot has another
// node, and every command finds it. ASK comes for one command.
func TestAClusterRedirects(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"MOVED", "ASK"} {
		t.Run(kind, func(t *testing.T) {
			first, second := miniredis.RunT(t), miniredis.RunT(t)
			if err := second.Server().Register("ASKING", func(peer *resp.Peer, _ string, _ []string) { peer.WriteOK() }); err != nil {
				t.Fatal(err)
			}
			if kind == "ASK" {
				// A node that gets a slot names the other one until it has all of it, and runs no
				// script of several keys, whoever sends it there.
				second.Server().SetPreHook(func(peer *resp.Peer, command string, args ...string) bool {
					switch strings.ToUpper(command) {
					case "CLUSTER":
						writeSlots(peer, first.Addr())
						return true
					case "EVALSHA", "EVAL":
						if args[1] != "1" {
							peer.WriteError("TRYAGAIN Multiple keys request during rehashing of slot")
							return true
						}
					}
					return false
				})
			}
			s, err := New(Config{Addr: first.Addr(), Cluster: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			epoch := take(t, s)
			save(t, s, checkpoint(epoch, 1, "a"))

			// The second one gets the keys.
			data := first.Dump()
			copyKeys(t, first, second)
			first.FlushAll()
			var sent atomic.Int64
			first.Server().SetPreHook(func(peer *resp.Peer, command string, args ...string) bool {
				switch strings.ToUpper(command) {
				case "CLUSTER":
					if kind == "MOVED" {
						writeSlots(peer, second.Addr())
						return true
					}
					return false
				case "PING", "HELLO", "SELECT", "CLIENT":
					return false
				case "EVALSHA", "EVAL":
					if kind == "ASK" && args[1] != "1" {
						// Redis answers a script so while only some of its keys have moved.
						peer.WriteError("TRYAGAIN Multiple keys request during rehashing of slot")
						return true
					}
				}
				sent.Add(1)
				peer.WriteError(kind + " 866 " + second.Addr())
				return true
			})
			if c, version, err := s.Load(t.Context(), state.Head); err != nil || version != 1 || c.Position.Next != 1 {
				t.Fatalf("load after the move: version %d, %v; the first node had\n%.2000s", version, err, data)
			}
			if sent.Load() == 0 {
				t.Fatalf("no %s was sent", kind)
			}
			_, err = s.Save(t.Context(), checkpoint(epoch, 2, "b"))
			if kind == "ASK" {
				if !errors.Is(err, state.ErrTransient) {
					t.Errorf("save while the slot moves: %v, want ErrTransient", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("save: %v", err)
			}
			if models, err := s.Models(t.Context()); err != nil || len(models) != 1 {
				t.Errorf("models %v, %v; want one", models, err)
			}
			if len(first.Keys()) != 0 {
				t.Errorf("the first node got keys: %v", first.Keys())
			}
		})
	}
}

// While the nodes do not agree yet, a save goes to the node that MOVED names. If all send it
// away, it may be tried again later.
func TestASaveWhileAClusterDisagrees(t *testing.T) {
	t.Parallel()
	for what, agree := range map[string]bool{"the named node has the model": true, "none has it": false} {
		t.Run(what, func(t *testing.T) {
			first, second := miniredis.RunT(t), miniredis.RunT(t)
			s, err := New(Config{Addr: first.Addr(), Cluster: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			epoch := take(t, s)
			save(t, s, checkpoint(epoch, 1, "a"))
			copyKeys(t, first, second)

			// Both give the slots to the first one still, which sends the script away.
			for _, node := range []*miniredis.Miniredis{first, second} {
				node.Server().SetPreHook(func(peer *resp.Peer, command string, _ ...string) bool {
					switch strings.ToUpper(command) {
					case "CLUSTER":
						writeSlotsOf(peer, first.Addr(), second.Addr())
						return true
					case "EVALSHA", "EVAL":
						if node == first || !agree {
							peer.WriteError("MOVED 866 " + second.Addr())
							return true
						}
					}
					return false
				})
			}
			_, err = s.Save(t.Context(), checkpoint(epoch, 2, "a")) // the chunks are there
			switch {
			case agree && (err != nil || second.HGet(s.versionKey(1), "next") != "2"):
				t.Errorf("save: %v, or not on the node that has the model", err)
			case !agree && (!errors.Is(err, state.ErrTransient) || strings.Contains(err.Error(), "loses chunks")):
				t.Errorf("save: %v, want ErrTransient that says MOVED", err)
			}
		})
	}
}

// copyKeys copies what a save makes.
func copyKeys(t *testing.T, from, to *miniredis.Miniredis) {
	t.Helper()
	for _, key := range from.Keys() {
		switch kind := from.Type(key); kind {
		case "string":
			text, err := from.Get(key)
			if err != nil {
				t.Fatal(err)
			}
			if err := to.Set(key, text); err != nil {
				t.Fatal(err)
			}
		case "hash":
			fields, err := from.HKeys(key)
			if err != nil {
				t.Fatal(err)
			}
			for _, field := range fields {
				to.HSet(key, field, from.HGet(key, field))
			}
		case "set":
			members, err := from.Members(key)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := to.SAdd(key, members...); err != nil {
				t.Fatal(err)
			}
		case "zset":
			scores, err := from.SortedSet(key)
			if err != nil {
				t.Fatal(err)
			}
			for member, score := range scores {
				if _, err := to.ZAdd(key, score, member); err != nil {
					t.Fatal(err)
				}
			}
		default:
			t.Fatalf("%s is a %s", key, kind)
		}
	}
}

// writeSlots answers CLUSTER SLOTS: one node has them all.
func writeSlots(peer *resp.Peer, addr string) { writeSlotsOf(peer, addr) }

// writeSlotsOf answers CLUSTER SLOTS: the first node has all slots but the last ones, of
// which each other node has one.
func writeSlotsOf(peer *resp.Peer, addrs ...string) {
	peer.Block(func(w *resp.Writer) {
		w.WriteLen(len(addrs))
		from, to := 0, 16384-len(addrs)
		for i, addr := range addrs {
			host, text, _ := net.SplitHostPort(addr)
			port, _ := strconv.Atoi(text)
			w.WriteLen(3)
			w.WriteInt(from)
			w.WriteInt(to)
			from, to = to+1, to+1
			w.WriteLen(3)
			w.WriteBulk(host)
			w.WriteInt(port)
			w.WriteBulk(strings.Repeat(string(rune('a'+i)), 40))
		}
	})
}

// A sentinel is a Sentinel that names a master, and may name another one later.
type sentinel struct {
	*resp.Server
	master atomic.Pointer[string]
}

func startSentinel(t *testing.T, password, master string) *sentinel {
	t.Helper()
	srv, err := resp.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	s := &sentinel{Server: srv}
	s.master.Store(&master)
	commands := map[string]resp.Cmd{
		"AUTH": func(peer *resp.Peer, _ string, args []string) {
			if args[len(args)-1] != password {
				peer.WriteError("WRONGPASS invalid username-password pair or user is disabled.")
				return
			}
			peer.WriteOK()
		},
		"SENTINEL": func(peer *resp.Peer, _ string, args []string) {
			host, port, _ := net.SplitHostPort(*s.master.Load())
			switch {
			case strings.EqualFold(args[0], "get-master-addr-by-name") && args[1] == "hamlet":
				peer.WriteStrings([]string{host, port})
			case strings.EqualFold(args[0], "get-master-addr-by-name"):
				peer.WriteLen(-1)
			default: // no other Sentinels, no replicas
				peer.WriteLen(0)
			}
		},
		"SUBSCRIBE": func(peer *resp.Peer, _ string, args []string) {
			for i, channel := range args {
				peer.Block(func(w *resp.Writer) {
					w.WritePushLen(3)
					w.WriteBulk("subscribe")
					w.WriteBulk(channel)
					w.WriteInt(i + 1)
				})
			}
		},
		"PING": func(peer *resp.Peer, _ string, _ []string) { peer.WriteInline("PONG") },
	}
	for name, command := range commands {
		if err := srv.Register(name, command); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A store asks Sentinels for the master, and asks again when that is lost.
func TestSentinelsNameTheMaster(t *testing.T) {
	t.Parallel()
	first, second := miniredis.RunT(t), miniredis.RunT(t)
	watch := startSentinel(t, "watch", first.Addr())
	cfg := Config{Addr: watch.Addr().String(), Sentinel: "hamlet", SentinelPassword: "watch"}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	epoch := take(t, s)
	save(t, s, checkpoint(epoch, 1, "a"))
	copyKeys(t, first, second)

	first.Close()
	if _, err := s.Save(t.Context(), checkpoint(epoch, 2, "b")); !errors.Is(err, state.ErrTransient) {
		t.Fatalf("save without a master: %v, want ErrTransient", err)
	}
	addr := second.Addr()
	watch.master.Store(&addr)
	if version := save(t, s, checkpoint(epoch, 2, "b")); version != 2 {
		t.Errorf("saved version %d on the new master, want 2", version)
	}

	for name, change := range map[string]func(*Config){
		"watch no master of this name": func(c *Config) { c.Sentinel = "other" },
		"user name and password":       func(c *Config) { c.SentinelPassword = "wrong" },
		"no Sentinel answers there":    func(c *Config) { c.Addr, c.SentinelPassword = second.Addr(), "" },
	} {
		wrong := cfg
		change(&wrong)
		s, err := New(wrong)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, _, err = s.Load(t.Context(), state.Head)
		if err == nil || errors.Is(err, state.ErrNone) || errors.Is(err, state.ErrTransient) {
			t.Fatalf("load with the wrong settings (%s): %v", name, err)
		}
		mustContain(t, err.Error(), name)
	}
}

func TestACheckOfWhereRedisIs(t *testing.T) {
	for say, cfg := range map[string]Config{
		"several addresses":            {Addr: "a:1,b:1"},
		"both Cluster and Sentinel":    {Addr: "a:1,b:1", Cluster: true, Sentinel: "x"},
		"has only database 0":          {Addr: "a:1", Cluster: true, DB: 2},
		"no Redis Cluster":             {Addr: noCluster(t), Cluster: true},
		"no redis answers there: star": {Addr: "127.0.0.1:1, 127.0.0.1:2", Cluster: true},
	} {
		s, err := New(cfg)
		if err == nil {
			defer s.Close()
			err = s.Ping(t.Context())
		}
		if err == nil {
			t.Errorf("%+v: no error, want %q", cfg, say)
			continue
		}
		mustContain(t, err.Error(), say)
	}
}

// noCluster returns the address of a server that is no node of a Cluster.
func noCluster(t *testing.T) string {
	m := miniredis.RunT(t)
	m.Server().SetPreHook(func(peer *resp.Peer, command string, _ ...string) bool {
		if strings.EqualFold(command, "CLUSTER") {
			peer.WriteError("ERR This instance has cluster support disabled")
			return true
		}
		return false
	})
	return m.Addr()
}
