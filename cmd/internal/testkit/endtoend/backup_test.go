package endtoend

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream/servertest"
)

// ownRedis returns the address of a Redis that this test alone has, and may lose.
func ownRedis(t *testing.T) string {
	t.Helper()
	if passwords != nil {
		t.Skip("the test loses a Redis: beside servers with users it has none to lose")
	}
	r, err := servertest.StartRedis(servertest.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r.Addr()
}

func checkpointAt(t *testing.T, addr, model string) (*state.Checkpoint, error) {
	t.Helper()
	store, err := redis.New(redis.Config{Addr: addr, Model: model})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	c, _, err := store.Load(t.Context(), state.Head)
	return c, err
}

func savedAt(t *testing.T, addr, model string) string {
	t.Helper()
	c, err := checkpointAt(t, addr, model)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", c.ModelSHA256)
}

// Redis is lost some time after a backup. The learner goes on from the restored model, and
// makes the model that nothing has happened to.
func TestRestoreOfOnePartition(t *testing.T) {
	t.Parallel()
	const half, all = 200, 400
	first, second, backups := ownRedis(t), ownRedis(t), filepath.Join(t.TempDir(), "backups")
	model, file := modelName(t), writeMail(t, all)
	want := parseResult(t, mustOutput(t, "hamlet", "eval", "--json", "--table-bits", "14", file))
	learn := func(redis string) *process {
		p := start(t, "learner", "--model", model, "--kafka", kafkaAddr, "--redis", redis, "--table-bits", "14", "--http", "127.0.0.1:0",
			"--save-every", "50ms")
		p.httpAddr()
		return p
	}
	saved := func(redis string, n int64) func() bool {
		return func() bool {
			c, err := checkpointAt(t, redis, model)
			return err == nil && c.Position.Next == n
		}
	}
	learner := learn(first)
	mustOutput(t, "ingest", ingestFlags(model, file, "--limit", fmt.Sprint(half))...)
	await(t, "the learner has saved one half", saved(first, half))
	out := mustOutput(t, "hamlet", "backup", backups, "--model", model, "--redis", first, "--kafka", kafkaAddr)
	if !strings.Contains(out, fmt.Sprintf("needed from offset %d on", half)) {
		t.Errorf("the backup does not say which log it needs:\n%s", out)
	}
	mustOutput(t, "ingest", ingestFlags(model, file)...)
	await(t, "the learner has saved all", saved(first, all))

	restore := []string{"restore", backups, "--redis", second, "--kafka", kafkaAddr}
	if _, stderr, status := output(t, "hamlet", "restore", backups, "--replace", "--redis", first, "--kafka", kafkaAddr); status != 1 || !strings.Contains(stderr, "stop the learners of this model first") {
		t.Errorf("restore while a learner runs: status %d\n%s", status, stderr)
	}
	learner.stop()
	if got := savedAt(t, first, model); got != want.ModelSHA256 {
		t.Fatalf("before the loss the model is %s, eval's is %s", got, want.ModelSHA256)
	}
	mustOutput(t, "hamlet", "verify", backups)
	if out := mustOutput(t, "hamlet", restore...); !strings.Contains(out, fmt.Sprintf("%d follow", all-half)) {
		t.Errorf("restore says:\n%s", out)
	}
	learner = learn(second)
	await(t, "the learner has saved all again", saved(second, all))
	learner.stop()
	if got := savedAt(t, second, model); got != want.ModelSHA256 {
		t.Errorf("after the restore the model is %s, eval's is %s", got, want.ModelSHA256)
	}
}

// The whole disk of a hamlet up is lost. The model goes on with a new log. What it has learnt
// before is in it: the same events are duplicates there.
func TestRestoreIntoFolderOfUp(t *testing.T) {
	t.Parallel()
	const half, all = 100, 200
	model, file, backups, data := modelName(t), writeMail(t, all), filepath.Join(t.TempDir(), "backups"), t.TempDir()
	redis := ownRedis(t)
	want := parseResult(t, mustOutput(t, "hamlet", "eval", "--json", "--table-bits", "12", file))
	up := []string{"up", file, "--model", model, "--table-bits", "12", "--once", "--json"}
	mustOutput(t, "hamlet", append(up, "--limit", fmt.Sprint(half), "--redis", redis)...)
	mustOutput(t, "hamlet", "backup", backups, "--redis", redis)
	if _, stderr, status := output(t, "hamlet", "restore", backups, "--data", data); status != 1 || !strings.Contains(stderr, "there is no topic") {
		t.Errorf("a restore without its log: status %d\n%s", status, stderr)
	}
	mustOutput(t, "hamlet", "restore", backups, "--data", data, "--new-log")
	got := parseResult(t, mustOutput(t, "hamlet", append(up, "--data", data)...))
	if got.ModelSHA256 != want.ModelSHA256 {
		t.Errorf("after the restore and all events the model is %s, eval's is %s", got.ModelSHA256, want.ModelSHA256)
	}
}
