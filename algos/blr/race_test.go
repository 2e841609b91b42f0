//go:build race

package blr

// Measurements in one goroutine have nothing to tell the race detector.
const raced = true
