//go:build !race

package httpd

const raced = false
