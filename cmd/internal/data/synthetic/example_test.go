package synthetic_test

import (
	"fmt"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/stream"
)

// A thousand messages, a tenth of whose labels are flipped.
func Example() {
	items, err := synthetic.Items(synthetic.Config{Seed: 1}, 1000, source.FlipConfig{Rate: 0.1})
	if err != nil {
		fmt.Println(err)
		return
	}
	spam, flipped := 0, 0
	for item, err := range items {
		if err != nil {
			fmt.Println(err)
			return
		}
		if item.Truth == stream.Spam {
			spam++
		}
		if item.Event.Label != item.Truth {
			flipped++
		}
	}
	fmt.Println(spam > 300, flipped > 50)
	// Output: true true
}
