package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// addrs returns the addresses that Addr names.
func (c *Config) addrs() []string {
	addrs := strings.Split(c.Addr, ",")
	for i := range addrs {
		addrs[i] = strings.TrimSpace(addrs[i])
	}
	return addrs
}

// checkReach returns what is wrong in the fields that say where Redis is.
func (c *Config) checkReach() (errs []error) {
	switch {
	case c.Addr == "":
		errs = append(errs, errors.New("no address: give host:port"))
	case c.Cluster && c.Sentinel != "":
		errs = append(errs, errors.New("both Cluster and Sentinel: a server is found by one of them"))
	case !c.Cluster && c.Sentinel == "" && len(c.addrs()) > 1:
		errs = append(errs, errors.New("several addresses: say whether they are of a Cluster or of Sentinels"))
	}
	if c.DB < 0 {
		errs = append(errs, fmt.Errorf("database %d is negative", c.DB))
	}
	if c.Cluster && c.DB > 0 {
		errs = append(errs, fmt.Errorf("database %d: a Redis Cluster has only database 0", c.DB))
	}
	return errs
}

// connect makes the clients, without a connection.
func (s *Store) connect() {
	cfg := &s.cfg
	options := redis.UniversalOptions{
		Addrs:            cfg.addrs(),
		Username:         cfg.Username,
		Password:         cfg.Password,
		SentinelUsername: cfg.SentinelUsername,
		SentinelPassword: cfg.SentinelPassword,
		MasterName:       cfg.Sentinel,
		DB:               cfg.DB,
		TLSConfig:        cfg.TLS,
		// A deadline ends a read in flight. The library must not repeat a command,
		// because Acquire is not idempotent.
		ContextTimeoutEnabled: true,
		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           5 * time.Second,
		// Of small requests. Those that move chunks have a pace.
		ReadTimeout:  minLimit,
		WriteTimeout: minLimit,
		// These need commands that some servers lack.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if cfg.Sentinel != "" {
		s.client = redis.NewFailoverClient(options.Failover())
		s.client.AddHook(unknownMaster{cfg.Sentinel})
		return
	}
	s.client = redis.NewClient(options.Simple())
	if cfg.Cluster {
		cluster := options.Cluster()
		// Commands go to the node of a model's slot, or to one that is named.
		cluster.DisableRoutingPolicies = true
		s.cluster = redis.NewClusterClient(cluster)
		s.client.AddHook(follow{s.cluster})
		s.cluster.OnNewNode(func(node *redis.Client) { node.AddHook(follow{s.cluster}) })
	}
}

// node returns the client of the server that holds the model: all its keys are in one slot.
// Where a cluster does not say who that is, it is the first address, which says why.
func (s *Store) node(ctx context.Context) *redis.Client {
	if s.cluster == nil {
		return s.client
	}
	node, err := s.cluster.MasterForKey(ctx, s.key("partitions"))
	if err != nil {
		return s.client
	}
	return node
}

// masters calls visit for every server that takes writes: one, or the masters of a cluster,
// one after the other.
func (s *Store) masters(ctx context.Context, visit func(master *redis.Client, addr string) error) error {
	if s.cluster == nil {
		return visit(s.client, s.cfg.Addr)
	}
	one := make(chan struct{}, 1) // the library calls concurrently
	return s.cluster.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		one <- struct{}{}
		defer func() { <-one }()
		return visit(master, master.Options().Addr)
	})
}

// relocated asks the cluster again for its masters. It returns the client of the one at
// addr, which a node has just named. If it is none of them, it returns that of the node
// which holds the model now.
func (s *Store) relocated(ctx context.Context, addr string) *redis.Client {
	var named atomic.Pointer[redis.Client] // the library calls concurrently
	// This is the library's only call that asks at once. ReloadState asks in the background.
	_ = s.cluster.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		if master.Options().Addr == addr {
			named.Store(master)
		}
		return nil
	})
	if node := named.Load(); node != nil {
		return node
	}
	return s.node(ctx)
}

// follow is a hook of a node's client. A command that the node redirects, with MOVED or
// ASK, goes through the cluster's client, which follows. Commands that the cluster's
// client itself sends pass.
type follow struct{ cluster *redis.ClusterClient }

// direct marks the context of commands that shall not be redirected, or no more.
type direct struct{}

func directly(ctx context.Context) context.Context { return context.WithValue(ctx, direct{}, true) }

// redirected reports whether a node says that another one has the key.
func redirected(err error) bool {
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask
}

func (f follow) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f follow) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		if !redirected(err) || ctx.Value(direct{}) != nil {
			return err
		}
		f.cluster.ReloadState(ctx)
		return f.cluster.Process(directly(ctx), command)
	}
}

func (f follow) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		if ctx.Value(direct{}) != nil {
			return err
		}
		elsewhere := f.cluster.Pipeline()
		for _, command := range commands {
			if redirected(command.Err()) {
				_ = elsewhere.Process(ctx, command) // it only queues
			}
		}
		if elsewhere.Len() == 0 {
			return err
		}
		f.cluster.ReloadState(ctx)
		_, _ = elsewhere.Exec(directly(ctx)) // each command has its own error
		for _, command := range commands {
			if err := command.Err(); err != nil {
				return err
			}
		}
		return nil
	}
}

// unknownMaster is a hook of a client that asks Sentinels. Their answer that they do not
// watch a master of this name is [redis.Nil]. From a dial it would look like a missing key,
// and a missing key like a model that does not exist yet.
type unknownMaster struct{ name string }

// errNoMaster says that a Sentinel does not know the master.
var errNoMaster = errors.New("no Sentinel names the master")

func (u unknownMaster) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("%w %q: %v", errNoMaster, u.name, err)
		}
		return conn, err
	}
}

func (unknownMaster) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (unknownMaster) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ErrEvicts: Redis may evict keys that have no time to live. Change its policy, or go on and risk the model.
var ErrEvicts = errors.New("evict the model")

// CheckPolicy returns an error that wraps ErrEvicts if Redis may evict keys that have no time to live: a
// maxmemory-policy of allkeys-*, whatever its maxmemory is now. The policies volatile-*
// evict only chunks that no version names. On a server that does not say, or forbids
// INFO, CheckPolicy logs that and returns nil. It asks every master of a Cluster, because
// the model may move to any. It does not ask replicas, which a fail-over makes masters.
func (s *Store) CheckPolicy(ctx context.Context) error {
	return s.masters(ctx, func(master *redis.Client, addr string) error {
		info, err := master.Info(ctx, "memory").Result()
		if transient(err) {
			return s.explain("ask for the eviction policy", err)
		}
		switch policy := policyOf(info); {
		case err != nil || policy == "":
			s.cfg.Log.Info("redis does not say which keys it may evict: its maxmemory-policy should be noeviction",
				"redis", addr)
		case strings.HasPrefix(policy, "allkeys-"):
			return fmt.Errorf("redis at %s may %w: its maxmemory-policy is %s: set it to noeviction "+
				"(CONFIG SET maxmemory-policy noeviction, and in its configuration file)", addr, ErrEvicts, policy)
		}
		return nil
	})
}

// policyOf finds the policy in an answer of INFO memory.
func policyOf(info string) string {
	for line := range strings.Lines(info) {
		if policy, ok := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:"); ok {
			return policy
		}
	}
	return ""
}
