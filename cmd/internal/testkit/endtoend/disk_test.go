package endtoend

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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
