package gateway

import "net"

// listenUnix makes a socket. Its folder says who can open it.
func listenUnix(path string) (net.Listener, error) { return net.Listen("unix", path) }
