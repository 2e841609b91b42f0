package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
)

// adapter is a filter for sh. It answers spam if its word list holds the subject, and
// logs its commands.
const adapter = `#!/bin/sh
log=LOG
subject=$(sed -n 's/^Subject: //p' "${3:-${2:-/dev/null}}")
case $1 in
initialize) echo initialize >>$log; touch words ;;
classify)
	echo "classify $subject" >>$log
	if grep -qx "$subject" words; then echo "class=spam score=0.9 tfile=none"; else echo "class=ham score=0.2"; fi ;;
train) echo "train $2 $subject" >>$log; if [ "$2" = spam ]; then echo "$subject" >>words; fi ;;
finalize) echo finalize >>$log ;;
esac
`

// A box is a mailbox of four messages, spam, ham, spam, ham, with an adapter.
type box struct{ index, script, log string }

func newBox(t *testing.T) box {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var index strings.Builder
	for i, label := range []string{"spam", "ham", "spam", "ham"} {
		subject := []string{"win", "lunch"}[i%2]
		write(fmt.Sprint(i), fmt.Sprintf("To: user%d@example.org\nSubject: %s\n\nBody %d.\n", i, subject, i), 0o600)
		fmt.Fprintf(&index, "%s,%d\n", label, i)
	}
	b := box{index: write("index", index.String(), 0o600), log: filepath.Join(dir, "log")}
	b.script = write("adapter", strings.Replace(adapter, "LOG", "'"+b.log+"'", 1), 0o700)
	return b
}

// bench runs `hamlet-lab bench mail` over the box.
func (b box) bench(ctx context.Context, args ...string) (stdout string, err error) {
	var c Command
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	args = append([]string{"mail", "--resamples", "20", "--table-bits", "8"}, args...)
	err = settings.Run(ctx, "bench", "", &c, args, stdio)
	return out.String() + errs.String(), err
}

func (b box) calls(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(b.log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "; ")
}

// The commands that a filter gets in every mode.
func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		args, want string
	}{
		{"", "classify win; train spam win; classify lunch; train ham lunch; classify win; train spam win; classify " +
			"lunch; train ham lunch"},
		{"--delay 1", "classify win; classify lunch; train spam win; classify win; train ham lunch; classify lunch; " +
			"train spam win"},
		{"--delay 9", "classify win; classify lunch; classify win; classify lunch"},
		{"--teach-first 1", "classify win; train spam win; classify lunch; classify win; classify lunch"},
		{"--recipient USER3@", "classify win; classify lunch; classify win; classify lunch; train ham lunch"},
		{"--flip 1", "classify win; train ham win; classify lunch; train spam lunch; classify win; train ham win; " +
			"classify lunch; train spam lunch"},
		{"--limit 1", "classify win; train spam win"},
	} {
		t.Run(c.args, func(t *testing.T) {
			b := newBox(t)
			args := append([]string{"--index", b.index, "--filter", "sh=" + b.script}, strings.Fields(c.args)...)
			if out, err := b.bench(t.Context(), args...); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got, want := b.calls(t), "initialize; "+c.want+"; finalize"; got != want {
				t.Errorf("calls:\n got %s\nwant %s", got, want)
			}
		})
	}
}

// shownMail is what tests read of --json.
type shownMail struct {
	Events  int     `json:"events"`
	Spam    int     `json:"spam"`
	Taught  int     `json:"taught"`
	Idle    float64 `json:"jig_cpu_seconds"`
	Filters []struct {
		Name        string  `json:"name"`
		ROCA        shown   `json:"roca"`
		Error       shown   `json:"error"`
		ErrorAtHalf shown   `json:"error_at_half"`
		LogLoss     shown   `json:"log_loss"`
		CPUSeconds  shown   `json:"cpu_seconds"`
		Speed       float64 `json:"messages_per_second"`
		Memory      int64   `json:"memory_bytes"`
	} `json:"filters"`
	Ratios []struct{} `json:"ratios"`
}

