package filter_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"hamlet/cmd/internal/filter"
	"hamlet/cmd/internal/filter/filtertest"
	"hamlet/stream/mail"
)

const patient = 30 * time.Second // for an answer that comes

const (
	plain = "Received: by a\n\tfor b\nSubject: minutes\nX-Spam-Flag: NO\n\nHello,\n\nFrom here on: nothing.\n"
	mbox  = "From a@example.org Mon Jan  1 00:00:00 2024\n" + plain
)

func config(addr string) filter.Config { return filter.Config{Addr: addr, Timeout: patient} }

// pass runs the filter and returns what came out.
func pass(t *testing.T, cfg filter.Config, message string) (out string, unmarked error) {
	t.Helper()
	var b bytes.Buffer
	unmarked, err := filter.Run(cfg, strings.NewReader(message), &b)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), unmarked
}

func TestMarked(t *testing.T) {
	t.Parallel()
	addr := filtertest.Start(t, filtertest.Serve)
	for name, message := range map[string]string{
		"plain":       plain,
		"mbox":        mbox,
		"CRLF":        strings.ReplaceAll(plain, "\n", "\r\n"),
		"no body":     "Subject: x\n\n",
		"NUL":         "Subject: \x00\xff\n\n\x00\r\r\n\xfe",
		"long body":   plain + strings.Repeat("x\n", 1<<20),
		"empty first": "\nno header\n",
	} {
		out, unmarked := pass(t, config(addr), message)
		if want := string(filtertest.Marked([]byte(message))); out != want || unmarked != nil {
			t.Errorf("%s: %v, got %.300q, want %.300q", name, unmarked, out, want)
		}
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	got := make(chan filtertest.Request, 1)
	addr := filtertest.Start(t, func(conn net.Conn) {
		request, err := filtertest.Read(conn)
		if err != nil {
			t.Error(err)
		}
		got <- request
		filtertest.Answer(conn, filtertest.Header(request.Message))
	})
	cfg := config(addr)
	cfg.User = "alice"
	if out, unmarked := pass(t, cfg, mbox); out != strings.Replace(mbox, "X-Spam-Flag: NO\n", "X-Spam-Flag: NO\n", 1) || unmarked != nil {
		t.Errorf("%v, %q", unmarked, out)
	}
	r := <-got
	if r.Line != "HEADERS SPAMC/1.5" || r.Fields["user"] != "alice" || string(r.Message) != mbox {
		t.Errorf("got %+v", r)
	}
}

// answer is a spamd that reads the request and then says something else.
func answer(text string) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := filtertest.Read(conn); err != nil {
			return
		}
		io.WriteString(conn, text) // the filter may hang up before the end
	}
}

