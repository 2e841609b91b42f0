package bench

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hamlet/cmd/internal/testkit/debian"
)

// fakeVW speaks vw's daemon protocol. It knows the subjects that were taught as spam, and
// logs its input.
const fakeVW = `#!/usr/bin/perl
use strict;
use IO::Socket::INET;
my %arg;
for my $i (0 .. $#ARGV) { $arg{$ARGV[$i]} = $ARGV[$i + 1] }
die "loss @ARGV" unless $arg{'--loss_function'} eq 'logistic' && $arg{'--num_children'} == 1 && exists $arg{'--foreground'};
my $server = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die;
open my $log, '>', 'LOG' or die;
$log->autoflush(1);
open my $out, '>', $arg{'--port_file'} or die;
print $out $server->sockport(), "\n";
close $out;
my $client = $server->accept() or die;
$client->autoflush(1);
my %spam;
while (my $line = <$client>) {
	print $log $line;
	my ($subject) = $line =~ /subject=(\S+)/;
	$spam{$subject} = 1 if $line =~ /^1 /;
	print $client $spam{$subject} ? "4.5\n" : "-1.25\n";
}
`

func needPerl(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/perl"); err != nil {
		t.Skip("/usr/bin/perl is not installed")
	}
}

// The adapter of Vowpal Wabbit with a fake vw: each message is one line for a
// classification and one for a label, over one connection.
func TestVowpalWabbitAdapter(t *testing.T) {
	needPerl(t)
	bin := t.TempDir()
	log := filepath.Join(bin, "log")
	if err := os.WriteFile(filepath.Join(bin, "vw"), []byte(strings.Replace(fakeVW, "LOG", log, 1)),
		0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	b := newBox(t)
	out, err := b.bench(t.Context(), "--index", b.index, "--vw", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got shownMail
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	// Only the first spam is unknown: one of four is wrong, and its score is that of ham.
	f := got.Filters[1]
	if f.Name != "vw" || f.Error.Value != 0.25 || f.ErrorAtHalf.Value != 0.25 || f.ROCA.Value != 25 || f.Speed <= 0 ||
		f.Memory <= 0 || got.Idle != 0 {
		t.Errorf("got %+v, idle %v", f, got.Idle)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	want := " |h to=user0 to=example to=org subject=win |b body 0"
	if len(lines) != 8 || lines[0] != want || lines[1] != "1"+want || !strings.HasPrefix(lines[3], "-1 |h ") {
		t.Errorf("vw read %q", lines)
	}
}

// What a server says and does wrong is told, with its name, and its processes end.
func TestServersThatFail(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{"echo no licence >&2; exit 3", "filter x: start: it has ended; it said: no licence"},
		{"echo hello; cat >/dev/null", `filter x: start: it printed "hello", not ready`},
		{"echo ready; read a; echo class=spam score=1; read a; echo ok; read a; echo gone >&2; exit 1",
			"filter x: message 2: classify: it has ended; it said: gone"},
		{"echo ready; read a; echo class=spam score=1; read a; echo maybe; cat >/dev/null", `filter x: message 1: train printed "maybe", not ok`},
		{"echo ready; read a; echo class=grey; cat >/dev/null", `filter x: message 1: classify printed "class=grey"`},
		{"echo ready; cat >/dev/null", "filter x: message 1: classify: no end after 300ms (--filter-timeout)"},
	} {
		o, err := newScript("x", "/bin/sh", []byte(tt.script), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		o.serves = true
		group := 0
		err = func() error {
			if err := o.initialize(t.Context()); err != nil {
				return err
			}
			group = o.server.cmd.Process.Pid
			if strings.Contains(tt.want, "300ms") { // not for the start, which takes what it takes
				o.timeout = 300 * time.Millisecond
			}
			for i := range 2 {
				m := &message{ordinal: i, raw: []byte("\nhi")}
				if _, _, err := o.classify(t.Context(), m); err != nil {
					return err
				}
				if _, err := o.train(t.Context(), m); err != nil {
					return err
				}
			}
			return nil
		}()
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s\n got %v\nwant %s", tt.script, err, tt.want)
		}
		if err := o.finalize(t.Context()); err != nil {
			t.Error(err)
		}
		if group != 0 && groupMemory(group) != 0 {
			t.Errorf("%s: its processes go on", tt.script)
		}
		if err := o.close(); err != nil {
			t.Error(err)
		}
	}
}

// A filter that is not installed names its package.
func TestServersThatAreMissing(t *testing.T) {
	needPerl(t)
	t.Setenv("PATH", t.TempDir())
	t.Setenv("PERL5LIB", "")
	b := newBox(t)
	for flag, want := range map[string]string{"--rspamd": "apt-get install rspamd", "--vw": "vw is not installed",
		"--spamassassin": "apt-get install spamassassin"} {
		if flag == "--spamassassin" && exec.Command("/usr/bin/perl", "-MMail::SpamAssassin", "-e1").Run() == nil {
			continue
		}
		if _, err := b.bench(t.Context(), "--index", b.index, flag); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flag, err, want)
		}
	}
}

// The real programs learn the box: each is asked only for what any filter can.
func TestRealServers(t *testing.T) {
	needPerl(t)
	t.Run("rspamd", func(t *testing.T) {
		tree := debian.Tree(t, "rspamd")
		share, bin := tree+"/usr/share/rspamd", t.TempDir()
		start := "#!/bin/sh\nexec " + tree + "/run rspamd \"$@\" --var=SHAREDIR=" + share + " --var=RULESDIR=" + share +
			"/rules --var=LUALIBDIR=" + share + "/lualib --var=PLUGINSDIR=" + share + "/plugins\n"
		if err := os.WriteFile(filepath.Join(bin, "rspamd"), []byte(start), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		learnsTheBox(t, "--rspamd")
	})
	t.Run("spamassassin", func(t *testing.T) {
		tree := debian.Tree(t, "spamassassin")
		own, err := filepath.Glob(tree + "/usr/lib/*/perl5/*")
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("PERL5LIB", strings.Join(append(own, tree+"/usr/share/perl5"), ":"))
		learnsTheBox(t, "--spamassassin")
	})
}

func learnsTheBox(t *testing.T, flag string) {
	t.Helper()
	b := newBox(t)
	out, err := b.bench(t.Context(), "--index", b.index, flag, "--json")
	var got shownMail
	if err != nil || json.Unmarshal([]byte(out), &got) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if f := got.Filters[1]; f.Error.Value > 0.5 || f.LogLoss.Value > 1 || f.Memory < 1<<20 {
		t.Errorf("got %+v", f)
	}
}

func TestGroup(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc")
	}
	cmd := exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo; read a")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 1)) // it has counted
	used, memory := groupTime(cmd.Process.Pid), groupMemory(cmd.Process.Pid)
	in.Close()
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatal(err)
	}
	most := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if used > most+20*time.Millisecond || used < most-50*time.Millisecond || memory < 16<<10 {
		t.Errorf("%v of %v, %d bytes", used, most, memory)
	}
	if groupTime(cmd.Process.Pid) != 0 || groupMemory(cmd.Process.Pid) != 0 {
		t.Error("a group that has ended uses time or memory")
	}
}
