package endtoend

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/stream/nats"
)

// A new release with another numerics takes over without a lost request: its learner is a shadow
// beside the first, its scorers come first, its model is promoted, goes back, is promoted again,
// and the first learner is retired. Scorers of the old release refuse its model.
func TestNewNumerics(t *testing.T) {
	if !nightly {
		t.Skip("builds programs of another numerics: HAMLET_NIGHTLY=1 runs it")
	}
	t.Parallel()
	folder, there := nextNumerics(t)
	t.Run("numerics", func(t *testing.T) {
		u := newUpgrading(t)
		u.takeOver(folder, model.CurrentNumerics(), there, true)
	})
}

// takeOver lets a learner of the programs in folder, whose numerics is there, take over from u's, whose numerics is
// here, and goes back and forth if it shall.
func (u *upgrading) takeOver(folder, here, there string, back bool) {
	t, cand := u.t, u.model+"-c"
	flags := append([]string{"--model", cand, "--events-of", u.model, "--kafka", u.servers.kafka, "--redis", u.servers.redis,
		"--http", "127.0.0.1:0", "--save-every", "100ms"}, u.modelFlags()...)
	shadow := startFrom(t, folder, "learner", append(flags, "--shadow")...)
	answers := func(name, numerics string) {
		t.Helper()
		conn, err := nats.Connect(natsAs("client"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		client, err := nats.NewClient(conn, u.model)
		if err != nil {
			t.Fatal(err)
		}
		await(t, "answers come from "+name, func() bool {
			for range 10 { // several scorers answer
				info, err := client.Info(t.Context())
				if err != nil || info.Model.Name != name || info.Numerics != numerics {
					return false
				}
			}
			return true
		})
	}
	promote := func(args ...string) (string, int) {
		t.Helper()
		stdout, stderr, status := output(t, "hamlet", append([]string{"model", "promote", "--model", u.model, "--wait", "2m",
			"--kafka", u.servers.kafka, "--redis", u.servers.redis, "--nats", natsURL}, args...)...)
		return stdout + stderr, status
	}
	var refusal string
	await(t, "the old scorers do not read the candidate, once its learner has saved one", func() bool {
		out, status := promote(cand)
		if status != 1 {
			t.Fatalf("status %d: %s", status, out)
		}
		refusal = out
		return !strings.Contains(out, "the store keeps no version of model "+cand)
	})
	if !strings.Contains(refusal, "2 of 2 scorers of "+u.model+" do not read models of numerics "+there) {
		t.Fatal(refusal)
	}
	u.scorers(folder)
	answers(u.model, here)
	ways := []bool{false}
	if back {
		ways = []bool{false, true, false}
	}
	for _, back := range ways {
		args, name, numerics := []string{cand}, cand, there
		if back {
			args, name, numerics = []string{"--back"}, u.model, here
		}
		if out, status := promote(args...); status != 0 {
			t.Fatalf("promote %v: status %d: %s", args, status, out)
		}
		answers(name, numerics)
	}
	await(t, "both have written what they predicted", func() bool {
		stdout, _, status := output(t, "hamlet", "model", "compare", u.model, cand, "--burn-in", "10", "--json", "--kafka", u.servers.kafka)
		var r struct{ Events int }
		return status == 0 && json.Unmarshal([]byte(stdout), &r) == nil && r.Events > 100
	})

	// Retire the first: the candidate's learner orders what comes next.
	for _, p := range u.learning {
		p.stop()
	}
	shadow.kill()
	heir := startFrom(t, folder, "learner", flags...)
	u.awaitActive(heir)
	u.stopFeed()
	u.stopAsk()
	u.asking.Wait()
	if n := u.lost.Load(); n > 0 {
		t.Errorf("%d of %d requests are lost: %v", n, n+u.answered.Load(), *u.failure.Load())
	}
	t.Logf("%d requests answered, the slowest in %v; %d records sent", u.answered.Load(), time.Duration(u.longest.Load()).Round(time.Millisecond), u.count())
}

// nextNumerics builds programs whose numerics are one higher, and returns their folder and those.
func nextNumerics(t *testing.T) (folder, numerics string) {
	t.Helper()
	here, err := strconv.Atoi(model.CurrentNumerics())
	if err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs("../../../../algos/model/adopt.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	was := fmt.Sprintf("const mathematics = %d\n", here)
	if strings.Count(string(text), was) != 1 {
		t.Fatalf("%s lacks %q", source, was)
	}
	folder = t.TempDir()
	changed, overlay := filepath.Join(folder, "adopt.go"), filepath.Join(folder, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		changed: []byte(strings.Replace(string(text), was, fmt.Sprintf("const mathematics = %d\n", here+1), 1)),
		overlay: list,
	} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"learner", "scorer"} {
		build := exec.Command("go", "build", "-overlay", overlay, "-o", folder, "hamlet/cmd/"+name)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	return folder, strconv.Itoa(here + 1)
}
