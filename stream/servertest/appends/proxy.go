// Package appends is a TCP proxy for tests. It stands between a client and a Kafka, and
// delays, loses, doubles and reorders what the client appends to one topic.
//
//	p := appends.Start(t, appends.Config{Broker: addr, Topic: "t", Fate: func() appends.Fate { return appends.Double }})
//	log, err := kafka.NewLog(kafka.Config{Brokers: []string{p.Addr()}}, "t")
//
// It knows how Kafka frames requests and answers, and the Produce request up to the
// topic's name. It writes its own address into the answers that name brokers, so clients
// stay with it. It passes on SASL. It cannot look into TLS.
package appends

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A Fate is what becomes of a Produce request.
type Fate uint8

const (
	Pass   Fate = iota
	Delay       // the broker gets it after Config.Delay
	Lose        // the broker appends it; the client's connection is closed in place of the answer
	Double      // the broker gets it twice; the client gets the first answer
	Late        // the client's connection is closed; the broker gets it after later ones
)

// String returns the fate's name.
func (f Fate) String() string {
	return [...]string{"passed", "delayed", "answer lost", "doubled", "late"}[f]
}

// A Config says what a proxy does.
type Config struct {
	Broker string // host:port, as the broker advertises it
	Topic  string
	Fate   func() Fate // of each Produce request to Topic; called one at a time

	Delay time.Duration // of Delay; default 100 ms
	Later int           // how many requests to Topic overtake a Late one; default 3
}

// A Proxy listens until the test ends.
type Proxy struct {
	cfg      Config
	listener net.Listener
	to, from []byte // the broker's address and the proxy's, as answers have them
	running  sync.WaitGroup
	ended    chan struct{}

	mu    sync.Mutex
	conns map[net.Conn]bool
	fates map[Fate]int
	late  []overtaken
	stall chan struct{} // closed when bytes pass again; nil: they pass
}

// An overtaken is a Late request that waits.
type overtaken struct {
	left int           // requests that are to pass before it
	now  chan struct{} // closed when they have
}

// Start starts a proxy.
func Start(t testing.TB, cfg Config) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Delay == 0 {
		cfg.Delay = 100 * time.Millisecond
	}
	if cfg.Later == 0 {
		cfg.Later = 3
	}
	p := &Proxy{cfg: cfg, listener: listener, ended: make(chan struct{}), conns: map[net.Conn]bool{},
		fates: map[Fate]int{}}
	if p.to, err = wireAddress(cfg.Broker); err == nil {
		p.from, err = wireAddress(p.Addr())
	}
	if err != nil || len(p.to) != len(p.from) {
		t.Fatalf("the proxy of %s needs a broker of 127.0.0.1: %v", cfg.Broker, err)
	}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// wireAddress returns a host and a port as Kafka's answers have them.
func wireAddress(address string) ([]byte, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	return binary.BigEndian.AppendUint32([]byte(host), uint32(n)), err
}

// Addr returns where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Fates returns how many requests had each fate.
func (p *Proxy) Fates() map[Fate]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	fates := map[Fate]int{}
	for f, n := range p.fates {
		fates[f] = n
	}
	return fates
}

// Stall has no request and no answer pass, and tells nobody; or lets them pass.
func (p *Proxy) Stall(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.stall == nil:
		p.stall = make(chan struct{})
	case !on && p.stall != nil:
		close(p.stall)
		p.stall = nil
	}
}

// passes waits while the proxy is stalled. It reports whether the proxy goes on.
func (p *Proxy) passes() bool {
	p.mu.Lock()
	stall := p.stall
	p.mu.Unlock()
	if stall == nil {
		return true
	}
	select {
	case <-stall:
		return true
	case <-p.ended:
		return false
	}
}

func (p *Proxy) close() {
	close(p.ended)
	p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// keep registers a connection, so that close ends it.
func (p *Proxy) keep(c net.Conn) (drop func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		c.Close()
		return nil, false
	default:
	}
	p.conns[c] = true
	return func() {
		c.Close()
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
	}, true
}

func (p *Proxy) serve(client net.Conn) {
	drop, ok := p.keep(client)
	if !ok {
		return
	}
	defer drop()
	broker, err := net.Dial("tcp", p.cfg.Broker)
	if err != nil {
		return
	}
	drop, ok = p.keep(broker)
	if !ok {
		return
	}
	defer drop()
	c := &conn{proxy: p, client: client, broker: broker, asked: make(chan asked, 1024)}
	p.running.Go(c.answers)
	c.requests()
}

