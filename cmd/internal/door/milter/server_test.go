package milter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-milter"
	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
	"hamlet/stream/questions"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A fake is a scoring service. It remembers what it was asked.
type fake struct {
	mu     sync.Mutex
	p      map[string]float64 // by tenant; others have .5
	err    error
	asked  []string // tenants
	bodies []string
}

func (f *fake) Ask(_ context.Context, q questions.Question) ([]stream.Verdict, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked, f.bodies = append(f.asked, q.Tenant), append(f.bodies, string(q.Body))
	if q.Door != "milter" || q.ContentType != questions.Mail {
		return nil, fmt.Errorf("asked by %q with %q", q.Door, q.ContentType)
	}
	if f.err != nil {
		return nil, f.err
	}
	p, ok := f.p[q.Tenant]
	if !ok {
		p = .5
	}
	v := stream.Verdict{P: p, Decision: stream.DecideUnsure, Interval: [2]float64{p, p}, Margin: min(0, p-.9)}
	switch {
	case p >= .9:
		v.Decision = stream.DecideSpam
	case p <= .1:
		v.Decision = stream.DecideHam
	}
	v.Model.Name, v.Model.SHA256 = "default", "0123456789abcdef"
	return []stream.Verdict{v}, nil
}

func (f *fake) Info(context.Context) (stream.Info, error) { return stream.Info{}, nil }

// last returns the last body that the service was asked about.
func (f *fake) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.bodies) == 0 {
		return ""
	}
	return f.bodies[len(f.bodies)-1]
}

// A testDoor is an open door.
type testDoor struct {
	addr     string // of a Unix socket
	client   *fake
	server   *Server
	registry *prometheus.Registry
	stop     func() // ends Serve and waits for it
	close    func() // the same, for the address of listen
}

// open opens a door with a fake service. The gateway's Client and Registerer are set here.
func open(t testing.TB, gw gateway.Config, cfg Config, p map[string]float64) *testDoor {
	t.Helper()
	d := &testDoor{client: &fake{p: p}, registry: prometheus.NewRegistry()}
	gw.Asker, gw.Registerer = d.client, d.registry
	gw.Deadline, gw.Memory = cmp.Or(gw.Deadline, 2*time.Second), cmp.Or(gw.Memory, 256<<20)
	g, err := gateway.New(gw)
	if err != nil {
		t.Fatal(err)
	}
	door := g.Door("milter")
	d.server = New(door, cfg)
	d.addr = filepath.Join(t.TempDir(), "milter")
	l, err := gateway.Listen("unix:"+d.addr, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- door.Serve(ctx, l, d.server.Handle) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.stop)
	return d
}

// metric returns the sum of a metric over its labels that have value among them.
func (d *testDoor) metric(t testing.TB, name, value string) (sum float64) {
	t.Helper()
	families, err := d.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "hamlet_gateway_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			matches := value == ""
			for _, l := range m.GetLabel() {
				matches = matches || l.GetValue() == value
			}
			if matches {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// A mailServer speaks the protocol's other half, byte for byte.
type mailServer struct {
	t        testing.TB
	conn     net.Conn
	version  uint32
	actions  milter.OptAction
	protocol milter.OptProtocol
}

const (
	allActions  milter.OptAction   = 0x1ff
	allProtocol milter.OptProtocol = 0x1fffff
	oldActions  milter.OptAction   = 0x3f // of version 2
	oldProtocol milter.OptProtocol = 0x7f
)

// dial connects and negotiates version 6, with all that Postfix offers.
func (d *testDoor) dial(t testing.TB) *mailServer {
	t.Helper()
	return d.dialAs(t, 6, allActions, allProtocol)
}

func (d *testDoor) dialAs(t testing.TB, version uint32, actions milter.OptAction, protocol milter.OptProtocol) *mailServer {
	t.Helper()
	conn, err := net.Dial("unix", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return negotiate(t, conn, version, actions, protocol)
}

func negotiate(t testing.TB, conn net.Conn, version uint32, actions milter.OptAction, protocol milter.OptProtocol) *mailServer {
	t.Helper()
	s := &mailServer{t: t, conn: conn}
	var offer []byte
	for _, v := range []uint32{version, uint32(actions), uint32(protocol)} {
		offer = binary.BigEndian.AppendUint32(offer, v)
	}
	s.send('O', offer)
	code, data := s.receive()
	if code != 'O' || len(data) != 12 {
		t.Fatalf("negotiation answered with %q of %d bytes", code, len(data))
	}
	s.version = binary.BigEndian.Uint32(data)
	s.actions = milter.OptAction(binary.BigEndian.Uint32(data[4:]))
	s.protocol = milter.OptProtocol(binary.BigEndian.Uint32(data[8:]))
	if s.version != version || s.actions&^actions != 0 || s.protocol&^protocol != 0 {
		t.Fatalf("offered version %d, %x, %x; got %d, %x, %x", version, actions, protocol, s.version, s.actions, s.protocol)
	}
	return s
}

func frame[D string | []byte](code byte, data D) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)+1))
	return append(append(b, code), data...)
}

func (s *mailServer) send(code byte, data []byte) {
	s.t.Helper()
	s.raw(frame(code, data))
}

func (s *mailServer) raw(b []byte) {
	s.t.Helper()
	if _, err := s.conn.Write(b); err != nil {
		s.t.Fatal(err)
	}
}

