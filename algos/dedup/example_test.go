package dedup_test

import (
	"fmt"

	"hamlet/algos/dedup"
)

func Example() {
	seen := dedup.New(2)
	for _, id := range []string{"a", "a", "b", "c", "a"} {
		key := seen.Key("tenant", "source", id)
		if seen.Has(key) {
			fmt.Println(id, "is a copy")
			continue
		}
		seen.Add(key)
		fmt.Println(id, "is new")
	}
	// Output:
	// a is new
	// a is a copy
	// b is new
	// c is new
	// a is new
}
