// Command activate starts a program as systemd starts one whose sockets it holds: LISTEN_PID
// is the process's own number.
package main

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	_ = os.Setenv("LISTEN_PID", fmt.Sprint(os.Getpid())) // it has no zero byte
	fmt.Fprintln(os.Stderr, syscall.Exec(os.Args[1], os.Args[1:], os.Environ()))
	os.Exit(1)
}
