//go:build race

package model_test

// raceDetector tells that code is instrumented, which allocates by itself.
const raceDetector = true
