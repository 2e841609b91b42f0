package bench

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// An externalFilter is another filter behind the commands of the TREC spam track:
// initialize, classify, train, finalize. They run one at a time, in their own
// directory.
type externalFilter struct {
	name    string
	command []string // the adapter and its first arguments
	dir     string
	timeout time.Duration // of one command

	serves bool    // the adapter stays alive
	server *server // nil: not started, or ended

	initialized bool
	// of a server at its end, bytes; of a command the kernel counts that of the program that starts it
	memory int64
}

// newExternalFilter makes the working directory; close removes it.
func newExternalFilter(name string, command []string, timeout time.Duration) (*externalFilter, error) {
	dir, err := os.MkdirTemp("", "hamlet-bench-")
	if err != nil {
		return nil, fmt.Errorf("filter %s: working directory: %w", name, err)
	}
	return &externalFilter{name: name, command: command, dir: dir, timeout: timeout}, nil
}

// adapters are those that hamlet carries: scripts that take the commands of the TREC spam track's
// jig (Cormack and Lynam 2005, "TREC 2005 Spam Track Overview", section 2),
//
//	ADAPTER initialize
//	ADAPTER classify FILE          prints class=spam|ham score=S
//	ADAPTER train spam|ham FILE
//	ADAPTER finalize
//
// each run in the filter's own working directory. FILE is one message. Higher scores mean spam;
// scores in [0, 1] are probabilities.
//
// Some filters take seconds to start. Their adapters, for perl, stay alive: "ADAPTER serve" prints
// "ready", and answers each line "classify FILE" or "train spam|ham FILE" of its standard input by
// a line, the second by "ok". It ends at the end of its input.
//
// The adapter idle does nothing. It starts as many processes as bogofilter's, so its cost is that
// of the jig.
//
//go:embed adapters
var adapters embed.FS

// serve are the adapters that stay alive.
var serve = map[string]bool{"spamassassin": true, "rspamd": true, "vw": true}

// newCarried is newExternalFilter for an adapter of adapters.
func newCarried(name string, timeout time.Duration) (*externalFilter, error) {
	script, err := adapters.ReadFile("adapters/" + name)
	if err != nil {
		return nil, err
	}
	shell := "/bin/sh"
	if serve[name] {
		shell = "/usr/bin/perl"
	}
	o, err := newScript(name, shell, script, timeout)
	if err == nil {
		o.serves = serve[name]
	}
	return o, err
}

// newScript is newExternalFilter for a script.
func newScript(name, shell string, script []byte, timeout time.Duration) (*externalFilter, error) {
	o, err := newExternalFilter(name, nil, timeout)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(o.dir, "adapter")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("filter %s: %w", name, err), o.close())
	}
	o.command = []string{shell, file}
	return o, nil
}

// idleCost measures the CPU time per message of the adapter idle.
func idleCost(ctx context.Context, timeout time.Duration) (cost time.Duration, err error) {
	o, err := newCarried("idle", timeout)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	const times = 20
	m := &message{raw: []byte("\n")}
	for range times {
		_, classify, err := o.classify(ctx, m)
		if err != nil {
			return 0, err
		}
		train, err := o.train(ctx, m)
		if err != nil {
			return 0, err
		}
		cost += classify + train
	}
	return cost / times, nil
}

func (o *externalFilter) initialize(ctx context.Context) (err error) {
	if o.serves {
		o.server, err = o.startServer(ctx)
		return err
	}
	_, _, err = o.run(ctx, "", "initialize")
	return err
}

// finalize runs the filter's command finalize, even after ctx has ended.
func (o *externalFilter) finalize(ctx context.Context) (err error) {
	if o.serves {
		return o.stopServer(ctx)
	}
	_, _, err = o.run(context.WithoutCancel(ctx), "", "finalize")
	return err
}

func (o *externalFilter) close() error { return os.RemoveAll(o.dir) }

// A verdict is a filter's answer about a message.
type verdict struct {
	spam  bool
	score float64 // higher is more spam
}

// classify asks about a message. The duration is CPU time.
func (o *externalFilter) classify(ctx context.Context, m *message) (verdict, time.Duration, error) {
	file, err := o.write(m)
	if err != nil {
		return verdict{}, 0, err
	}
	which := fmt.Sprintf("message %d", m.ordinal+1)
	out, cpu, err := o.do(ctx, which, "classify", file)
	if err != nil {
		return verdict{}, 0, err
	}
	v, err := parseVerdict(out)
	if err != nil {
		return verdict{}, 0, fmt.Errorf("filter %s: %s: classify printed %q: %w", o.name, which, clip(out), err)
	}
	return v, cpu, nil
}

