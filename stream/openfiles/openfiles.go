// Package openfiles shares out the files and connections that the process may open at
// once, so that clients of one listener never take the files of the rest.
//
//	most := openfiles.Connections(4096)
//
// `hamlet up` has the most listeners: NATS, HTTP, metrics, the console and the doors for
// mail. What is left after its own files is divided by eight. Who needs more connections
// raises the limit (ulimit -n, LimitNOFILE= of systemd).
package openfiles

import (
	"errors"
	"syscall"
)

const (
	listeners = 8   // that a program has at most
	own       = 256 // files and connections that are no client's, or half of the limit if that is less
	fewest    = 4   // connections of one listener
)

// Connections returns how many connections one listener may have open, at most most.
func Connections(most int) int {
	limit, ok := Limit()
	if !ok {
		return most
	}
	return share(limit, most)
}

func share(limit uint64, most int) int {
	clients := limit - min(own, limit/2)
	return int(max(fewest, min(uint64(most), clients/listeners)))
}

// Passing reports whether accepting a connection can succeed later, as when other
// connections have ended.
func Passing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
		syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
