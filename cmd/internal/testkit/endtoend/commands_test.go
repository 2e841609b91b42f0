package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hamlet/algos/eval"
	"hamlet/stream/embedded"
	"hamlet/stream/servertest"
)

// patience bounds every wait: these machines may be slow.
const patience = 60 * time.Second

// buildFlags are what the commands are built with.
var buildFlags []string

var (
	bin                           string // where the commands were built
	kafkaAddr, natsURL, redisAddr string
	real                          = os.Getenv("HAMLET_KAFKA") != ""
	run                           = strconv.FormatInt(time.Now().UnixNano(), 36) // makes names unique on servers that stay
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "hamlet-bin-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(bin)
	build := exec.Command("go", slices.Concat([]string{"build"}, buildFlags, []string{"-o", bin, "hamlet/cmd/..."})...)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	kafkaAddr, natsURL, redisAddr = os.Getenv("HAMLET_KAFKA"), os.Getenv("HAMLET_NATS"), os.Getenv("HAMLET_REDIS")
	if !real {
		k, err := servertest.StartKafka(servertest.KafkaOptions{})
		if err != nil {
			panic(err)
		}
		defer k.Close()
		n, err := embedded.StartNATS(embedded.NATSOptions{})
		if err != nil {
			panic(err)
		}
		defer n.Close()
		r, err := servertest.StartRedis(servertest.RedisOptions{})
		if err != nil {
			panic(err)
		}
		defer r.Close()
		kafkaAddr, natsURL, redisAddr = k.Addr(), n.URL(), r.Addr()
	}
	if path := os.Getenv("HAMLET_PASSWORDS"); real && path != "" {
		if passwords, err = readPasswords(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	// The commands are configured by flags only, apart from users and passwords.
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "HAMLET_") {
			os.Unsetenv(name)
		}
	}
	return m.Run()
}

// modelName returns a name that only this test uses.
func modelName(t *testing.T) string {
	name := strings.ToLower(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(t.Name(), "-"))
	return name + "-" + run
}

// A process is a command at work.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	done chan struct{}

	mu     sync.Mutex
	stderr bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.Write(b)
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// start runs a command in the background until the test ends.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	return startFrom(t, bin, name, args...)
}

// startFrom is start with a command of another folder.
func startFrom(t *testing.T, folder, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(filepath.Join(folder, name), args...), done: make(chan struct{})}
	grant(t, p.cmd, userOf(name, args))
	p.cmd.Stderr = p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // ProcessState has the result
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s %s said:\n%s", name, strings.Join(args, " "), p.log())
		}
	})
	return p
}

// kill is kill −9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// stop asks the process to end and wants status 0.
func (p *process) stop() { p.t.Helper(); p.stopWith(0) }

// stopWith asks the process to end and wants a status.
func (p *process) stopWith(status int) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s did not end on SIGTERM; it said:\n%s", p.name, p.log())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != status {
		p.t.Fatalf("%s ended with status %d; it said:\n%s", p.name, code, p.log())
	}
}

var (
	serviceHTTP = regexp.MustCompile(`msg=http addr=(\S+)`)
	upHTTP      = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)
)

// httpAddr waits until a service says where it serves HTTP.
func (p *process) httpAddr() string { return p.says(serviceHTTP) }

// knownAddr is httpAddr without waiting: "" if the service has not said it yet.
func (p *process) knownAddr() string {
	if m := serviceHTTP.FindStringSubmatch(p.log()); m != nil {
		return m[1]
	}
	return ""
}

// upHTTP waits until hamlet up says where it serves HTTP.
func (p *process) upHTTP() string { return p.says(upHTTP) }

func (p *process) says(line *regexp.Regexp) string {
	p.t.Helper()
	var addr string
	await(p.t, p.name+" serves HTTP", func() bool {
		select {
		case <-p.done:
			p.t.Fatalf("%s ended; it said:\n%s", p.name, p.log())
		default:
		}
		if m := line.FindStringSubmatch(p.log()); m != nil {
			addr = m[1]
		}
		return addr != ""
	})
	return addr
}

// isActive reports whether a learner is active: after a kill of the one before that takes a second.
func isActive(addr string) bool { return metric(addr, "hamlet_learner_active") == 1 }

// metric returns the sum of a metric over its labels that match, or −1 if the
// process cannot be asked.
func metric(addr, name string, labels ...string) float64 {
	response, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return -1
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return -1
	}
	sum := 0.0
	for line := range strings.Lines(string(body)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		series, rest, _ := strings.Cut(key, "{")
		if !ok || series != name || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(rest, l) }) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return -1
		}
		sum += v
	}
	return sum
}

// await polls a condition that another process will make true.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !done() {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// output runs a command to its end and returns what it prints and its status.
func output(t *testing.T, name string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return runCommand(t, name, args, func(cmd *exec.Cmd) { grant(t, cmd, userOf(name, args)) })
}

// runCommand is output with a change to the command before it starts.
func runCommand(t *testing.T, name string, args []string, change func(*exec.Cmd)) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	change(cmd)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("%s %s: %v, %v\n%s", name, strings.Join(args, " "), err, ctx.Err(), errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// mustOutput is output that wants status 0.
func mustOutput(t *testing.T, name string, args ...string) string {
	t.Helper()
	stdout, stderr, status := output(t, name, args...)
	if status != 0 {
		t.Fatalf("%s %s: status %d\n%s", name, strings.Join(args, " "), status, stderr)
	}
	return stdout
}

// A result is what eval and up print with --json.
type result struct {
	Events      int      `json:"events"`
	Rejected    int      `json:"rejected"`
	ROCA        *float64 `json:"roca"`
	LogLoss     *float64 `json:"log_loss"`
	ModelSHA256 string   `json:"model_sha256"`

	CalibrationSlope *float64           `json:"calibration_slope"`
	Doubtful         int                `json:"doubtful"`
	Sources          []eval.SourceDoubt `json:"doubtful_sources"`
}

func parseResult(t *testing.T, out string) result {
	t.Helper()
	var r result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%q is not a result: %v", out, err)
	}
	return r
}
