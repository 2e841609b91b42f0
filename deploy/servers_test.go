package deploy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait: these machines may be slow.
const patience = 30 * time.Second

// The test binary under the name of a server is that server: it answers what
// deploy/servers asks for, on the port in its configuration. Under the names of mvn and
// go it provides what the script fetches with them.
func TestMain(m *testing.M) {
	switch name, _, _ := strings.Cut(filepath.Base(os.Args[0]), "-"); name {
	case "java", "redis", "nats":
		os.Exit(pretend(name, os.Args[1:]))
	case "mvn":
		for _, arg := range os.Args {
			if libs, ok := strings.CutPrefix(arg, "-DoutputDirectory="); ok {
				exitOn(os.Mkdir(libs, 0o700))
			}
		}
		os.Exit(0)
	case "go":
		self, err := os.Executable()
		exitOn(err)
		exitOn(os.Symlink(self, filepath.Join(os.Getenv("GOBIN"), "nats-server")))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var portInConfig = regexp.MustCompile(`(?m)^(?:port |listen: "127\.0\.0\.1:|listeners=\w+://127\.0\.0\.1:)(\d+)`)

// pretend is a server until SIGTERM. The one that FAKE_MUTE names runs and does not
// answer.
func pretend(name string, args []string) int {
	last := args[len(args)-1]
	switch {
	case last == "-version":
		fmt.Fprintln(os.Stderr, `openjdk version "17.0.15"`)
		return 0
	case last == "--version":
		fmt.Println("nats-server: v2.15.2")
		return 0
	case strings.HasPrefix(last, "@"): // formats Kafka's directory
		return 0
	}
	config, err := os.ReadFile(last)
	exitOn(err)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	if os.Getenv("FAKE_MUTE") != name {
		l, err := net.Listen("tcp", "127.0.0.1:"+string(portInConfig.FindSubmatch(config)[1]))
		exitOn(err)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					if name == "redis" {
						_, _ = bufio.NewReader(conn).ReadString('\n') // PING
						fmt.Fprint(conn, "+PONG\r\n")
						return
					}
					fmt.Fprint(conn, "INFO {}\r\n")
				}()
			}
		}()
	}
	<-stop
	return 0
}

// A rig is a directory for deploy/servers, with programs that pretend to be servers.
type rig struct {
	t   *testing.T
	dir string
	env []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	for _, program := range []string{"bash", "ps", "nohup"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	bin, dir := filepath.Join(root, "bin"), filepath.Join(root, "dir")
	for _, d := range []string{bin, dir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"java", "redis-server", "mvn", "go"} {
		if err := os.Symlink(self, filepath.Join(bin, program)); err != nil {
			t.Fatal(err)
		}
	}
	kafka := ports(t, 4)
	r := &rig{t: t, dir: dir}
	r.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+filepath.Join(root, "cache"),
		"START_TIMEOUT=30", "JAVA=java", "GORACE=atexit_sleep_ms=0", fmt.Sprint("KAFKA_PORT=", kafka), fmt.Sprint("NATS_PORT=", kafka+2), fmt.Sprint("REDIS_PORT=", kafka+3))
	t.Cleanup(func() { r.run("stop", r.dir) })
	return r
}

var (
	portsMu  sync.Mutex
	nextPort = 11000 + os.Getpid()%1000*10 // below those that systems give to outgoing connections
)

// ports returns the first of n neighbouring ports that are free and that no other test
// of this process gets.
func ports(t *testing.T, n int) int {
	t.Helper()
	portsMu.Lock()
	defer portsMu.Unlock()
	first := nextPort
	for nextPort < first+n {
		if first > 30000 {
			t.Fatal("no ports are free")
		}
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", nextPort))
		nextPort++
		if err != nil {
			first = nextPort
			continue
		}
		l.Close()
	}
	return first
}

