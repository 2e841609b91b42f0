package services

import (
	"fmt"
	"syscall"
)

// CheckOpenFiles returns an error that says what to do if the process may open fewer
// than n files and connections at once. Go's runtime has raised the soft limit to the
// hard one. A program that runs out of them retries, and never gets anywhere.
func CheckOpenFiles(program string, n int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("the limit of open files: %w", err)
	}
	if limit.Cur >= uint64(n) {
		return nil
	}
	return fmt.Errorf("%s needs %d open files and connections, and the limit is %d: raise it (ulimit -n %d; LimitNOFILE= of systemd)",
		program, n, limit.Cur, max(n, 1024))
}

// ServiceFiles are the open files and connections that ingest, learner and scorer need.
// Measured are 10 to 17 (November 2026); the rest is for clients.
const ServiceFiles = 32
