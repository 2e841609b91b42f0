//go:build race

package embedded

const raced = true