// Whatever a spamd says that is not a right answer, the message passes as it came.
func TestUnmarked(t *testing.T) {
	t.Parallel()
	header := func(h string) func(net.Conn) {
		var b bytes.Buffer
		filtertest.Answer(&b, []byte(h))
		return answer(b.String())
	}
	marked := filtertest.Mark + "\n"
	for name, c := range map[string]struct {
		serve func(net.Conn)
		want  string // in the reason
	}{
		"hangs up":         {func(net.Conn) {}, ""},
		"says nothing":     {answer(""), "breaks off"},
		"another protocol": {answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "not of spamd's protocol"},
		"no status":        {answer("SPAMD/1.1\r\n\r\n"), "no status"},
		"failed":           {answer("SPAMD/1.1 75 EX_TEMPFAIL\r\n\r\n"), "status 75"},
		"long line":        {answer("SPAMD/1.1 0 " + strings.Repeat("x", 1<<20)), "line"},
		"many lines":       {answer("SPAMD/1.1 0 EX_OK\r\n" + strings.Repeat("a: b\r\n", 10000)), "lines"},
		"length no number": {answer("SPAMD/1.1 0 EX_OK\r\nContent-length: -1\r\n\r\n" + marked), "length"},
		"two lengths":      {answer("SPAMD/1.1 0 EX_OK\r\nContent-length: 1\r\nContent-length: 2\r\n\r\n" + marked), "length"},
		"length too long":  {answer("SPAMD/1.1 0 EX_OK\r\nContent-length: 1000\r\n\r\n" + marked), "breaks off"},
		"length absurd":    {answer("SPAMD/1.1 0 EX_OK\r\nContent-length: 2000000000\r\n\r\n" + marked), "longer than the message"},
		"length too short": {answer("SPAMD/1.1 0 EX_OK\r\nContent-length: " + "81\r\n\r\n" + marked + plain), ""},
		"length zero":      {answer("SPAMD/1.1 0 EX_OK\r\nContent-length: 0\r\n\r\n"), "wrong place"},
		"huge header":      {header(marked + strings.Repeat("X-Hamlet-Words: x\n", 10000) + plain), "longer than the message"},
		"huge, no length":  {answer("SPAMD/1.1 0 EX_OK\r\n\r\n" + strings.Repeat("X-Hamlet: x\n", 100000)), "longer than the message"},
		"another message":  {header("Subject: other\n\n"), "changes or lacks"},
		"field lacks":      {header(marked + "Received: by a\n\tfor b\n\n"), "wrong place"},
		"fold lacks":       {header(marked + "Received: by a\nSubject: minutes\n\n"), "changes or lacks"},
		"other order":      {header(marked + "Subject: minutes\nReceived: by a\n\tfor b\n\n"), "changes or lacks"},
		"other value":      {header(marked + "Received: by a\n\tfor c\nSubject: minutes\n\n"), "changes or lacks"},
		"other line ends":  {header(marked + "Received: by a\r\n\tfor b\r\nSubject: minutes\r\n\r\n"), "changes or lacks"},
		"foreign field":    {header(marked + "Bcc: x@example.org\nReceived: by a\n\tfor b\nSubject: minutes\n\n"), "changes or lacks"},
		"other subject":    {header(marked + "Received: by a\n\tfor b\nSubject: [SPAM] minute\n\n"), "changes or lacks"},
		"second subject":   {header("Subject: [SPAM]\nReceived: by a\n\tfor b\nSubject: minutes\n\n"), "changes or lacks"},
		"tag with a line":  {header("Received: by a\n\tfor b\nSubject: a\nBcc: b\n minutes\n\n"), "changes or lacks"},
		"no empty line":    {header(marked + "Received: by a\n\tfor b\nSubject: minutes\n"), "wrong place"},
		"marks alone":      {header(marked + "\n"), "wrong place"},
		"more behind":      {header(marked + "Received: by a\n\tfor b\nSubject: minutes\n\nHallo"), "wrong place"},
		"control":          {header("X-Hamlet: \x1b[2J\nReceived: by a\n\tfor b\nSubject: minutes\n\n"), "not well formed"},
		"carriage return":  {header("X-Hamlet: a\rb\nReceived: by a\n\tfor b\nSubject: minutes\n\n"), "not well formed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, unmarked := pass(t, config(filtertest.Start(t, c.serve)), plain)
			if out != plain {
				t.Errorf("got %q", out)
			}
			if unmarked == nil || !strings.Contains(unmarked.Error(), c.want) || strings.Contains(unmarked.Error(), "minutes") {
				t.Errorf("reason %v, want one with %q and nothing of the message", unmarked, c.want)
			}
		})
	}
}

// The time is for the whole answer: one byte now and then does not prolong it.
func TestTimeout(t *testing.T) {
	t.Parallel()
	forever := func(say string) func(net.Conn) {
		return func(conn net.Conn) {
			for {
				if _, err := io.WriteString(conn, say); err != nil {
					return
				}
				if say == "" {
					io.Copy(io.Discard, conn) // until the filter hangs up
					return
				}
				conn.SetReadDeadline(time.Now().Add(time.Millisecond))
				io.Copy(io.Discard, conn)
			}
		}
	}
	for name, c := range map[string]struct {
		serve   func(net.Conn)
		message string
	}{
		"never":             {forever(""), plain},
		"a space at a time": {forever(" "), plain},
		"a line at a time":  {func(conn net.Conn) { io.WriteString(conn, "SPAMD/1.1 0 EX_OK\r\n"); forever("")(conn) }, plain},
		"reads nothing":     {func(conn net.Conn) { <-t.Context().Done() }, plain + strings.Repeat("x", 8<<20)},
		"half of the promise": {func(conn net.Conn) {
			io.WriteString(conn, "SPAMD/1.1 0 EX_OK\r\nContent-length: 9\r\n\r\nX-")
			forever("")(conn)
		}, plain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(filtertest.Start(t, c.serve))
			cfg.Timeout = 50 * time.Millisecond
			out, unmarked := pass(t, cfg, c.message)
			if out != c.message || unmarked == nil {
				t.Errorf("%v, %d bytes of %d", unmarked, len(out), len(c.message))
			}
			if name != "a space at a time" && !strings.Contains(unmarked.Error(), "within 50ms") {
				t.Errorf("reason: %v", unmarked)
			}
		})
	}
}

