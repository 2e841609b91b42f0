//go:build !race

package blr

const raced = false
