package endtoend

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// powerFor is HAMLET_POWER. It is read before TestMain removes the variables of this name.
var powerFor = os.Getenv("HAMLET_POWER")

// The power fails while labels come. What was acknowledged before is in the log when the power comes
// back, and the model learns all of it. A disk is a file with an ext4; the power fails for a copy of
// that file, taken while hamlet up is stopped: it has what was written to the device, and nothing
// that was still in memory. HAMLET_POWER says how long labels come before.
func TestPowerCut(t *testing.T) {
	n, took := rounds(t, 1, 3), 3*time.Second
	if powerFor != "" {
		var err error
		if took, err = time.ParseDuration(powerFor); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name       string
		publishers int
		pause      time.Duration // of each between two labels
		bytes      int           // of a label
	}{
		{"20 labels a second", 1, 50 * time.Millisecond, 200},
		{"64 publishers", 64, 0, 2000}, // segments are full now and then
	} {
		t.Run(c.name, func(t *testing.T) {
			for range n {
				cutPower(t, c.publishers, c.pause, c.bytes, took)
			}
		})
	}
}

func cutPower(t *testing.T, publishers int, pause time.Duration, bytes int, after time.Duration) {
	t.Helper()
	folder := t.TempDir()
	disk, copied := filepath.Join(folder, "disk"), filepath.Join(folder, "copy")
	mounted := mountNew(t, disk, 1<<30)
	// Saves follow each other, so the power fails during one.
	args := func(data string) []string {
		return []string{"up", "--data", data, "--table-bits", "14", "--save-every", "20ms", "--http", "127.0.0.1:0", "--token", correctionsSecret, "--listen-nats", "127.0.0.1:0"}
	}
	p := start(t, "hamlet", args(filepath.Join(mounted, "data"))...)
	at := p.upHTTP()
	var (
		mu           sync.Mutex
		acknowledged = map[string]bool{}
		publishing   sync.WaitGroup
		cut          = make(chan struct{})
	)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: publishers}, Timeout: 5 * time.Second}
	for who := range publishers {
		publishing.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-cut:
					return
				case <-time.After(pause):
				}
				id := fmt.Sprintf("p%d-%d", who, i)
				body := fmt.Sprintf(`{"id":%q,"label":%q,"text":%q}`, id, []string{"spam", "ham"}[i%2], fmt.Sprintf("%d %d %s", who, i, strings.Repeat("word ", bytes/5)))
				request, err := http.NewRequest(http.MethodPost, "http://"+at+"/v1/events", strings.NewReader(body))
				if err != nil {
					panic(err)
				}
				request.Header.Set("Authorization", "Bearer "+correctionsSecret)
				request.Header.Set("Content-Type", "application/json")
				response, err := client.Do(request)
				if err != nil {
					continue // the power has failed
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				if response.StatusCode == http.StatusAccepted {
					mu.Lock()
					select {
					case <-cut: // too late to be sure that the copy has it
					default:
						acknowledged[id] = true
					}
					mu.Unlock()
				}
			}
		})
	}
	time.Sleep(after)
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	close(cut)
	want := len(acknowledged)
	mu.Unlock()
	if out, err := exec.Command("cp", "--sparse=always", disk, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.kill()
	publishing.Wait()
	if want == 0 {
		t.Fatal("nothing was acknowledged")
	}

	data := filepath.Join(mount(t, copied), "data")
	p = start(t, "hamlet", args(data)...)
	at = p.upHTTP()
	await(t, "all is learnt", func() bool {
		return metric(at, "hamlet_learner_next_offset") >= float64(want) && metric(at, "hamlet_learner_lag_records") == 0
	})
	p.stop()
	exported := filepath.Join(folder, "log.jsonl")
	mustOutput(t, "hamlet", "log", "export", exported, "--data", data)
	there := idsOf(t, exported)
	lost := 0
	for id := range acknowledged {
		if !there[id] {
			lost++
		}
	}
	var versions struct {
		Partitions []struct {
			Versions []struct{ Events, Position int }
		}
	}
	if err := json.Unmarshal([]byte(mustOutput(t, "hamlet", "model", "versions", "--json", "--data", data)), &versions); err != nil {
		t.Fatal(err)
	}
	learnt := versions.Partitions[0].Versions[0].Events
	t.Logf("%d labels were acknowledged, %d are in the log, %d are learnt, %d are lost", want, len(there), learnt, lost)
	if lost > 0 || learnt != len(there) {
		t.Errorf("of %d acknowledged labels %d are lost; %d are in the log, and %d are learnt", want, lost, len(there), learnt)
	}
}

