package redis

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

// markReplaced has the sorted set of versions and the version's key as KEYS, and its number.
var markReplaced = redis.NewScript(`
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) or redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
redis.call('HSET', KEYS[2], 'replaced', '1')
return 1`)

// MarkReplaced has saves keep a version for 30 days, because another model is to take its
// place. They are days on which the model was saved: a clock that runs ahead drops no version. If the version is no longer kept, the error wraps [state.ErrNone].
func (s *Store) MarkReplaced(ctx context.Context, version int64) error {
	doing := s.doing(fmt.Sprintf("keep version %d of", version))
	kept, err := markReplaced.Run(ctx, s.node(ctx), []string{s.key("versions"), s.versionKey(version)}, version).Int()
	if err == nil && kept == 0 {
		err = state.ErrNone
	}
	return s.explain(doing, err)
}
