package seeds

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/process/cli"
)

// This test's own binary is the simulator where the variable says so. It has the flags of the real one.
const actsAs = "HAMLET_LAB_SIMULATOR"

func TestMain(m *testing.M) {
	if how := os.Getenv(actsAs); how != "" {
		act(how)
	}
	os.Exit(m.Run())
}

// act does the seeds, the last two the other way round. Seed 13 fails. "dies" ends without the seed 5.
func act(how string) {
	count, from := flag.Int("seeds", 0, ""), flag.Uint64("from", 0, "")
	flag.Bool("lines", false, "")
	flag.String("dir", "", "")
	flag.Duration("for", 0, "")
	flag.Parse()
	var all []Done
	failed := 0
	for seed := *from; seed < *from+uint64(*count); seed++ {
		d := Done{Seed: seed}
		if seed == 13 {
			failed = 1
			d.Violations, d.Plan, d.Story = []string{"an alert is not out"}, "seed 13: a plan\n", []string{"1s kill"}
		}
		if how != "dies" || seed != 5 {
			all = append(all, d)
		}
	}
	n := len(all)
	all[n-1], all[n-2] = all[n-2], all[n-1]
	for _, d := range all {
		b, _ := json.Marshal(d)
		fmt.Printf("%s\n", b)
	}
	if how == "dies" {
		fmt.Println("panic: it has died")
		os.Exit(2)
	}
	os.Exit(failed)
}

func night(t *testing.T, how string, c Command) (string, error) {
	t.Helper()
	t.Setenv(actsAs, how)
	var err error
	if c.Binary, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = c.Run(t.Context(), cli.IO{Out: &out, Err: t.Output()})
	return out.String(), err
}

// Each night goes on where the one before has ended, and keeps what failed.
func TestNights(t *testing.T) {
	keep := filepath.Join(t.TempDir(), "nights.jsonl")
	if out, err := night(t, "whole", Command{Seeds: 10, Keep: keep}); err != nil ||
		!strings.Contains(out, "10 seeds from 1 in ") || !strings.HasSuffix(out, " 0 failed\n") {
		t.Fatalf("%s%v", out, err)
	}
	out, err := night(t, "whole", Command{Seeds: 5, Keep: keep})
	if err == nil || !strings.Contains(out, "seed 13: a plan\n1s kill\nan alert is not out\n") ||
		!strings.Contains(out, "5 seeds from 11 in ") {
		t.Fatalf("%s%v", out, err)
	}
	if next, err := goesOn(keep); next != 16 || err != nil {
		t.Errorf("goes on from %d, %v", next, err)
	}
	b, err := os.ReadFile(keep)
	if err != nil || strings.Count(string(b), "\n") != 2 || !strings.Contains(string(b), `"failed":[{"seed":13,`) {
		t.Errorf("kept: %s%v", b, err)
	}
	if out, err := night(t, "whole", Command{Seeds: 2, Keep: keep, From: new(uint64(40))}); err != nil ||
		!strings.Contains(out, "2 seeds from 40 in ") {
		t.Errorf("%s%v", out, err)
	}
}

// Of a simulator that dies what is kept ends before the first seed that is not done, and the last that it
// said is told.
func TestSimulatorDies(t *testing.T) {
	keep := filepath.Join(t.TempDir(), "nights.jsonl")
	out, err := night(t, "dies", Command{Seeds: 9, Keep: keep})
	if err == nil || !strings.Contains(err.Error(), "panic: it has died") || !strings.Contains(out, "4 seeds from 1 in ") {
		t.Errorf("%s%v", out, err)
	}
	if next, err := goesOn(keep); next != 5 || err != nil {
		t.Errorf("goes on from %d, %v", next, err)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []Command{{}, {Seeds: -1}, {Seeds: 1, For: -time.Second}} {
		if out, err := night(t, "whole", c); err == nil || out != "" {
			t.Errorf("%+v: %s%v", c, out, err)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("no line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := night(t, "whole", Command{Seeds: 1, Keep: bad}); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a damaged file: %v", err)
	}
}
