//go:build linux

package embedded

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A hostileServer is an embedded NATS in a process of its own.
type hostileServer struct {
	url     string
	ask     io.Writer
	answers *bufio.Scanner
	process *os.Process
}

const (
	hostileChild = "HAMLET_HOSTILE_CHILD" // the directory of the child's data
	hostileUser  = "hamlet"
	hostilePass  = "secret"
	hostileFiles = 1200 // the child's limit
)

// TestHostileChild is the child: it is no test of its own.
func TestHostileChild(t *testing.T) {
	dir := os.Getenv(hostileChild)
	if dir == "" {
		t.Skip("the others start it")
	}
	limit := syscall.Rlimit{Cur: hostileFiles, Max: hostileFiles}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	n := startTestNATS(t, NATSOptions{Dir: dir, Users: []NATSUser{{Name: hostileUser, Password: hostilePass}},
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	nc, err := nats.Connect("", nats.InProcessServer(n), nats.UserInfo(hostileUser, hostilePass), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64 // files that could not be opened
	var watch sync.WaitGroup
	ended := make(chan struct{})
	watch.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			f, err := os.Open(dir)
			if err != nil {
				refused.Add(1)
				continue
			}
			f.Close()
			runtime.Gosched()
		}
	})
	fmt.Printf("at %s\n", n.URL())
	streams := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "write": // a stream of its own: JetStream opens files
			streams++
			name := fmt.Sprintf("S%d", streams)
			_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name}})
			if err == nil {
				_, err = js.Publish(t.Context(), name, []byte("kept"))
			}
			fmt.Printf("at written %v\n", err)
		case "files":
			open, err := os.ReadDir("/proc/self/fd")
			fmt.Printf("at %d open, %d times refused, %v\n", len(open), refused.Load(), err)
		case "memory": // peak, in kB
			fmt.Printf("at %d\n", peakMemory(t))
		}
	}
	close(ended)
	watch.Wait()
}

// peakMemory returns the process's largest memory so far, in kB.
func peakMemory(t *testing.T) (kB int) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscanf(rest, "%d", &kB); err != nil {
		t.Fatal(err)
	}
	return kB
}

func startHostile(t *testing.T) *hostileServer {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(program, "-test.run=^TestHostileChild$")
	child.Env = append(os.Environ(), hostileChild+"="+t.TempDir())
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	s := &hostileServer{ask: in, answers: bufio.NewScanner(out), process: child.Process}
	t.Cleanup(func() {
		in.Close()
		for s.answers.Scan() {
		}
		if err := child.Wait(); err != nil {
			t.Errorf("the server's process: %v", err)
		}
	})
	s.url = s.answer(t)
	return s
}

func (s *hostileServer) answer(t *testing.T) string {
	t.Helper()
	for s.answers.Scan() {
		if answer, ok := strings.CutPrefix(s.answers.Text(), "at "); ok {
			return answer
		}
		t.Log(s.answers.Text())
	}
	t.Fatal("the server's process has ended")
	return ""
}

func (s *hostileServer) say(t *testing.T, command string) string {
	t.Helper()
	if _, err := fmt.Fprintln(s.ask, command); err != nil {
		t.Fatal(err)
	}
	return s.answer(t)
}

func (s *hostileServer) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// dial connects without a word; the kernel may keep the connection waiting.
func (s *hostileServer) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(s.url, "nats://"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func (s *hostileServer) client(t *testing.T) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.url, nats.UserInfo(hostileUser, hostilePass), nats.Timeout(5*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// More idle connections than the process may open files do not end it. Files can be opened
// all the time, JetStream writes, a client that is connected gets answers, and so does one
// that comes after them.
func TestIdleConnectionsTakeNoFiles(t *testing.T) {
	s := startHostile(t)
	before := s.client(t)
	if _, err := before.Subscribe("ask", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := before.Flush(); err != nil {
		t.Fatal(err)
	}
	const idle = 1500
	s.signal(t, syscall.SIGSTOP) // so that all come at once
	for range idle {
		s.dial(t)
	}
	s.signal(t, syscall.SIGCONT)
	if got := s.say(t, "write"); got != "written <nil>" {
		t.Errorf("JetStream, among %d idle connections: %s", idle, got)
	}
	if _, err := before.Request("ask", []byte("still"), time.Minute); err != nil {
		t.Errorf("a connected client: %v", err)
	}
	t.Logf("%d idle connections, limit %d: %s", idle, hostileFiles, s.say(t, "files"))
	after := s.client(t)
	if _, err := after.Request("ask", []byte("new"), time.Minute); err != nil {
		t.Errorf("a new client: %v", err)
	}
	if got := s.say(t, "write"); got != "written <nil>" {
		t.Errorf("JetStream, after them: %s", got)
	}
	got := s.say(t, "files")
	t.Logf("a new client was served: %s", got)
	if !strings.HasSuffix(got, " 0 times refused, <nil>") {
		t.Errorf("files: %s", got)
	}
}

// Forty clients that send all they can, without a password, cost little memory.
func TestBytesBeforeLoginCostLittle(t *testing.T) {
	const clients, most = 40, 32 << 10 // kB
	s := startHostile(t)
	if got := s.say(t, "write"); got != "written <nil>" {
		t.Fatal(got)
	}
	long := strings.Repeat("A", 1<<16)
	spaces := strings.Repeat(" ", 1<<16)
	hello := "\x16\x03\x01\xff\xff\x01\x00\xff\xfb\x03\x03" + long // a TLS hello without an end
	var before, after int
	if _, err := fmt.Sscan(s.say(t, "memory"), &before); err != nil {
		t.Fatal(err)
	}
	for name, chunk := range map[string]string{
		"a line without an end":    "CONNECT " + long,
		"spaces":                   "CONNECT " + spaces,
		"a CONNECT of many fields": `CONNECT {"a":[` + strings.Repeat(`{"a":1},`, 400),
		"a wrong password":         `CONNECT {"user":"` + strings.Repeat("u", 3000) + `","pass":"x","name":"n"}` + "\r\n",
		"PING":                     strings.Repeat("PING\r\n", 10000),
		"PUB":                      "PUB a 1048576\r\n" + long,
		"SUB":                      strings.Repeat("SUB a 1\r\n", 8000),
		"a TLS hello":              hello,
		"HTTP":                     "GET / HTTP/1.1\r\nX: " + long,
		"zeros":                    strings.Repeat("\x00", 1<<16),
	} {
		var sending sync.WaitGroup
		var sent atomic.Int64
		for range clients {
			conn, chunk := s.dial(t), chunk
			sending.Go(func() {
				defer conn.Close()
				// As much as the server takes, and at most 4 MiB. The server ends most earlier.
				for total := 0; total < 4<<20; {
					n, err := io.WriteString(conn, chunk)
					total += n
					sent.Add(int64(n))
					if err != nil {
						return
					}
					if name == "spaces" {
						chunk = spaces // no second CONNECT
					}
				}
			})
		}
		sending.Wait()
		if _, err := fmt.Sscan(s.say(t, "memory"), &after); err != nil {
			t.Fatal(err)
		}
		t.Logf("%-25s %4d MB sent, peak +%5.1f MB", name, sent.Load()>>20, float64(after-before)/1024)
	}
	if after-before > most && !raced { // the race detector takes memory of its own
		t.Errorf("%d connections before login cost %d kB more, want at most %d", clients, after-before, most)
	}
	nc := s.client(t)
	if err := nc.Flush(); err != nil {
		t.Error(err)
	}
}