// A conn is a client's connection and the one to the broker that belongs to it.
type conn struct {
	proxy          *Proxy
	client, broker net.Conn
	asked          chan asked // the requests that the broker has, in order
}

// An asked says what becomes of the answer to a request.
type asked struct {
	swallow bool // it is dropped
	cut     bool // it is dropped, and the client's connection closed
}

// requests forwards requests until a side ends.
func (c *conn) requests() {
	defer close(c.asked)
	defer c.broker.Close()
	for {
		frame, err := read(c.client)
		if err != nil {
			return
		}
		if !c.proxy.passes() {
			return
		}
		fate := Pass
		if topic, ok := produced(frame); ok && topic == c.proxy.cfg.Topic {
			fate = c.proxy.decide()
		}
		if !c.send(frame, fate) {
			return
		}
	}
}

// decide asks for a request's fate and counts it. It lets late ones go whose time has come.
func (p *Proxy) decide() Fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := p.late[:0]
	for _, o := range p.late {
		if o.left--; o.left > 0 {
			waiting = append(waiting, o)
		} else {
			close(o.now)
		}
	}
	p.late = waiting
	f := p.cfg.Fate()
	p.fates[f]++
	return f
}

// send forwards a request. It reports whether the connection goes on.
func (c *conn) send(frame []byte, fate Fate) bool {
	p := c.proxy
	var then []asked
	switch fate {
	case Pass:
		then = []asked{{}}
	case Delay:
		timer := time.NewTimer(p.cfg.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.ended:
			return false
		}
		then = []asked{{}}
	case Lose:
		then = []asked{{cut: true}}
	case Double:
		then = []asked{{}, {swallow: true}}
	case Late:
		now := make(chan struct{})
		p.mu.Lock()
		p.late = append(p.late, overtaken{p.cfg.Later, now})
		p.mu.Unlock()
		c.client.Close()
		select {
		case <-now:
		case <-p.ended:
			return false
		}
		then = []asked{{cut: true}}
	default:
		panic(fmt.Sprintf("appends: unknown fate %d", fate))
	}
	for _, a := range then {
		c.asked <- a
		if _, err := c.broker.Write(frame); err != nil {
			return false
		}
	}
	return true
}

// answers forwards answers until a side ends.
func (c *conn) answers() {
	defer c.client.Close()
	for a := range c.asked {
		frame, err := read(c.broker)
		switch {
		case err != nil, a.cut, !c.proxy.passes():
			return
		case a.swallow:
			continue
		}
		// Only answers that name brokers have this sequence of bytes.
		frame = bytes.ReplaceAll(frame, c.proxy.to, c.proxy.from)
		if _, err := c.client.Write(frame); err != nil {
			return
		}
	}
}

// maxFrame is Kafka's default of socket.request.max.bytes.
const maxFrame = 100 << 20

// read reads a frame: its size in 4 bytes and so many bytes.
func read(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxFrame {
		return nil, errors.New("the frame is too large")
	}
	frame := make([]byte, 4+n)
	copy(frame, size[:])
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// produced returns the first topic of a Produce request. ok is false for other requests and
// for versions that are not known here:
//
//	size 4 · API key 2 = 0 · version 2 · correlation 4 · client id · transactional id, from
//	version 3 on · acks 2 · timeout 4 · number of topics 4 · topic
//
// A string is its length in 2 bytes, negative for none, and its bytes. From version 9 on
// lengths are encoded otherwise.
func produced(frame []byte) (topic string, ok bool) {
	const head = 4 + 2 + 2 + 4
	if len(frame) < head || binary.BigEndian.Uint16(frame[4:]) != 0 {
		return "", false
	}
	version := binary.BigEndian.Uint16(frame[6:])
	if version >= 9 {
		return "", false
	}
	rest := frame[head:]
	text := func() (s string) {
		if len(rest) < 2 {
			return ""
		}
		n := max(0, int(int16(binary.BigEndian.Uint16(rest))))
		rest = rest[2:]
		n = min(n, len(rest))
		s, rest = string(rest[:n]), rest[n:]
		return s
	}
	text()
	if version >= 3 {
		text()
	}
	if len(rest) < 10 {
		return "", false
	}
	rest = rest[10:]
	return text(), true
}
