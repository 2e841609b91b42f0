package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

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
			s.cfg.Log.Info("redis does not say which keys it may evict: its maxmemory-policy should be noeviction", "redis", addr)
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