func TestJSON(t *testing.T) {
	b := newBox(t)
	out, err := b.bench(t.Context(), "--index", b.index, "--filter", "sh="+b.script, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got shownMail
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got.Events != 4 || got.Spam != 2 || got.Taught != 4 || len(got.Filters) != 2 || len(got.Ratios) != 1 {
		t.Fatalf("got %+v", got)
	}
	// The script misses the first spam (.2), ties with both ham, and finds the second.
	sh := got.Filters[1]
	if sh.Name != "sh" || sh.Error.Value != 0.25 || sh.ROCA.Value != 25 || sh.CPUSeconds.Value <= 0 {
		t.Errorf("got %+v", sh)
	}
	if own := got.Filters[0]; own.Name != "hamlet" || own.CPUSeconds.Value <= 0 {
		t.Errorf("got %+v", own)
	}
}

func TestTable(t *testing.T) {
	b := newBox(t)
	out, err := b.bench(t.Context(), "--index", b.index, "--filter", "sh="+b.script)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4 messages, 2 spam, 2 ham", "taught at once: 4 taught", "1-ROCA%", "25.000 (",
		"hamlet / sh", "20 resamples", "Made by: "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

// Errors of a filter name the filter, the command and the message, and quote its stderr.
// A filter that was started is finalized.
func TestFailures(t *testing.T) {
	b := newBox(t)
	script := func(classify string) string {
		path := filepath.Join(t.TempDir(), "adapter")
		text := fmt.Sprintf("#!/bin/sh\ncase $1 in classify) %s ;; finalize) echo finalize >>'%s' ;; esac\n",
			classify, b.log)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name, adapter string
		want          []string
	}{
		{"fails", script("echo no words today >&2; exit 4"),
			[]string{"filter x: message 1: classify: exit status 4; it said: no words today"}},
		{"fails in silence", script("exit 4"), []string{"classify: exit status 4, and nothing on its standard error"}},
		{"says nothing", script(":"), []string{`message 1: classify printed "": want class=spam|ham score=NUMBER`}},
		{"prints nonsense", script("echo hello"), []string{`classify printed "hello"`}},
		{"third class", script("echo class=unsure score=.5"), []string{`class "unsure" must be spam or ham`}},
		{"no number", script("echo class=ham score=low"), []string{`score "low" is not a finite number`}},
		{"does not exist", "/no/such/adapter", []string{"filter x: its adapter cannot be run", "/no/such/adapter"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			os.Remove(b.log)
			_, err := b.bench(t.Context(), "--index", b.index, "--filter", "x="+c.adapter)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
			if c.adapter != "/no/such/adapter" && b.calls(t) != "finalize" {
				t.Errorf("the filter was not ended: %s", b.calls(t))
			}
		})
	}
	t.Run("does not end", func(t *testing.T) {
		_, err := b.bench(t.Context(), "--index", b.index, "--filter-timeout", "50ms", "--filter",
			"x="+script("exec sleep 60"))
		if err == nil || !strings.Contains(err.Error(), "--filter-timeout") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a child does not end", func(t *testing.T) {
		_, err := b.bench(t.Context(), "--index", b.index, "--filter-timeout", "50ms", "--filter",
			"x="+script("sleep 60; true"))
		if err == nil || !strings.Contains(err.Error(), "--filter-timeout") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := b.bench(ctx, "--index", b.index, "--filter", "x="+script("echo class=ham score=0"))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
	t.Run("bogofilter is not installed", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := b.bench(t.Context(), "--index", b.index, "--bogofilter")
		if err == nil || !strings.Contains(err.Error(), "apt-get install bogofilter") {
			t.Errorf("got %v", err)
		}
	})
}

func TestMistakes(t *testing.T) {
	b := newBox(t)
	empty := t.TempDir()
	for _, d := range []string{"cur", "new"} {
		if err := os.Mkdir(filepath.Join(empty, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args  []string
		usage bool
		want  string
	}{
		{[]string{"--delay", "-1"}, true, "--delay: -1 is below 0"},
		{[]string{"--resamples", "0"}, true, "--resamples"},
		{[]string{"--filter", "x"}, true, "NAME=COMMAND"},
		{[]string{"--filter", "hamlet=/bin/true"}, true, "a filter of that name"},
		{[]string{"--bogofilter", "--filter", "bogofilter=/bin/true"}, true, "a filter of that name"},
		{[]string{"--index", b.index, "--from", "4"}, false, "--from 4 leaves nothing to measure"},
		{[]string{"--spam", empty}, false, "empty"},
	} {
		_, err := b.bench(t.Context(), c.args...)
		var usage *cli.UsageError
		if err == nil || errors.As(err, &usage) != c.usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.args, err, c.want)
		}
	}
}

func TestIsTo(t *testing.T) {
	const mail = "Received: for <else@example.org>\r\nTo: a@example.org,\r\n\tB@Example.org\r\nSubject: to " +
		"c@example.org\r\n d@x\r\nDelivered-To: list@x\r\n\r\nTo: body@x\r\n"
	for text, want := range map[string]bool{"a@example": true, "b@example.ORG": true, "list@x": true, "else": false,
		"c@": false, "d@x": false, "body": false} {
		if got := isTo([]byte(mail), text); got != want {
			t.Errorf("to %q: %v", text, got)
		}
	}
}

// The adapter of bogofilter with a fake bogofilter. The status is the class; 2, unsure,
// is delivered.
func TestBogofilterAdapter(t *testing.T) {
	const program = `#!/bin/sh
while [ $# -gt 1 ]; do
	case $1 in -s | -n) train=1 ;; -I) file=$2 ;; esac
	shift
done
case $1 in -s | -n) exit 0 ;; esac
[ -n "${train-}" ] && exit 0
case $(cat "$file" "$1" 2>/dev/null) in
*"Body 0"*) echo 0.5200000000000000; exit 2 ;;
*win*) echo 0.9999996621585308; exit 0 ;;
*"Body 3"*) echo "no word list" >&2; exit 3 ;;
*) echo 0.0000000012345678; exit 1 ;;
esac
`
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "bogofilter"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	b := newBox(t)
	out, err := b.bench(t.Context(), "--index", b.index, "--bogofilter", "--limit", "3", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got shownMail
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	// The first spam is unsure: its class is wrong, its score above one half.
	if f := got.Filters[1]; math.Abs(float64(f.Error.Value)-1.0/3) > 1e-12 || f.ErrorAtHalf.Value != 0 ||
		f.ROCA.Value != 0 {
		t.Errorf("got %+v", f)
	}
	_, err = b.bench(t.Context(), "--index", b.index, "--bogofilter")
	if err == nil || !strings.Contains(err.Error(), "filter bogofilter: message 4: classify: exit status 3; it said: "+
		"no word list") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseVerdict(f *testing.F) {
	for _, s := range []string{"class=spam score=0.97", "class=ham score=1e-9 user= tfile=x\n",
		"noise\nclass=Spam score=-3\n\n", "class=ham", "score=NaN class=spam", "="} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		v, err := parseVerdict(out)
		if err != nil {
			return
		}
		class := "ham"
		if v.spam {
			class = "spam"
		}
		again, err := parseVerdict(fmt.Appendf(nil, "class=%s score=%v", class, v.score))
		if err != nil || again != v {
			t.Errorf("%q is %+v, written and read again %+v, %v", out, v, again, err)
		}
	})
}

func FuzzIsTo(f *testing.F) {
	f.Add([]byte("To: a@x\r\n b@x\n\nTo: c"), "b@x")
	f.Add([]byte(" \n:\n"), "")
	f.Fuzz(func(t *testing.T, raw []byte, text string) {
		if isTo(raw, text) && !strings.Contains(strings.ToLower(string(raw)), strings.ToLower(text)) {
			t.Errorf("%q does not hold %q", raw, text)
		}
	})
}
