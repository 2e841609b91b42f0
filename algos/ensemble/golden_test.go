package ensemble

import (
	"bytes"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// The golden files were made by `go test ./algos/ensemble -run TestGolden$ -update`.
// A version's bytes stay readable, and the same window makes them again on every
// CPU: `GOAMD64=v3 go test` fuses, `GODEBUG=cpu.fma=off` does not.
func TestGolden(t *testing.T) {
	w := drawWindow(10, 120, 6)
	for _, e := range buildAll(t, w) {
		path := filepath.Join("testdata", strings.ReplaceAll(string(e.Kind()), ".", "-")+"_v1.bin")
		got := encode(t, e)
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the window no longer makes these bytes; if that is meant, it is a new version of the numerics", e.Kind())
		}
		var read Ensemble
		if err := read.UnmarshalBinary(want); err != nil {
			t.Fatal(err)
		}
		for i := range w.Labels {
			if a, b := e.LogOdds(w.row(i)), read.LogOdds(w.row(i)); math.Float64bits(a) != math.Float64bits(b) {
				t.Fatalf("%s: log-odds %v, read back %v", e.Kind(), a, b)
			}
		}
	}
}

// The same bytes on a CPU without fused multiply-add.
func TestGoldenWithoutFMA(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestGolden$")
	cmd.Env = append(os.Environ(), "GODEBUG=cpu.fma=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", cmd, err, out)
	}
}
