package learner

import (
	"context"
	"fmt"
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"hamlet/state"
	"hamlet/state/redis"
)

// shim: until redis.Store has StepBack.
type shim struct {
	*redis.Store
	addr string
}

func (s shim) StepBack(ctx context.Context, epoch, to int64) error {
	c := goredis.NewClient(&goredis.Options{Addr: s.addr, DisableIdentity: true})
	defer c.Close()
	if now, err := c.Get(ctx, key("epoch")).Int64(); err != nil || now != epoch {
		return fmt.Errorf("%w: epoch %d, %v", state.ErrStale, now, err)
	}
	if err := c.ZRemRangeByScore(ctx, key("versions"), fmt.Sprint("(", to), "+inf").Err(); err != nil {
		return err
	}
	return c.MSet(ctx, key("head"), strconv.FormatInt(to, 10), key("served"), strconv.FormatInt(to, 10)).Err()
}