// An answer that is right counts, however it is cut.
func TestByteByByte(t *testing.T) {
	t.Parallel()
	addr := filtertest.Start(t, func(conn net.Conn) {
		request, err := filtertest.Read(conn)
		if err != nil {
			return
		}
		var b bytes.Buffer
		filtertest.Answer(&b, filtertest.Header(filtertest.Marked(request.Message)))
		io.Copy(conn, iotest.OneByteReader(&b))
	})
	if out, unmarked := pass(t, config(addr), mbox); out != string(filtertest.Marked([]byte(mbox))) || unmarked != nil {
		t.Errorf("%v, %q", unmarked, out)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	absent := filepath.Join(t.TempDir(), "spamd.sock")
	for _, message := range []string{plain, mbox, "x", "\n", "Subject: no end"} {
		if out, unmarked := pass(t, config("unix:"+absent), message); out != message || !errors.Is(unmarked, os.ErrNotExist) {
			t.Errorf("%q: %v, got %q", message, unmarked, out)
		}
	}
	if out, unmarked := pass(t, config("unix:"+absent), ""); out != "" || unmarked != nil {
		t.Errorf("nothing: %v, %q", unmarked, out)
	}
}

// A message of MaxSize is marked. A longer one is passed as it comes.
func TestLong(t *testing.T) {
	t.Parallel()
	if filter.MaxSize != mail.MaxSize {
		t.Errorf("the filter's limit is %d, mail's is %d", filter.MaxSize, mail.MaxSize)
	}
	addr := filtertest.Start(t, filtertest.Serve)
	long := []byte(plain + strings.Repeat("0123456789abcde\n", filter.MaxSize/16+1))
	for _, c := range []struct {
		size   int
		marked bool
	}{{filter.MaxSize, true}, {filter.MaxSize + 1, false}, {len(long), false}} {
		message := long[:c.size]
		want := sha256.Sum256(message)
		if c.marked {
			want = sha256.Sum256(filtertest.Marked(message))
		}
		digest := sha256.New()
		unmarked, err := filter.Run(config(addr), bytes.NewReader(message), digest)
		if err != nil || (unmarked == nil) != c.marked {
			t.Errorf("%d bytes: %v, %v", c.size, unmarked, err)
		}
		if !bytes.Equal(digest.Sum(nil), want[:]) {
			t.Errorf("%d bytes: others came out", c.size)
		}
	}
}

// A failingWriter takes room bytes. Close fails if there was no more room.
type failingWriter struct {
	room   int
	closed error
}

func (w *failingWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.room)
	w.room -= n
	if n < len(b) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

func (w *failingWriter) Close() error { return w.closed }

// What is not passed as a whole has the status that makes a mail server try again.
func TestTempFail(t *testing.T) {
	t.Parallel()
	addr := filtertest.Start(t, filtertest.Serve)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		in  io.Reader
		out io.Writer
	}{
		"no room":          {strings.NewReader(plain), &failingWriter{}},
		"room for a part":  {strings.NewReader(plain), &failingWriter{room: len(plain)}},
		"found at the end": {strings.NewReader(plain), &failingWriter{room: 1 << 20, closed: broken}},
		"half a message":   {io.MultiReader(strings.NewReader(plain), iotest.ErrReader(broken)), &failingWriter{room: 1 << 20}},
		"half a long one": {io.MultiReader(strings.NewReader(strings.Repeat("x", filter.MaxSize+1)), iotest.ErrReader(broken)),
			&failingWriter{room: 1 << 30}},
	} {
		_, err := filter.Run(config(addr), c.in, c.out)
		var temporary *filter.TempFailError
		if !errors.As(err, &temporary) || temporary.ExitCode() != 75 {
			t.Errorf("%s: %v, want status 75", name, err)
		}
		if w := c.out.(*failingWriter); name == "half a message" && w.room != 1<<20 {
			t.Errorf("%s: a part of it was written", name)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := filter.Config{Addr: filter.DefaultAddr, Timeout: filter.DefaultTimeout}
	for _, addr := range []string{filter.DefaultAddr, "127.0.0.1:783", "[::1]:783", "localhost:spamd"} {
		good.Addr = addr
		if err := good.Check(); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, bad := range []filter.Config{
		{Addr: "/run/spamd.sock", Timeout: time.Second},
		{Addr: "", Timeout: time.Second},
		{Addr: "unix:", Timeout: time.Second},
		{Addr: "127.0.0.1", Timeout: time.Second},
		{Addr: good.Addr},
		{Addr: good.Addr, Timeout: -1},
		{Addr: good.Addr, Timeout: 1, User: "a\r\nContent-length: 0"},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// The filter starts for every message. What it imports, it pays for each time.
func TestImports(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "hamlet/cmd/hamlet-filter")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Fields(string(out)), "hamlet/cmd/internal/filter hamlet/cmd/internal/version hamlet/cmd/hamlet-filter"; strings.Join(got, " ") != want {
		t.Errorf("hamlet-filter is made of %v, want %s and the standard library", got, want)
	}
}

func ExampleRun() {
	cfg := filter.Config{Addr: "unix:/nonexistent/spamd.sock", Timeout: filter.DefaultTimeout}
	unmarked, err := filter.Run(cfg, strings.NewReader("Subject: x\n\nHello\n"), struct{ io.Writer }{os.Stdout})
	if err != nil {
		os.Exit(filter.StatusTempFail)
	}
	if unmarked != nil {
		os.Stdout.WriteString("passed unmarked\n")
	}
	// Output:
	// Subject: x
	//
	// Hello
	// passed unmarked
}