func (s *mailServer) receive() (code byte, data []byte) {
	s.t.Helper()
	code, data, err := s.tryReceive()
	if err != nil {
		s.t.Fatal(err)
	}
	return code, data
}

func (s *mailServer) tryReceive() (code byte, data []byte, err error) {
	_ = s.conn.SetReadDeadline(time.Now().Add(time.Minute))
	var head [5]byte
	if _, err := io.ReadFull(s.conn, head[:]); err != nil {
		return 0, nil, err
	}
	data = make([]byte, binary.BigEndian.Uint32(head[:])-1)
	_, err = io.ReadFull(s.conn, data)
	return head[4], data, err
}

// command sends a command and waits for "continue", unless none was agreed.
func (s *mailServer) command(code byte, silent milter.OptProtocol, data string) {
	s.t.Helper()
	s.send(code, []byte(data))
	if silent != 0 && s.protocol&silent != 0 {
		return
	}
	if got, _ := s.receive(); got != 'c' {
		s.t.Fatalf("%q was answered with %q", code, got)
	}
}

// A delivery is what becomes of a message.
type delivery struct {
	header      []field // as the mail server would store it
	answer      byte
	reply       string
	quarantined bool
	changes     int
}

func (d delivery) String() string {
	var b strings.Builder
	for _, f := range d.header {
		fmt.Fprintf(&b, "%s:%s\n", f.name, f.value)
	}
	return b.String()
}

// deliver shows a message, whose lines end in "\n", to several recipients.
func (s *mailServer) deliver(message string, recipients ...string) delivery {
	s.t.Helper()
	s.command('M', milter.OptNoMailReply, "<sender@example.com>\x00")
	for _, r := range recipients {
		s.command('R', milter.OptNoRcptReply, "<"+r+">\x00")
	}
	header := s.content(message)
	return s.end(header, nil)
}

// content sends the content but for its end, as Postfix does, and returns the header.
func (s *mailServer) content(message string) []field {
	s.t.Helper()
	head, body, hasBody := strings.Cut(message, "\n\n")
	head = strings.TrimSuffix(head, "\n")
	var header []field
	for line := range strings.SplitSeq(head, "\n") {
		if line != "" && strings.ContainsAny(line[:1], " \t") {
			header[len(header)-1].value += "\n" + line
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		header = append(header, field{name, value})
	}
	for _, f := range header {
		value := f.value
		if s.protocol&milter.OptHeaderLeadingSpace == 0 {
			value = strings.TrimPrefix(value, " ")
		}
		s.command('L', milter.OptNoHeaderReply, strings.TrimRight(f.name, " ")+"\x00"+value+"\x00")
	}
	s.command('N', milter.OptNoEOHReply, "")
	if hasBody {
		rest := strings.ReplaceAll(body, "\n", "\r\n")
		for len(rest) > 0 {
			n := min(len(rest), milter.MaxBodyChunk)
			s.command('B', milter.OptNoBodyReply, rest[:n])
			rest = rest[n:]
		}
	}
	return header
}

// end ends the message and does to the header what the door says, as Postfix does.
func (s *mailServer) end(header []field, last []byte) delivery {
	s.t.Helper()
	s.send('E', last)
	d := delivery{header: header}
	for {
		code, data := s.receive()
		switch code {
		case 'a', 'c':
			d.answer = code
			return d
		case 'y':
			d.answer, d.reply = code, string(bytes.TrimSuffix(data, []byte{0}))
			return d
		case 'q':
			d.quarantined = true
		case 'h', 'i', 'm':
			d.changes++
			if err := d.change(code, data, s.protocol&milter.OptHeaderLeadingSpace != 0); err != nil {
				s.t.Fatal(err)
			}
		default:
			s.t.Fatalf("the end of a message was answered with %q", code)
		}
	}
}

// change applies a change of the header.
func (d *delivery) change(code byte, data []byte, leading bool) error {
	index := 0
	if code != 'h' {
		index, data = int(binary.BigEndian.Uint32(data)), data[4:]
	}
	parts := strings.Split(string(data), "\x00")
	if len(parts) != 3 || parts[2] != "" || parts[0] == "" {
		return fmt.Errorf("change %q: %q is not a name and a value", code, data)
	}
	name, value := parts[0], parts[1]
	if strings.Contains(value, "\r") {
		return fmt.Errorf("a value holds a carriage return: %q", value)
	}
	if !leading && value != "" {
		value = " " + value
	}
	switch code {
	case 'h':
		d.header = append(d.header, field{name, value})
	case 'i':
		d.header = slices.Insert(d.header, min(index, len(d.header)), field{name, value})
	case 'm':
		for i, f := range d.header {
			if !strings.EqualFold(strings.TrimRight(f.name, " "), name) {
				continue
			}
			if index--; index > 0 {
				continue
			}
			if value == "" {
				d.header = slices.Delete(d.header, i, i+1)
			} else {
				d.header[i] = field{name, value}
			}
			return nil
		}
		return errors.New("no such field: " + name)
	}
	return nil
}

// listen opens the door at another address too, where programs of other users reach it.
func (d *testDoor) listen(t testing.TB, addr string) string {
	t.Helper()
	l, err := gateway.Listen(addr, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.server.door.Serve(ctx, l, d.server.Handle) }()
	d.close = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.close)
	return l.Addr().String()
}
