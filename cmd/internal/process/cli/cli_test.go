package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

type grammar struct {
	Kafka []string      `help:"Brokers."`
	Every time.Duration `help:"How often." default:"3s"`
	Count int           `help:"How many." default:"1"`
	Deep  bool          `help:"Whether."`
	Spam  []string      `help:"Paths." sep:"none"`
	Bare  bool          `help:"Print less." env:"-"`
	ProgramFlags
}

// shared are flags of other programs.
type shared struct {
	Redis string `help:"Redis."`
}

func parse(t *testing.T, g *grammar, args ...string) error {
	t.Helper()
	var out, errs bytes.Buffer
	_, err := Parse(Program{Name: "learner", Description: "Learns.", Grammar: g, Shared: &shared{}},
		args, IO{strings.NewReader(""), &out, &errs})
	return err
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hamlet.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The order is flag, variable, the file's section, the file, default.
func TestOrderOfSettings(t *testing.T) {
	file := write(t, "kafka: [a:1, b:2]\nevery: 7s\ncount: 5\ndeep: true\nredis: elsewhere\nspam: [\"a,b\", c]\nlearner:\n  count: 6\nscorer:\n  nats: elsewhere\n")
	for _, c := range []struct {
		name, env string
		args      []string
		want      int
	}{
		{"default", "", nil, 1},
		{"file's section", "", []string{"--config", file}, 6},
		{"variable over file", "8", []string{"--config", file}, 8},
		{"flag over variable", "8", []string{"--config=" + file, "--count", "9"}, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.env != "" {
				t.Setenv("HAMLET_COUNT", c.env)
			}
			var g grammar
			if err := parse(t, &g, c.args...); err != nil {
				t.Fatal(err)
			}
			if g.Count != c.want {
				t.Errorf("count is %d, want %d", g.Count, c.want)
			}
			if len(c.args) > 0 && (len(g.Kafka) != 2 || g.Kafka[1] != "b:2" || g.Every != 7*time.Second || !g.Deep ||
				!slices.Equal(g.Spam, []string{"a,b", "c"})) {
				t.Errorf("the file's other keys came out as %+v", g)
			}
		})
	}
	t.Run("HAMLET_CONFIG", func(t *testing.T) {
		t.Setenv("HAMLET_CONFIG", file)
		var g grammar
		if err := parse(t, &g); err != nil || g.Count != 6 {
			t.Errorf("count is %d, error %v", g.Count, err)
		}
	})
}

// A key that one command takes from a file, and another one only typed, is about the first.
func TestTypedInOneCommand(t *testing.T) {
	var g struct {
		Up struct {
			Spam string
		} `cmd:""`
		Learn struct {
			Spam string `env:"-"`
		} `cmd:""`
		ProgramFlags
	}
	parse := func(command, text string) error {
		_, err := Parse(Program{Name: "hamlet", Grammar: &g}, []string{command, "--config", write(t, text)},
			IO{strings.NewReader(""), io.Discard, io.Discard})
		return err
	}
	for _, text := range []string{"spam: Junk\n", "up:\n  spam: Junk\n"} {
		if err := parse("up", text); err != nil || g.Up.Spam != "Junk" {
			t.Errorf("%q: up takes %q, error %v", text, g.Up.Spam, err)
		}
		if err := parse("learn", text); err != nil || g.Learn.Spam != "" {
			t.Errorf("%q: learn takes %q, error %v", text, g.Learn.Spam, err)
		}
	}
	if err := parse("learn", "learn:\n  spam: Junk\n"); Status(err) != StatusUsage || !strings.Contains(err.Error(), "learn.spam: this is for the command line alone") {
		t.Errorf("a key below learn: %v, want wrong usage", err)
	}
}

// A section of the file is about a command and all below it.
func TestSectionOfACommand(t *testing.T) {
	var g struct {
		Console struct {
			Serve struct {
				Listen string `default:"a:1"`
			} `cmd:"" default:"withargs"`
		} `cmd:""`
		ProgramFlags
	}
	for text, want := range map[string]string{
		"console:\n  listen: b:2\n":                             "b:2",
		"listen: c:3\nconsole:\n  listen: b:2\n":                "b:2",
		"hamlet:\n  listen: e:5\n":                              "e:5",
		"gateway:\n  listen: b:2\n":                             "a:1",
		"scorer: {listen: x}\nhamlet: {listen: e}\nlisten: f:6": "e",
	} {
		_, err := Parse(Program{Name: "hamlet", Grammar: &g}, []string{"console", "--config", write(t, text)},
			IO{strings.NewReader(""), io.Discard, io.Discard})
		if err != nil || g.Console.Serve.Listen != want {
			t.Errorf("%q: listen is %q, error %v; want %q", text, g.Console.Serve.Listen, err, want)
		}
	}
}

func TestMistakesInAFile(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"colour: red\n", "no flag is called colour"},
		{"learner:\n  colour: red\n", "no flag is called learner.colour"},
		{"count: [\n", "hamlet.yaml"},
		{"count: many\n", "--count"},
		{"kafka:\ncount: 3\n", "kafka: there is no value"},
		{"learner:\n  count: ~\n", "learner.count: there is no value"},
		{"bare: true\n", "bare: this is for the command line alone"},
		{"learner:\n  bare: true\n", "learner.bare: this"},
	} {
		var g grammar
		err := parse(t, &g, "--config", write(t, c.text))
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want a usage error with %q", c.text, err, c.want)
		}
	}
	var g grammar
	if err := parse(t, &g, "--config", "/no/such/file"); Status(err) != StatusUsage {
		t.Errorf("a missing file: got %v", err)
	}
}

