package redis

import (
	"context"
	"fmt"
	"strings"
)

// CheckPolicy returns an error if Redis may evict keys that have no time to live: a
// maxmemory-policy of allkeys-*, whatever its maxmemory is now. The policies volatile-*
// evict only chunks that no version names. On a server that does not say, or forbids
// INFO, CheckPolicy logs that and returns nil.
func (s *Store) CheckPolicy(ctx context.Context) error {
	info, err := s.client.Info(ctx, "memory").Result()
	if transient(err) {
		return s.explain("ask for the eviction policy", err)
	}
	switch policy := policyOf(info); {
	case err != nil || policy == "":
		s.cfg.Log.Info("redis does not say which keys it may evict: its maxmemory-policy should be noeviction", "redis", s.cfg.Addr)
	case strings.HasPrefix(policy, "allkeys-"):
		return fmt.Errorf("redis at %s may evict the model: its maxmemory-policy is %s: set it to noeviction "+
			"(CONFIG SET maxmemory-policy noeviction, and in its configuration file), or accept that with --redis-evicts", s.cfg.Addr, policy)
	}
	return nil
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
