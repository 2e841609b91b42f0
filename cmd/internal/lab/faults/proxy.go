package faults

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// A proxy forwards TCP connections to one server. It can cut them, slow them and
// flip a byte of what they carry. All methods may be called concurrently.
type proxy struct {
	listener net.Listener
	upstream string
	flipper  func() flipper // of a direction of a connection; nil: no checksum covers a byte
	wg       sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]struct{} // both sides of every connection
	refuse  bool                  // new connections are closed at once
	rate    int                   // bytes a second in each direction of a connection; 0: no bound
	flip    *flip                 // the next flip, nil if none waits
	closing bool
}

// A flipper follows one direction of one connection. Feed is given the bytes in the
// order of the stream and returns those to forward, which may be held back until a
// frame is complete. If wanted, it may flip one bit of one byte that a checksum
// covers, and then reports true.
type flipper interface {
	feed(b []byte, wanted bool) (out []byte, flipped bool)
}

// A flip waits for a byte that may be flipped.
type flip struct{ done chan struct{} }

// listenProxy returns a proxy that listens at addr and forwards to upstream.
func listenProxy(addr, upstream string, newFlipper func() flipper) (*proxy, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("proxy of %s: %w", upstream, err)
	}
	x := &proxy{listener: listener, upstream: upstream, flipper: newFlipper, conns: map[net.Conn]struct{}{}}
	x.wg.Go(x.accept)
	return x, nil
}

// Addr returns where the proxy listens.
func (x *proxy) Addr() string { return x.listener.Addr().String() }

// Close ends all connections and returns when they are closed.
func (x *proxy) Close() {
	x.mu.Lock()
	x.closing = true
	x.mu.Unlock()
	x.listener.Close()
	x.Cut()
	x.wg.Wait()
}

// Cut resets all connections.
func (x *proxy) Cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for c := range x.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly end
		}
		c.Close()
	}
}

// Refuse has new connections reset, or not.
func (x *proxy) Refuse(on bool) {
	x.mu.Lock()
	x.refuse = on
	x.mu.Unlock()
}

// Slow limits each direction of each connection to a rate; 0 ends that.
func (x *proxy) Slow(bytesPerSecond int) {
	x.mu.Lock()
	x.rate = bytesPerSecond
	x.mu.Unlock()
}

// Flip flips a bit of the next byte that a checksum covers. It waits for that byte, at
// most for the given time, and reports whether there was one.
func (x *proxy) Flip(wait time.Duration) bool {
	f := &flip{done: make(chan struct{})}
	x.mu.Lock()
	x.flip = f
	x.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-f.done:
		return true
	case <-timer.C:
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.flip == f {
		x.flip = nil
		return false
	}
	return true // it was flipped at the last moment
}

func (x *proxy) accept() {
	for {
		down, err := x.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // no file left, for instance
			continue
		}
		x.wg.Go(func() { x.serve(down) })
	}
}

// add registers a connection. If it may not be, it is reset.
func (x *proxy) add(c net.Conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refuse || x.closing {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		c.Close()
		return false
	}
	x.conns[c] = struct{}{}
	return true
}

func (x *proxy) drop(c net.Conn) {
	x.mu.Lock()
	delete(x.conns, c)
	x.mu.Unlock()
	c.Close()
}

func (x *proxy) serve(down net.Conn) {
	if !x.add(down) {
		return
	}
	defer x.drop(down)
	up, err := net.DialTimeout("tcp", x.upstream, 5*time.Second)
	if err != nil {
		if tcp, ok := down.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return
	}
	if !x.add(up) {
		return
	}
	defer x.drop(up)
	var both sync.WaitGroup
	both.Go(func() { x.copy(up, down) })
	both.Go(func() { x.copy(down, up) })
	both.Wait()
}

// copy forwards one direction until it ends, then ends the other side's reading too.
func (x *proxy) copy(to, from net.Conn) {
	defer func() {
		if tcp, ok := to.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	var flipper flipper
	if x.flipper != nil {
		flipper = x.flipper()
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			out := buffer[:n]
			if flipper != nil {
				x.mu.Lock()
				f := x.flip
				x.mu.Unlock()
				var flipped bool
				out, flipped = flipper.feed(out, f != nil)
				if flipped {
					x.mu.Lock()
					if x.flip == f {
						x.flip = nil
						close(f.done)
					}
					x.mu.Unlock()
				}
			}
			if x.write(to, out) != nil {
				from.Close()
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// write writes b, no faster than the proxy's rate.
func (x *proxy) write(to io.Writer, b []byte) error {
	for len(b) > 0 {
		x.mu.Lock()
		rate := x.rate
		x.mu.Unlock()
		if rate <= 0 {
			_, err := to.Write(b)
			return err
		}
		n := min(len(b), max(1, rate/20)) // pieces of a twentieth of a second
		if _, err := to.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
		time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
	}
	return nil
}