// A file that holds a password is nobody else's to read.
func TestSecretsInAFile(t *testing.T) {
	for text, secret := range map[string]bool{
		"count: 3\n":                               false,
		"redis: redis:6379\n":                      false,
		"gateway:\n  token: abc\n":                 true,
		"learner:\n  kafka-password: abc\n":        true,
		"up:\n  mail-nats: nats://u:p@n:4222\n":    true,
		"up:\n  nats: nats://n:4222\n":             false,
		"gateway:\n  tokens: /etc/hamlet/t.yaml\n": false,
	} {
		path := write(t, text)
		for mode, open := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			var g grammar
			err := parse(t, &g, "--config", path)
			if refused := err != nil && strings.Contains(err.Error(), "chmod o= "+path); refused != (secret && open) {
				t.Errorf("%q, mode %#o: %v", text, mode, err)
			}
		}
	}
}

// A mapping of the file is passed on in text; its key "name" and a bare value are the
// flag's.
func TestMapping(t *testing.T) {
	type modelled struct {
		Model string `help:"Name." default:"default"`
		ProgramFlags
	}
	read := func(text string) (g modelled, got map[string]string, err error) {
		got = map[string]string{}
		_, err = Parse(Program{Name: "learner", Grammar: &g, Mapping: Mapping{
			Key: "model",
			Set: func(key, value string) error {
				if key == "colour" {
					return errors.New("colour: there is no such key")
				}
				got[key] = value
				return nil
			},
		}}, []string{"--config", write(t, text)}, IO{strings.NewReader(""), io.Discard, io.Discard})
		return g, got, err
	}
	for _, c := range []struct {
		text, name string
		want       map[string]string
	}{
		{"model: mine\n", "mine", map[string]string{}},
		{"learner:\n  model: mine\n", "mine", map[string]string{}},
		{"model:\n  name: mine\n  size: 3\n  deep:\n    list: [a, b]\n    none: []\n    off: true\n    rate: .05\n", "mine",
			map[string]string{"size": "3", "deep.list": "a,b", "deep.none": "none", "deep.off": "true", "deep.rate": "0.05"}},
		{"model: {size: 3}\n", "default", map[string]string{"size": "3"}},
	} {
		g, got, err := read(c.text)
		if err != nil || g.Model != c.name || !maps.Equal(got, c.want) {
			t.Errorf("%q: model %q, settings %v, error %v; want %q, %v", c.text, g.Model, got, err, c.name, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"model: {colour: red}\n", "model: colour: there is no such key"},
		{"model: {size: }\n", "model.size: there is no value"},
	} {
		_, _, err := read(c.text)
		if Status(err) != StatusUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want wrong usage with %q", c.text, err, c.want)
		}
	}
}

// A lost terminal ends a command in order, unless nohup started it.
func TestHangup(t *testing.T) {
	if !slices.Contains(ends(), os.Signal(syscall.SIGHUP)) && !signal.Ignored(syscall.SIGHUP) {
		t.Error("a hangup does not end a command")
	}
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	if slices.Contains(ends(), os.Signal(syscall.SIGHUP)) {
		t.Error("a hangup that is ignored ends a command")
	}
}

type ownStatus int

func (s ownStatus) Error() string { return "own" }
func (s ownStatus) ExitCode() int { return int(s) }

func TestStatus(t *testing.T) {
	var g grammar
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"nothing", nil, 0},
		{"help", parse(t, &g, "--help"), 0},
		{"unknown flag", parse(t, &g, "--bogus"), 2},
		{"bad value", parse(t, &g, "--count", "x"), 2},
		{"failure", errors.New("x"), 1},
		{"its own", ownStatus(3), 3},
	} {
		if got := Status(c.err); got != c.want {
			t.Errorf("%s (%v): status %d, want %d", c.name, c.err, got, c.want)
		}
	}
}

// An interruption is said once; what failed apart from it is said too, and the exit
// status stays.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.Canceled)
	stopped := fmt.Errorf("stopped: %w", context.Cause(ctx))
	for _, c := range []struct {
		err    error
		want   string
		status int
	}{
		{stopped, "interrupted", 1},
		{errors.Join(stopped, nil), "interrupted", 1},
		{errors.Join(errors.Join(stopped), nil), "interrupted", 1},
		{errors.Join(stopped, errors.New("the disk is full")), "interrupted: the disk is full", 1},
		{errors.Join(stopped, ownStatus(3)), "interrupted: own", 3},
		{fmt.Errorf("publish dead letters: %w", context.Canceled), "interrupted: publish dead letters: context canceled", 1},
		{errors.Join(stopped, fmt.Errorf("%w: %w; check the password", errors.New("not authorised"), context.Canceled)),
			"interrupted: not authorised: context canceled; check the password", 1},
	} {
		err := error(&interruptedError{c.err})
		if err.Error() != c.want || Status(err) != c.status {
			t.Errorf("%v: %q, status %d; want %q, %d", c.err, err.Error(), Status(err), c.want, c.status)
		}
	}
}

// A read that cannot be interrupted is given up when the context ends.
func TestQuietInputEndsWithTheContext(t *testing.T) {
	quiet, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r := &interruptible{ctx: ctx, from: quiet}
	done := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(r)
		done <- err
	}()
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestSince(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"": {}, "24h": now.AddDate(0, 0, -1), "0s": now, "2026-11-19T10:00:00Z": now.AddDate(0, 0, -1),
	} {
		if got, err := Since(value, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v", value, got, err, want)
		}
	}
	for _, value := range []string{"-1h", "yesterday", "2026-11-19"} {
		if got, err := Since(value, now); Status(err) != StatusUsage {
			t.Errorf("%q: %v, %v, want wrong usage", value, got, err)
		}
	}
}
