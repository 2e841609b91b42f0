//go:build linux

package endtoend

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hamlet/cmd/internal/operate/eventlog"
	"hamlet/cmd/internal/service/machine"
	"hamlet/state"
	"hamlet/stream"
)

// asMachine is HAMLET_MACHINE: how often the power fails in each way. If it is above zero, what a machine costs
// is measured too. Both take long and want a quiet machine: .ci/nightly runs them in a block of their own.
var asMachine, _ = strconv.Atoi(os.Getenv("HAMLET_MACHINE")) // before TestMain removes it

func needsMachine(t *testing.T) {
	t.Helper()
	if asMachine == 0 {
		t.Skip("half an hour: HAMLET_MACHINE=20 runs it")
	}
}

// A powered is a hamlet up whose folder is on a disk of its own, from which the power can be taken.
type powered struct {
	t     *testing.T
	image string // the disk
	at    string // where it is mounted
	data  string
	flags []string
	up    *process
	http  string

	sent  atomic.Int64
	mu    sync.Mutex
	acked map[string]bool
	seen  map[string]bool // ids that the log had after a cut
	met   int             // cuts at the moment that was waited for
}

func newPowered(t *testing.T, bytes int64, flags ...string) *powered {
	image := filepath.Join(t.TempDir(), "disk")
	p := &powered{t: t, image: image, at: mountNew(t, image, bytes), acked: map[string]bool{}, seen: map[string]bool{}}
	p.data = filepath.Join(p.at, "data")
	p.flags = append([]string{"up", "--data", p.data, "--http", "127.0.0.1:0", "--token", correctionsSecret,
		"--listen-nats", "127.0.0.1:0"}, flags...)
	return p
}

func (p *powered) start() {
	p.t.Helper()
	p.up = start(p.t, "hamlet", p.flags...)
	p.http = p.up.upHTTP()
}

// label sends one label with so many bytes more, and notes whether it is acknowledged.
func (p *powered) label(ctx context.Context, client *http.Client, more int) bool {
	n := p.sent.Add(1)
	id := fmt.Sprintf("label-%d", n)
	body := fmt.Sprintf(`{"id":%q,"label":%q,"text":"word%d of thing%d %s"}`, id, class(n%2 == 0), n%17, n%5,
		strings.Repeat("long ", more/5))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.http+"/v1/events", strings.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return false
	}
	r.Header.Set("Authorization", "Bearer "+correctionsSecret)
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusAccepted {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked[id] = true
	return true
}

// labels sends labels until the function that it returns is called, which waits for the last: by so many
// publishers, each one after its last one was acknowledged, or one publisher so many a second.
func (p *powered) labels(publishers, aSecond, more int) (end func()) {
	ctx, cancel := context.WithCancel(p.t.Context())
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: publishers}}
	var sending sync.WaitGroup
	for range publishers {
		sending.Go(func() {
			if aSecond == 0 {
				for ctx.Err() == nil {
					p.label(ctx, client, more)
				}
				return
			}
			tick := time.NewTicker(time.Second / time.Duration(aSecond))
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					sending.Go(func() { p.label(ctx, client, more) })
				}
			}
		})
	}
	return func() { cancel(); sending.Wait(); client.CloseIdleConnections() }
}

// cut stops hamlet, copies the disk, kills hamlet, and mounts the copy. It has what was written to the device,
// and nothing that was in memory.
func (p *powered) cut() {
	p.t.Helper()
	p.up.signal(syscall.SIGSTOP)
	copied := p.image + ".copy"
	for tries := 0; ; tries++ {
		before := p.written()
		p.run("cp", "--sparse=always", p.image, copied)
		if p.written() == before {
			break
		}
		if tries == 50 { // the copy mixes two moments
			p.t.Fatal("the kernel writes to the disk all the time: it cannot be copied")
		}
	}
	p.up.kill()
	p.run("umount", "-l", p.at)
	if err := os.Rename(copied, p.image); err != nil {
		p.t.Fatal(err)
	}
	var exit *exec.ExitError
	if out, err := exec.Command("e2fsck", "-p", p.image).CombinedOutput(); err != nil &&
		!(errors.As(err, &exit) && exit.ExitCode() == 1) { // status 1: it has mended the disk
		p.t.Fatalf("e2fsck: %v: %s", err, out)
	}
	p.run("mount", "-o", "loop", p.image, p.at)
}