func (r *rig) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command("bash", append([]string{"./servers"}, args...)...)
	cmd.Env = r.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// A server that outlives the script must not hold its output open for ever.
	cmd.WaitDelay = patience
	return cmd, &out
}

func (r *rig) run(args ...string) (string, int) {
	cmd, out := r.command(args...)
	_ = cmd.Run() // ProcessState has the result
	return out.String(), cmd.ProcessState.ExitCode()
}

func (r *rig) mustRun(args ...string) string {
	r.t.Helper()
	out, status := r.run(args...)
	if status != 0 {
		r.t.Fatalf("servers %v: status %d\n%s", args, status, out)
	}
	return out
}

// port returns the value of a variable in the script's environment.
func (r *rig) port(variable string) string {
	for _, v := range r.env {
		if value, ok := strings.CutPrefix(v, variable+"="); ok {
			return value
		}
	}
	r.t.Fatalf("no %s", variable)
	return ""
}

// pid returns the process that the script noted for a server, 0 if there is none.
func (r *rig) pid(server string) int {
	b, err := os.ReadFile(filepath.Join(r.dir, server, "pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// processes returns the command lines of all processes that name the rig's directory,
// except the script's own.
func (r *rig) processes() (found []string) {
	r.t.Helper()
	out, err := exec.Command("ps", "-A", "-ww", "-o", "stat=,args=").Output()
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, r.dir+"/") && !strings.HasPrefix(line, "Z") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// A start that fails leaves none of its servers behind, and those that ran before it run
// on.
func TestStartThatFailsStopsWhatItStarted(t *testing.T) {
	t.Parallel()
	t.Run("a port is taken", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		l, err := net.Listen("tcp", "127.0.0.1:"+r.port("KAFKA_PORT"))
		if err != nil {
			t.Skip(err) // another program was faster
		}
		out, status := r.run("start", r.dir)
		if status != 1 || !strings.Contains(out, "is taken by another program") {
			t.Errorf("status %d, %s", status, out)
		}
		if left := r.processes(); len(left) > 0 {
			t.Errorf("the failed start left %q", left)
		}
		// Once the port is free, the same command starts all.
		l.Close()
		if out := r.mustRun("start", r.dir); !strings.Contains(out, "export HAMLET_REDIS=") {
			t.Errorf("start says %s", out)
		}
		if got := r.processes(); len(got) != 3 {
			t.Errorf("%d servers run, want 3: %q", len(got), got)
		}
	})
	t.Run("a server does not answer", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		// Redis ran before.
		r.mustRun("start", r.dir)
		r.mustRun("kill", "kafka", r.dir)
		r.mustRun("kill", "nats", r.dir)
		redis := r.pid("redis")
		r.env = append(r.env, "FAKE_MUTE=java", "START_TIMEOUT=1")
		out, status := r.run("start", r.dir)
		if status != 1 || !strings.Contains(out, "kafka does not answer") {
			t.Errorf("status %d, %s", status, out)
		}
		left := r.processes()
		if len(left) != 1 || !strings.Contains(left[0], "redis.conf") || r.pid("redis") != redis {
			t.Errorf("after the failed start %q run, want the redis of before, process %d", left, redis)
		}
	})
	for _, interrupt := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run("it gets "+interrupt.String(), func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(interrupt) {
				t.Skip("this process ignores it, and so would the script")
			}
			r := newRig(t)
			r.env = append(r.env, "FAKE_MUTE=java")
			cmd, out := r.command("start", r.dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(patience); r.pid("kafka") == 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
					t.Fatalf("kafka was not started; the script said:\n%s", out)
				}
			}
			if err := cmd.Process.Signal(interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // ProcessState has the result
			if got, want := cmd.ProcessState.ExitCode(), 128+int(interrupt); got != want {
				t.Errorf("status %d, want %d\n%s", got, want, out)
			}
			if left := r.processes(); len(left) > 0 {
				t.Errorf("the interrupted start left %q", left)
			}
		})
	}
}
