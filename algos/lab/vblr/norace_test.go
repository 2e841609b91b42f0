//go:build !race

package vblr

const raced = false
