//go:build race

package vblr

// Measurements in one goroutine have nothing to tell the race detector.
const raced = true
