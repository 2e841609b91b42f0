package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/emersion/go-milter"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/lab/product"
	"hamlet/cmd/internal/process/cli"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// Latency holds the flags of `hamlet-lab bench latency`.
type Latency struct {
	Labelled

	Teach    int    `help:"Teach the first N messages." default:"1000" placeholder:"N"`
	Ask      int    `help:"Then ask about N further ones, each by every way." default:"300" placeholder:"N"`
	Programs string `help:"Look for programs here too, before PATH." type:"existingdir" placeholder:"DIR"`
}

// Help is shown by kong below the flags.
func (Latency) Help() string {
	return `Examples:
  go build -o bin/ ./cmd/...
  bin/hamlet-lab bench latency --programs bin --index index.csv corpus.tar.gz

How long does one message wait for its verdict? A hamlet up is taught in a process of its own,
with its doors open. Each message then goes through every way in turn, so that all see the same
noise: one after the other, one at a time. A program is timed from its start to its end; a
protocol from the connection, which the milter and spamd's door open for each message, to the
answer. spamc and bogofilter are left out where they are not installed.`
}

// A way asks about one message and returns when it has the answer.
type way struct {
	name  string
	ask   func(ctx context.Context, message []byte) error
	times []time.Duration
}

// Run teaches, asks and prints the table.
func (c *Latency) Run(ctx context.Context, stdio cli.IO) (err error) {
	if c.Teach < 1 || c.Ask < 1 {
		return cli.Usagef("--teach and --ask must be at least 1")
	}
	src, err := source.Open(c.config(stdio, source.FlipFlags{}))
	if err != nil {
		return err
	}
	defer src.Close()
	dir, err := os.MkdirTemp("", "hamlet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	taught, asked, err := c.split(ctx, src)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running, err := startUp(ctx, dir, taught)
	if running != nil {
		defer func() {
			stop()
			<-running.ended
		}()
	}
	if err != nil {
		return err
	}
	ways, err := c.ways(ctx, dir, running, taught)
	if err != nil {
		return err
	}
	for _, message := range asked[:min(10, len(asked))] { // caches, and the first connection
		for i := range ways {
			if err := ways[i].ask(ctx, message); err != nil {
				return fmt.Errorf("%s: %w", ways[i].name, err)
			}
		}
	}
	for _, message := range asked {
		for i := range ways {
			start := time.Now()
			err := ways[i].ask(ctx, message)
			ways[i].times = append(ways[i].times, time.Since(start))
			if err != nil {
				return fmt.Errorf("%s: %w", ways[i].name, err)
			}
		}
	}
	return latencies(ways).section().Print(stdio.Out)
}

// split returns the events to teach and the mails to ask about.
func (c *Latency) split(ctx context.Context, src *source.Source) (taught []stream.Event, asked [][]byte, err error) {
	for item, err := range src.Events() {
		var rejection *source.Rejection
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case errors.As(err, &rejection):
			continue
		case err != nil:
			return nil, nil, err
		case item.Event.Body.Kind != stream.Mail:
			return nil, nil, cli.Usagef("the source must be mail: the ways pass messages")
		case len(taught) < c.Teach:
			taught = append(taught, item.Event)
		default:
			asked = append(asked, item.Event.Body.Mail)
		}
		if len(asked) == c.Ask {
			break
		}
	}
	if len(asked) == 0 {
		return nil, nil, fmt.Errorf("the source has no more than %d messages: teach fewer with --teach", c.Teach)
	}
	return taught, asked, nil
}

// A runningUp is a hamlet up with its doors open.
type runningUp struct {
	*service
	hamlet                    string // its path
	nats                      string // host:port
	spamdSocket, milterSocket string // paths
}

// startUp starts a hamlet up and returns when it has learnt the events. It ends with ctx.
func startUp(ctx context.Context, dir string, taught []stream.Event) (*runningUp, error) {
	hamlet, err := product.Path()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "taught.jsonl")
	var lines []byte
	for i := range taught {
		if lines, err = taught[i].AppendJSON(lines); err != nil {
			return nil, err
		}
		lines = append(lines, '\n')
	}
	if err := os.WriteFile(file, lines, 0o600); err != nil {
		return nil, err
	}
	r := &runningUp{hamlet: hamlet, nats: product.FreeAddress(),
		spamdSocket: filepath.Join(dir, "spamd.sock"), milterSocket: filepath.Join(dir, "milter.sock")}
	if r.service, err = startService(ctx, dir, "up", "/healthz", "--open", "--listen-nats", r.nats,
		"--spamd", "unix:"+r.spamdSocket, "--milter", "unix:"+r.milterSocket, "--save-every", "1s",
		"--format", "jsonl", file); err != nil {
		return nil, err
	}
	_, err = r.learnt(ctx, http.DefaultClient, len(taught))
	return r, err
}