func (p *powered) run(name string, args ...string) {
	p.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		p.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// written returns the device's counters of writes, of sectors and of what is in flight.
func (p *powered) written() string {
	p.t.Helper()
	device, err := exec.Command("findmnt", "-no", "SOURCE", p.at).Output()
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(strings.TrimSpace(string(device))), "stat"))
	if err != nil {
		p.t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	return strings.Join([]string{fields[4], fields[6], fields[8]}, " ")
}

// look reads a copy of what the cut has left, before hamlet starts on it. Every label that was acknowledged is
// in the log, or was after a cut before.
func (p *powered) look() {
	p.t.Helper()
	copied := filepath.Join(p.t.TempDir(), "copied")
	for _, part := range []string{"logs", "models"} {
		err := os.CopyFS(filepath.Join(copied, part), os.DirFS(filepath.Join(p.data, part)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the power was cut before it was made
			p.t.Fatal(err)
		}
	}
	defer os.RemoveAll(copied)
	var said bytes.Buffer
	dir, err := machine.Open(p.t.Context(), copied,
		machine.Config{Log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		p.t.Fatal(err)
	}
	defer dir.Close()
	first, end := p.read(dir)
	for id := range p.acked {
		if !p.seen[id] {
			p.t.Errorf("%s was acknowledged, and is not in the log, which goes from %d to %d", id, first, end)
		}
	}
	if said.Len() > 0 {
		p.t.Errorf("after a loss of power alone: %s", &said)
	}
}

// read notes the ids in the log.
func (p *powered) read(dir machine.Machine) (first, end int64) {
	p.t.Helper()
	log, err := dir.Open(stream.EventsTopic("default"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	b, err := log.Bounds(p.t.Context())
	if errors.Is(err, stream.ErrNoLog) {
		return 0, 0
	}
	if err != nil {
		p.t.Fatal(err)
	}
	for next := b.First; next < b.End; {
		records, _, err := log.Read(p.t.Context(), next, stream.Limit{}, 0)
		if err != nil || len(records) == 0 {
			p.t.Fatalf("%d records at %d of %+v: %v", len(records), next, b, err)
		}
		for i := range records {
			e, err := stream.DecodeRecord(records[i].Headers, records[i].Value)
			if err != nil {
				p.t.Fatal(err)
			}
			p.seen[e.ID] = true
		}
		next = records[len(records)-1].Offset + 1
	}
	return b.First, b.End
}

// learnt waits until the running hamlet has saved all that is in its log, and returns the head.
func (p *powered) learnt() (head *state.Checkpoint) {
	p.t.Helper()
	client, err := machine.NewClient(p.data)
	if err != nil {
		p.t.Fatal(err)
	}
	defer client.Close()
	store, err := client.Store("default")
	if err != nil {
		p.t.Fatal(err)
	}
	defer store.Close()
	log, err := client.Open(stream.EventsTopic("default"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	await(p.t, "all is learnt and saved", func() bool {
		b, err := log.Bounds(p.t.Context())
		if err != nil {
			return false
		}
		head, _, err = store.Load(p.t.Context(), state.Head)
		return (err == nil || b.End == 0) && (b.End == 0 || head.Position.Next == b.End)
	})
	if head != nil && head.Events != uint64(head.Position.Next) {
		p.t.Errorf("%d events are learnt of %d records", head.Events, head.Position.Next)
	}
	return head
}

// segments returns the files of the log of events, in order.
func (p *powered) segments() (names []string) {
	names, _ = filepath.Glob(filepath.Join(p.data, "logs", stream.EventsTopic("default"), "0*.log"))
	return names
}

// saving reports whether a file of the model is being written.
func (p *powered) saving() bool {
	for _, pattern := range []string{"default/.new-*", "chunks/*/.new-*"} {
		if names, _ := filepath.Glob(filepath.Join(p.data, "models", pattern)); len(names) > 0 {
			return true
		}
	}
	return false
}

// The power fails: what was acknowledged is there, and is learnt, and the model is that of a replay of the log.
func TestPowerFails(t *testing.T) {
	needsMachine(t)
	way := func(name string, bytes int64, flags []string, replayed bool, run func(p *powered, random *rand.Rand)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPowered(t, bytes, flags...)
			random := rand.New(rand.NewPCG(34, uint64(len(name))))
			for range asMachine {
				run(p, random)
				if t.Failed() {
					return
				}
			}
			p.start()
			head := p.learnt()
			t.Logf("%d labels were acknowledged, %d are learnt; %d cuts came at the moment that was waited for",
				len(p.acked), head.Events, p.met)
			if len(p.acked) == 0 {
				t.Error("none was acknowledged")
			}
			if replayed {
				sum := sha256.Sum256(head.Model)
				file := filepath.Join(t.TempDir(), "log.zst")
				mustOutput(t, "hamlet", "log", "export", file, "--data", p.data)
				args := append([]string{"eval", "--json", "--log", file}, modelOnly(flags)...)
				// A log of hundreds of megabytes takes longer than mustOutput waits.
				out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "hamlet"), args...).Output()
				if err != nil {
					t.Fatal(err)
				}
				if got := parseResult(t, string(out)).ModelSHA256; got != hex.EncodeToString(sum[:]) {
					t.Errorf("the model is %x, a replay of the log %s", sum, got)
				}
			}
			p.up.stop()
		})
	}
	// under is a round: labels come, and the power fails once it should, or after so long.
	under := func(publishers, aSecond, more int, most time.Duration, should func(p *powered) func() bool) func(*powered, *rand.Rand) {
		return func(p *powered, random *rand.Rand) {
			p.start()
			end := p.labels(publishers, aSecond, more)
			until := time.Now().Add(most/2 + time.Duration(random.Int64N(int64(most/2))))
			if should == nil {
				until = time.Now().Add(most)
			}
			var now func() bool
			if should != nil {
				now = should(p)
			}
			for time.Now().Before(until) {
				if now != nil && now() {
					p.met++
					break
				}
				time.Sleep(200 * time.Microsecond)
			}
			p.cut()
			end()
			p.look()
		}
	}
	small := []string{"--table-bits", "12"}
	way("20 a second", 1<<30, nil, true, under(1, 20, 0, 30*time.Second, nil))
	way("64 publishers", 4<<30, small, true, under(64, 0, 0, 30*time.Second, nil))
	way("saves", 1<<30, []string{"--table-bits", "16", "--save-every", "20ms"}, true,
		under(4, 0, 0, 5*time.Second, func(p *powered) func() bool {
			some := time.Now().Add(time.Second)
			return func() bool { return time.Now().After(some) && p.saving() }
		}))
	way("rolls", 2<<30, small, true, under(64, 0, 50_000, 20*time.Second, func(p *powered) func() bool {
		before := len(p.segments())
		return func() bool { return len(p.segments()) > before+1 }
	}))
	way("retention", 1<<30, append([]string{"--retention", "1m", "--save-every", "50ms"}, small...), false, retainRound)
}

// modelOnly leaves what eval does not know out of flags.
func modelOnly(flags []string) (only []string) {
	for i := 0; i+1 < len(flags); i += 2 {
		if flags[i] == "--table-bits" {
			only = append(only, flags[i], flags[i+1])
		}
	}
	return only
}

// retainRound is a round in which the power fails while old segments are deleted: each start makes one of what
// is there, and deletes those that are older than a minute and learnt. The clock is believed. What the round
// before has left is learnt and saved first, in a run without a fault: else it could not be deleted.
func retainRound(p *powered, random *rand.Rand) {
	p.t.Helper()
	now := time.Now().UTC().Format(time.RFC3339)
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		p.t.Fatal(err)
	}
	clock := fmt.Sprintf(`{"wall":%q,"left":0,"believed":%q}`, now, now)
	if err := os.WriteFile(filepath.Join(p.data, ".clock"), []byte(clock), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if len(p.segments()) > 0 {
		p.start()
		p.learnt()
		p.up.stop()
		time.Sleep(61 * time.Second) // what is there is old
	}
	before := p.segments()
	atOnce := random.IntN(2) == 0 // else some labels come before
	p.up = start(p.t, "hamlet", p.flags...)
	end := func() {}
	var served time.Time
	for most := time.Now().Add(patience); time.Now().Before(most); time.Sleep(100 * time.Microsecond) {
		if m := upHTTP.FindStringSubmatch(p.up.log()); m != nil && served.IsZero() {
			p.http, served = m[1], time.Now()
			end = p.labels(8, 0, 0)
		}
		now := p.segments()
		deleted := len(before) > 0 && (len(now) == 0 || now[0] != before[0])
		if deleted && atOnce {
			p.met++
			break
		}
		if !served.IsZero() && time.Since(served) > time.Second && (deleted || !atOnce || len(before) == 0) {
			break
		}
	}
	p.cut()
	end()
	p.look()
}

// made010 is HAMLET_010, a folder of hamlet 0.1.0. It is read before TestMain removes it.
var made010 = os.Getenv("HAMLET_010")

// The power fails while a folder of 0.1.0 is converted. The next start makes what a conversion makes that
// nothing disturbs. HAMLET_010=DIR is a folder to take in the place of a small one.
func TestPowerFailsInAConversion(t *testing.T) {
	needsMachine(t)
	old, flags := made010, []string{"--retention", "-1s"}
	if old == "" {
		old, flags = t.TempDir(), append(flags, "--experts", "lean", "--table-bits", "8")
		archive := "../../service/machine/from010/testdata/v0.1.0.tar.gz"
		if out, err := exec.Command("tar", "-xzf", archive, "-C", old).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	p := newPowered(t, 4<<30, flags...)
	converting := func() bool {
		_, err := os.Stat(filepath.Join(p.data, "converting"))
		return err == nil
	}
	// begin starts hamlet over the old folder, and waits until the conversion has begun.
	begin := func() (over bool) {
		t.Helper()
		if err := os.RemoveAll(p.data); err != nil {
			t.Fatal(err)
		}
		p.run("cp", "-r", old, p.data)
		p.run("sync", "-f", p.data)
		p.up = start(t, "hamlet", p.flags...)
		for !converting() {
			select {
			case <-p.up.done:
				t.Fatal("hamlet ended")
			case <-time.After(100 * time.Microsecond):
			}
			if _, err := os.Stat(filepath.Join(p.data, "kafka-0.1.0")); err == nil {
				return true
			}
		}
		return false
	}
	// made is what the conversion has made: the versions, and the digest of the log.
	made := func() string {
		t.Helper()
		p.up.stop()
		file := filepath.Join(t.TempDir(), "log.zst")
		mustOutput(t, "hamlet", "log", "export", file, "--data", p.data)
		return mustOutput(t, "hamlet", "model", "versions", "--json", "--data", p.data) + digestOf(t, eventlog.File(file))
	}

	begin()
	began := time.Now()
	for converting() {
		time.Sleep(100 * time.Microsecond)
	}
	took := time.Since(began)
	p.up.upHTTP()
	want := made()
	midway := 0
	random := rand.New(rand.NewPCG(34, 10))
	for range asMachine {
		if !begin() {
			time.Sleep(time.Duration(random.Float64() * float64(took)))
		}
		p.cut()
		if converting() {
			midway++
		}
		p.start()
		if got := made(); got != want {
			t.Fatalf("after a loss of power the conversion makes\n%s\nand undisturbed\n%s", got, want)
		}
	}
	t.Logf("the conversion took %v; %d of %d cuts came before its end", took, midway, asMachine)
}
