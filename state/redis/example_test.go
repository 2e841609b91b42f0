package redis_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"

	"hamlet/state"
	"hamlet/state/redis"
)

// A learner takes its model, continues from the head, and saves.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	ctx := context.Background()
	store, err := redis.New(redis.Config{Addr: server.Addr(), Model: "default"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	lease, err := store.Seize(ctx, "w")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _, err = store.Load(ctx, state.Head)
	fmt.Println(err)

	version, err := store.Save(ctx, &state.Checkpoint{
		Epoch:    lease.Epoch,
		Events:   1,
		Position: state.Position{}.Advance(0, nil, []byte("the first event")),
		Model:    []byte("what it learnt"),
		Saved:    time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
	})
	fmt.Println("version", version, err)

	c, _, err := store.Load(ctx, state.Served)
	fmt.Printf("%s, next offset %d, %v\n", c.Model, c.Position.Next, err)
	// Output:
	// load head of model default: no checkpoint
	// version 1 <nil>
	// what it learnt, next offset 1, <nil>
}