// idsOf returns the ids of the events of an exported log.
func idsOf(t *testing.T, path string) map[string]bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ids := map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var line struct {
			Headers []struct{ Key, Value string }
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		for _, h := range line.Headers {
			if h.Key == "ce_id" {
				id, err := base64.StdEncoding.DecodeString(h.Value)
				if err != nil {
					t.Fatal(err)
				}
				ids[string(id)] = true
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// mountNew makes a disk of so many bytes with an ext4, and mounts it.
func mountNew(t *testing.T, disk string, bytes int64) (at string) {
	t.Helper()
	f, err := os.Create(disk)
	if err == nil {
		err = errors.Join(f.Truncate(bytes), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", disk).CombinedOutput(); err != nil {
		t.Skipf("mkfs.ext4: %v: %s", err, out)
	}
	return mount(t, disk)
}

// mount mounts a disk until the test ends.
func mount(t *testing.T, disk string) (at string) {
	t.Helper()
	at = disk + ".mounted"
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "loop", disk, at).CombinedOutput(); err != nil {
		t.Skipf("a disk of its own needs root and loop devices: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return at
}

// The disk is full. Answers go on, labels are refused with a reason, and the page and the metric say so.
// With room again labels are taken, without a restart.
func TestFullDisk(t *testing.T) {
	at := mountNew(t, filepath.Join(t.TempDir(), "disk"), 96<<20)
	p := start(t, "hamlet", "up", "--data", filepath.Join(at, "data"), "--table-bits", "12", "--save-every", "20ms",
		"--http", "127.0.0.1:0", "--token", correctionsSecret, "--listen-nats", "127.0.0.1:0")
	c := &corrections{t: t, up: p, http: p.upHTTP()}
	post := func(id int) (int, string) {
		t.Helper()
		body := fmt.Sprintf(`{"id":"e%d","label":"spam","text":"cheap pills %d %s"}`, id, id, strings.Repeat("word ", 1000))
		answer, code := c.post(c.http+"/v1/events", http.Header{"Authorization": {"Bearer " + correctionsSecret}, "Content-Type": {"application/json"}}, []byte(body))
		return code, string(answer)
	}
	message := []byte("Subject: offer\r\n\r\ncheap pills\r\n")
	for id := range 10 {
		if code, answer := post(id); code != http.StatusAccepted {
			t.Fatalf("%d, %s", code, answer)
		}
	}
	await(t, "there is an answer", func() bool { _, code := c.ask(message); return code == http.StatusOK })
	filler := filepath.Join(at, "filler")
	fill := func() {
		f, err := os.OpenFile(filler, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return
		}
		defer f.Close()
		for _, size := range []int{1 << 20, 4 << 10} {
			for {
				if _, err := f.Write(make([]byte, size)); err != nil {
					break
				}
			}
		}
	}
	id, refused := 10, ""
	await(t, "a label is refused", func() bool {
		fill()
		code, answer := post(id)
		if id++; code == http.StatusServiceUnavailable {
			refused = answer
		}
		return refused != ""
	})
	if !strings.Contains(refused, "no space is left for the log") {
		t.Errorf("refused with %s", refused)
	}
	for range 20 {
		if _, code := c.ask(message); code != http.StatusOK {
			t.Errorf("with a full disk the answer is %d", code)
		}
	}
	if code, body := page(t, "http://"+c.http+"/readyz"); code != http.StatusOK || !strings.Contains(body, "labels are refused") {
		t.Errorf("/readyz: %d, %s", code, body)
	}
	if full := metric(c.http, "hamlet_log_full"); full != 1 {
		t.Errorf("hamlet_log_full is %v", full)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	accepted := 10
	await(t, "labels are taken again", func() bool {
		code, _ := post(1000 + accepted)
		if code == http.StatusAccepted {
			accepted++
		}
		return accepted == 20
	})
	await(t, "they are learnt", func() bool {
		return metric(c.http, "hamlet_learner_events") >= float64(accepted) && metric(c.http, "hamlet_learner_unsaved_records") == 0
	})
	if full := metric(c.http, "hamlet_log_full"); full != 0 {
		t.Errorf("hamlet_log_full is %v with room again", full)
	}
	p.stop()
}