// ways returns all ways that there are on this machine.
func (c *Latency) ways(ctx context.Context, dir string, r *runningUp, taught []stream.Event) ([]way, error) {
	conn, err := nats.Connect(nats.Config{URL: "nats://" + r.nats})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, conn.Close)
	client, err := nats.NewClient(conn, "")
	if err != nil {
		return nil, err
	}
	ways := []way{
		{name: "NATS, one connection", ask: func(ctx context.Context, message []byte) error {
			_, err := client.Ask(ctx, questions.Question{Body: message, ContentType: questions.Mail})
			return err
		}},
		{name: "HTTP, one connection", ask: r.askHTTP},
		{name: "spamd's protocol, a connection each", ask: r.askSpamd},
		{name: "milter, a connection each", ask: r.askMilter},
		{name: "hamlet score", ask: program(r.hamlet, []string{"score", "--server", "nats://" + r.nats, "-"}, "p = ")},
	}
	for _, p := range []struct {
		name, file string
		args       []string
		want       string
	}{
		{"spamc", "spamc", []string{"-U", r.spamdSocket}, "X-Hamlet: "},
		{"spamc -c", "spamc", []string{"-c", "-U", r.spamdSocket}, "/5.0"},
	} {
		if path := c.find(p.file); path != "" {
			ways = append(ways, way{name: p.name, ask: program(path, p.args, p.want)})
		}
	}
	if path := c.find("bogofilter"); path != "" {
		home := filepath.Join(dir, "bogofilter")
		if err := teachBogofilter(ctx, path, home, taught); err != nil {
			return nil, err
		}
		ways = append(ways, way{name: "bogofilter -p",
			ask: program(path, []string{"-d", home, "-p", "-e"}, "X-Bogosity: ")})
	}
	return ways, nil
}

// find returns the path of a program, or nothing.
func (c *Latency) find(name string) string {
	if c.Programs != "" {
		if path, err := filepath.Abs(filepath.Join(c.Programs, name)); err == nil {
			if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
				return path
			}
		}
	}
	path, _ := exec.LookPath(name)
	return path
}

// program asks by starting a program, which must print want.
func program(path string, args []string, want string) func(context.Context, []byte) error {
	return func(ctx context.Context, message []byte) error {
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Stdin = bytes.NewReader(message)
		out, err := cmd.CombinedOutput()
		var status *exec.ExitError // spamc -c says by it what is spam
		if err != nil && !errors.As(err, &status) {
			return err
		}
		if !bytes.Contains(out, []byte(want)) {
			return fmt.Errorf("no %q in its answer (%v):\n%.200s", want, err, out)
		}
		return nil
	}
}

// teachBogofilter makes a list of words of what hamlet was taught.
func teachBogofilter(ctx context.Context, path, home string, taught []stream.Event) error {
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	for label, flag := range map[stream.Label]string{stream.Spam: "-s", stream.Ham: "-n"} {
		var mbox bytes.Buffer
		for i := range taught {
			if taught[i].Label == label {
				mbox.WriteString("From x Thu Jan  1 00:00:00 1970\n")
				mbox.Write(bytes.ReplaceAll(taught[i].Body.Mail, []byte("\nFrom "), []byte("\n>From ")))
				mbox.WriteString("\n\n")
			}
		}
		cmd := exec.CommandContext(ctx, path, "-d", home, flag, "-M")
		cmd.Stdin = &mbox
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("teach bogofilter: %w\n%s", err, out)
		}
	}
	return nil
}

func (r *runningUp) askHTTP(ctx context.Context, message []byte) error {
	status, said, err := product.Post(ctx, http.DefaultClient, "http://"+r.http+"/v1/score", questions.Mail, "", message)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", status, said)
	}
	return err
}

func (r *runningUp) askSpamd(_ context.Context, message []byte) error {
	conn, err := net.Dial("unix", r.spamdSocket)
	if err != nil {
		return err
	}
	defer conn.Close()
	request := net.Buffers{fmt.Appendf(nil, "CHECK SPAMC/1.5\r\nContent-length: %d\r\n\r\n", len(message)), message}
	if _, err := request.WriteTo(conn); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && !bytes.Contains(answer, []byte("\r\nSpam: ")) {
		err = fmt.Errorf("no verdict: %q", answer)
	}
	return err
}

func (r *runningUp) askMilter(_ context.Context, message []byte) error {
	client := milter.NewClientWithOptions("unix", r.milterSocket, milter.ClientOptions{
		ActionMask: milter.OptAddHeader | milter.OptChangeHeader | milter.OptQuarantine | milter.OptChangeFrom |
			milter.OptAddRcpt | milter.OptRemoveRcpt | milter.OptChangeBody,
	})
	defer client.Close()
	session, err := client.Session()
	if err != nil {
		return err
	}
	defer session.Close()
	message = bytes.ReplaceAll(message, []byte("\r\n"), []byte("\n"))
	head, body, _ := bytes.Cut(message, []byte("\n\n"))
	fields, _ := textproto.NewReader(bufio.NewReader(
		bytes.NewReader(append(slices.Clone(head), "\n\n"...)))).ReadMIMEHeader()
	if _, err := session.Conn("localhost", milter.FamilyInet, 25, "127.0.0.1"); err != nil {
		return err
	}
	if _, err := session.Helo("localhost"); err != nil {
		return err
	}
	if _, err := session.Mail("<a@example.org>", nil); err != nil {
		return err
	}
	if _, err := session.Rcpt("<b@example.org>", nil); err != nil {
		return err
	}
	for name, values := range fields {
		for _, value := range values {
			if _, err := session.HeaderField(name, value); err != nil {
				return err
			}
		}
	}
	if _, err := session.HeaderEnd(); err != nil {
		return err
	}
	marks, _, err := session.BodyReadFrom(bytes.NewReader(bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n"))))
	if err == nil && len(marks) == 0 {
		err = errors.New("the message passed unmarked")
	}
	return err
}

// latencies are the ways with their times.
type latencies []way

// section has the medians and the 99th percentiles.
func (l latencies) section() *experiment.Section {
	t := experiment.Table{Right: true, Head: [][]string{{"way", "median ms", "99 % ms", "messages"}}}
	for _, way := range l {
		slices.Sort(way.times)
		n := len(way.times)
		t.Addf("%s\t%.2f\t%.2f\t%d", way.name, milliseconds(way.times[n/2]),
			milliseconds(way.times[min(n-1, n*99/100)]), n)
	}
	return &experiment.Section{Table: t}
}