// train teaches the source's label, even a wrong one.
func (o *externalFilter) train(ctx context.Context, m *message) (time.Duration, error) {
	file, err := o.write(m)
	if err != nil {
		return 0, err
	}
	label := "ham"
	if m.taughtSpam {
		label = "spam"
	}
	_, cpu, err := o.do(ctx, fmt.Sprintf("message %d", m.ordinal+1), "train", label, file)
	return cpu, err
}

// write writes the message to a file for the filter.
func (o *externalFilter) write(m *message) (string, error) {
	file := filepath.Join(o.dir, "hamlet-bench-message")
	if err := os.WriteFile(file, m.raw, 0o600); err != nil {
		return "", fmt.Errorf("filter %s: message %d: %w", o.name, m.ordinal+1, err)
	}
	return file, nil
}

// do has the server or a process of its own execute a command.
func (o *externalFilter) do(ctx context.Context, which string, args ...string) ([]byte, time.Duration, error) {
	if !o.serves {
		return o.run(ctx, which, args...)
	}
	out, cpu, err := o.server.ask(ctx, o.timeout, args...)
	switch {
	case ctx.Err() != nil:
		return nil, 0, context.Cause(ctx) // interrupted: the filter is not to blame
	case err != nil:
		err = o.server.fail(err)
		o.server = nil
		return nil, 0, fmt.Errorf("filter %s: %s: %s: %w", o.name, which, args[0], err)
	case args[0] == "train" && string(out) != "ok":
		return nil, 0, fmt.Errorf("filter %s: %s: train printed %q, not ok", o.name, which, clip(out))
	}
	return out, cpu, nil
}

// stopServer ends the server, if there is one. After ctx has ended it has been killed.
func (o *externalFilter) stopServer(ctx context.Context) error {
	if o.server == nil {
		return nil
	}
	memory, err := o.server.stop()
	o.server, o.memory = nil, max(o.memory, memory)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("filter %s: %w", o.name, err)
	}
	return nil
}

// maxOutput is how many bytes of an adapter's stdout or stderr a tail holds.
const maxOutput = 4 << 10

// run executes one command. The duration is the CPU time, user and system, of the
// adapter and of all processes that it waited for.
func (o *externalFilter) run(ctx context.Context, which string, args ...string) ([]byte, time.Duration, error) {
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("no end after %v (--filter-timeout)", o.timeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, o.command[0], append(o.command[1:len(o.command):len(o.command)], args...)...)
	var stdout, stderr tail
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.dir, &stdout, &stderr
	inGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = time.Second // a child of the adapter may hold its output open
	err := cmd.Run()
	if caller.Err() != nil {
		return nil, 0, context.Cause(caller) // interrupted: the filter is not to blame
	}
	if err != nil {
		what := fmt.Sprintf("filter %s: ", o.name)
		if which != "" {
			what += which + ": "
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if said := bytes.TrimSpace(stderr.b); len(said) > 0 {
			return nil, 0, fmt.Errorf("%s%s: %w; it said: %s", what, args[0], err, said)
		}
		return nil, 0, fmt.Errorf("%s%s: %w, and nothing on its standard error", what, args[0], err)
	}
	return stdout.b, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// A tail holds the last maxOutput bytes written.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > maxOutput {
		t.b = append(t.b[:0], t.b[len(t.b)-maxOutput:]...)
	}
	return len(p), nil
}

// parseVerdict reads "class=spam score=0.97" from the last line that is not blank.
// It ignores other words, such as the track's tfile=….
func parseVerdict(out []byte) (verdict, error) {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var v verdict
	var classed, scored bool
	for _, word := range strings.Fields(lines[len(lines)-1]) {
		name, value, _ := strings.Cut(word, "=")
		switch strings.ToLower(name) {
		case "class":
			switch strings.ToLower(value) {
			case "spam":
				v.spam, classed = true, true
			case "ham":
				v.spam, classed = false, true
			default:
				return verdict{}, fmt.Errorf("class %q must be spam or ham", value)
			}
		case "score":
			s, err := strconv.ParseFloat(value, 64)
			if err != nil || math.IsNaN(s) || math.IsInf(s, 0) {
				return verdict{}, fmt.Errorf("score %q is not a finite number", value)
			}
			v.score, scored = s, true
		}
	}
	if !classed || !scored {
		return verdict{}, errors.New("want class=spam|ham score=NUMBER")
	}
	return v, nil
}

// clip shortens what an error quotes.
func clip(b []byte) string {
	const most = 200
	if b = bytes.TrimSpace(b); len(b) > most {
		return strings.ToValidUTF8(string(b[:most]), "") + "…"
	}
	return string(b)
}
