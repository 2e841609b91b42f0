//go:build unix

package from010

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"hamlet/state"
)

// converts is the directory that a child of TestKilled converts.
var converts = os.Getenv("HAMLET_CONVERTS")

// TestConvertChild is the program that TestKilled kills. It prints its most memory in KiB.
func TestConvertChild(t *testing.T) {
	if converts == "" {
		t.Skip("TestKilled runs it")
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	found, err := Found(converts)
	if err == nil && found {
		err = Convert(t.Context(), converts, Config{Log: log})
	}
	if err != nil {
		t.Fatal(err)
	}
	status, _ := os.ReadFile("/proc/self/status") // only Linux has it
	if _, peak, ok := strings.Cut(string(status), "VmHWM:"); ok {
		fmt.Printf("memory %s\n", strings.Fields(peak)[0])
	}
}

func child(t *testing.T, dir string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestConvertChild$", "-test.v")
	c.Env = append(os.Environ(), "HAMLET_CONVERTS="+dir)
	out := new(bytes.Buffer)
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, out
}

// made returns a directory that hamlet 0.1.0 made of 200,000 synthetic mails, with 33 kept versions, and
// the model_sha256 that it printed. HAMLET_010 is such a directory, HAMLET_010_SHA256 what it printed.
func made(t *testing.T) (dir, model string) {
	t.Helper()
	if dir, model := os.Getenv("HAMLET_010"), os.Getenv("HAMLET_010_SHA256"); dir != "" {
		return dir, model
	}
	folder := t.TempDir()
	root, err := filepath.Abs("../../../../..")
	if err != nil {
		t.Fatal(err)
	}
	const release = "0b917fe"
	up := fmt.Sprintf("cd %q && ./hamlet up --data D --once --demo --generate 200000 --keep-versions 33 --save-every 1s "+
		"--listen-nats 127.0.0.1:0 --json --log-level error 2>/dev/null", folder)
	for _, command := range []string{
		fmt.Sprintf("git -C %q archive %s | tar -x -C %q", root, release, folder),
		fmt.Sprintf("cd %q && go build -o . ./cmd/hamlet", folder),
		up,
	} {
		out, err := exec.Command("sh", "-c", command).Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		if command == up {
			var result struct {
				Model string `json:"model_sha256"`
			}
			if err := json.Unmarshal(out, &result); err != nil {
				t.Fatal(err)
			}
			model = result.Model
		}
	}
	return filepath.Join(folder, "D"), model
}

// kill −9 ends the conversion ten times, at random. The result is the model that 0.1.0 printed, and the log
// that this model's position is of. With HAMLET_NIGHTLY=1 it has 33 versions and 200,000 events.
func TestKilled(t *testing.T) {
	dir, model, events, versions, most := golden(t), goldenHead, 42, 3, 1<<20 // the race detector takes much
	if os.Getenv("HAMLET_NIGHTLY") != "" {
		from := ""
		from, model = made(t)
		events, versions, most = 200_000, 30, 200<<10
		dir = t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	whole := filepath.Join(t.TempDir(), "whole")
	if err := os.CopyFS(whole, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	copied := time.Since(began)
	began = time.Now()
	c, out := child(t, whole)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took := time.Since(began)
	memory := 0
	if _, text, ok := strings.Cut(out.String(), "memory "); ok {
		_, _ = fmt.Sscan(text, &memory)
	} else if runtime.GOOS == "linux" {
		t.Errorf("no memory: %s", out)
	}
	t.Logf("copied in %v, converted in %v with at most %d KiB", copied, took, memory)
	if memory > most {
		t.Errorf("it took %d KiB, more than %d", memory, most)
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	midway := 0
	for kill := range 10 {
		c, _ := child(t, dir)
		time.Sleep(time.Duration((float64(kill) + rnd.Float64()) / 10 * float64(took)))
		_ = c.Process.Kill()
		_ = c.Wait()
		if found, err := Found(dir); err != nil {
			t.Fatal(err)
		} else if found {
			midway++
		}
	}
	c, out = child(t, dir)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%d of 10 kills came before the end", midway)
	for _, dir := range []string{whole, dir} {
		if found, err := Found(dir); found || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
		s := saidOf(t, dir, "default")
		if s.Head.Model != model || s.Models[s.Head.Version] != model || len(s.Versions) < versions {
			t.Errorf("%d versions, head %+v; want the model %s", len(s.Versions), s.Head, model)
		}
		all, _ := records(t, dir, "hamlet.events.default")
		p := state.Position{}
		for i := range all {
			r := &all[i]
			headers := make([]state.Header, len(r.Headers))
			for i, h := range r.Headers {
				headers[i] = state.Header(h)
			}
			p = p.Advance(r.Offset, r.Key, r.Value, headers...)
		}
		if len(all) != events || p != s.Versions[0].Position {
			t.Errorf("%d records up to %v; the head is at %v", len(all), p, s.Versions[0].Position)
		}
		if is, err := exists(filepath.Join(dir, converting)); is || err != nil {
			t.Error(errors.Join(err, errors.New("converting is left")))
		}
	}
}
