//go:build race

package httpd

const raced = true
