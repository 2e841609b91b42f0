package sizing

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hamlet/cmd/internal/lab/product"
)

// A process is one of the services, or a server of the caller's.
type process struct {
	name string
	pid  int
	http string // where a service serves its metrics
	cmd  *exec.Cmd
	log  string

	before usage
}

// A usage is what a process has used since its start.
type usage struct {
	cpu    float64 // seconds of one core
	memory float64 // bytes, resident, at most
}

// start starts a command or a service of hamlet and waits until it is ready, or serves at all if
// ready is false.
func start(ctx context.Context, dir, name string, ready bool, args ...string) (*process, error) {
	hamlet, err := product.Path()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, http: product.FreeAddress(), log: filepath.Join(dir, name+".log")}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = product.Command(ctx, hamlet, name, append([]string{"--http", p.http}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 30 * time.Second
	p.cmd.Env = product.Environment()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.pid = p.cmd.Process.Pid
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	path := "/healthz"
	if ready {
		path = "/readyz"
	}
	for {
		select {
		case err := <-ended:
			said, _ := os.ReadFile(p.log)
			return nil, fmt.Errorf("%s ended before it was ready: %w\n%s", name, errors.Join(err, ctx.Err()),
				bytes.TrimSpace(said))
		case <-time.After(50 * time.Millisecond):
		}
		if response, err := http.Get("http://" + p.http + path); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return p, nil
			}
		}
	}
}

// stop ends a service in order.
func (p *process) stop() {
	if p == nil || p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // start waits for its end
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if p.cmd.Process.Signal(syscall.Signal(0)) != nil {
			return
		}
	}
	_ = p.cmd.Process.Kill()
}

// used reads what a process has used. Without /proc there is an error.
func (p *process) used() (u usage, err error) {
	pid := strconv.Itoa(p.pid)
	fields, err1 := product.Stat(pid)
	status, err2 := os.ReadFile("/proc/" + pid + "/status")
	if err := errors.Join(err1, err2); err != nil {
		return u, fmt.Errorf("what %s uses: %w", p.name, err)
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	u.cpu = (user + system) / product.TicksPerSecond
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "VmHWM:" {
			kib, _ := strconv.ParseFloat(f[1], 64)
			u.memory = kib * 1024
		}
	}
	return u, nil
}

// mark notes what the process has used until now.
func (p *process) mark() (err error) {
	p.before, err = p.used()
	return err
}

// since returns the processor time since mark, and the most memory since the start.
func (p *process) since() (usage, error) {
	u, err := p.used()
	u.cpu -= p.before.cpu
	return u, err
}

// metrics returns the sums of a service's metrics over all labels, by name.
func (p *process) metrics(ctx context.Context) (sums map[string]float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.http+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", p.name, err)
	}
	defer response.Body.Close()
	sums = map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		line := lines.Text()
		name := line[:strings.IndexAny(line+" ", "{ ")]
		if v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64); err == nil && name != "#" {
			sums[name] += v
		}
	}
	return sums, lines.Err()
}

// servers returns the processes that deploy/servers runs in dir.
func servers(dir string) (all []*process) {
	for _, name := range []string{"kafka", "nats", "redis"} {
		text, err := os.ReadFile(filepath.Join(dir, name, "pid"))
		if err != nil {
			continue
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			all = append(all, &process{name: name, pid: pid})
		}
	}
	return all
}
