package endtoend

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
)

// writeMail writes n synthetic mails as JSON Lines and returns the file.
func writeMail(t *testing.T, n int) string {
	t.Helper()
	items, err := synthetic.Items(synthetic.Config{Seed: 7}, n, source.FlipConfig{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mail.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var line []byte
	for item, err := range items {
		if err != nil {
			t.Fatal(err)
		}
		if line, err = item.Event.AppendJSON(line[:0]); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// learnerFlags are the flags of a test's learner.
func learnerFlags(model string, more ...string) []string {
	return append([]string{"--model", model, "--kafka", kafkaAddr, "--redis", redisAddr, "--table-bits", "14",
		"--http", "127.0.0.1:0"}, more...)
}

func ingestFlags(model, file string, more ...string) []string {
	return append([]string{"--model", model, "--kafka", kafkaAddr, file}, more...)
}

// checkpoint loads what a model's partition 0 has saved.
func checkpoint(t *testing.T, model string) (*state.Checkpoint, error) {
	t.Helper()
	store, err := redis.New(redisAs(admin, model))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	c, _, err := store.Load(t.Context(), state.Head)
	return c, err
}

func savedSHA256(t *testing.T, model string) string {
	t.Helper()
	c, err := checkpoint(t, model)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", c.ModelSHA256)
}

// Messages go through ingest, Kafka, the learner, Redis and the scorer. A NATS request
// gets the probability that the learner's model gives. The model equals eval's.
func TestFromLabelToScore(t *testing.T) {
	const n = 1200
	model, file := modelName(t), writeMail(t, n)
	want := parseResult(t, mustOutput(t, "hamlet", "eval", "--json", "--table-bits", "14", file))

	scorer := start(t, "scorer", "--model", model, "--nats", natsURL, "--redis", redisAddr, "--http", "127.0.0.1:0")
	scorer.httpAddr()
	message := filepath.Join(t.TempDir(), "message.eml")
	if err := os.WriteFile(message, []byte("Subject: hello\nFrom: a@example.org\n\nShall we have lunch on Friday?\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := []string{"score", "--timeout", "1s", "--model", model, "--server", natsURL, "--json", message}
	await(t, "the scorer says that it has no model yet", func() bool {
		_, stderr, status := output(t, "hamlet", ask...)
		return status == 1 && strings.Contains(stderr, "503")
	})

	learner := start(t, "learner", learnerFlags(model, "--save-every", "100ms")...)
	addr := learner.httpAddr()
	mustOutput(t, "ingest", ingestFlags(model, file)...)
	await(t, "the learner has read all", func() bool { return metric(addr, "hamlet_learner_next_offset") == n })
	learner.stop()
	if got := savedSHA256(t, model); got != want.ModelSHA256 {
		t.Errorf("the services made model %s, eval %s", got, want.ModelSHA256)
	}

	var verdict stream.Verdict
	await(t, "the scorer serves the saved model", func() bool {
		stdout, stderr, status := output(t, "hamlet", ask...)
		if status != 0 {
			t.Logf("score: %s", stderr)
			return false
		}
		if err := json.Unmarshal([]byte(stdout), &verdict); err != nil {
			t.Fatalf("%q: %v", stdout, err)
		}
		return verdict.Model.SHA256 == want.ModelSHA256
	})
	if verdict.P <= 0 || verdict.P >= 1 || verdict.Interval[0] > verdict.Interval[1] {
		t.Errorf("verdict %+v is not one", verdict)
	}
	if len(verdict.Model.Positions) != 1 || verdict.Model.Positions[0] != n {
		t.Errorf("positions are %v, want [%d]", verdict.Model.Positions, n)
	}
	scorer.stop()
}

// kill −9 of the learner in mid-stream, five times: the model is the same.
func TestKillLearner(t *testing.T) {
	const n, kills = 1500, 5
	model, file := modelName(t), writeMail(t, n)
	want := parseResult(t, mustOutput(t, "hamlet", "eval", "--json", "--table-bits", "14", file))
	ingest := start(t, "ingest", ingestFlags(model, file, "--rate", "250")...)
	for k := range kills {
		learner := start(t, "learner", learnerFlags(model, "--save-every", "50ms")...)
		addr := learner.httpAddr()
		goal := float64((k + 1) * n / (kills + 1))
		await(t, fmt.Sprintf("offset %v is reached and something saved", goal), func() bool {
			if metric(addr, "hamlet_learner_next_offset") < goal || !isActive(addr) {
				return false
			}
			_, err := checkpoint(t, model)
			return err == nil
		})
		learner.kill()
		if !strings.Contains(learner.log(), "checkpoint") && k > 0 {
			t.Errorf("the learner did not go on from a checkpoint after kill %d:\n%s", k, learner.log())
		}
	}
	learner := start(t, "learner", learnerFlags(model)...)
	addr := learner.httpAddr()
	await(t, "the learner has read all", func() bool { return metric(addr, "hamlet_learner_next_offset") == n && isActive(addr) })
	learner.stop()
	<-ingest.done
	if got := savedSHA256(t, model); got != want.ModelSHA256 {
		t.Errorf("after %d kills the model is %s, eval's is %s", kills, got, want.ModelSHA256)
	}
}

// kill −9 of hamlet up with --data in mid-stream, five times: ingest goes on
// where the topic ends, the learner where the state ends.
func TestKillUp(t *testing.T) {
	const n, kills = 1500, 5
	file, data := writeMail(t, n), t.TempDir()
	want := parseResult(t, mustOutput(t, "hamlet", "eval", "--json", "--table-bits", "14", file))
	args := []string{"up", file, "--data", data, "--table-bits", "14", "--json", "--save-every", "50ms"}
	for k := range kills { // without --once, so that it is there to be killed however late this process is
		p := start(t, "hamlet", append(args, "--rate", "400", "--http", "127.0.0.1:0", "--listen-nats", "127.0.0.1:0")...)
		addr := p.upHTTP()
		goal := float64((k + 1) * n / (kills + 1))
		await(t, fmt.Sprintf("offset %v is reached", goal), func() bool {
			return metric(addr, "hamlet_learner_next_offset") >= goal
		})
		p.kill()
	}
	got := parseResult(t, mustOutput(t, "hamlet", append(args, "--once")...))
	if got.ModelSHA256 != want.ModelSHA256 {
		t.Errorf("after %d kills the model is %s, eval's is %s", kills, got.ModelSHA256, want.ModelSHA256)
	}
}

// up --once prints the same as eval, with any flags.
func TestUpIsEval(t *testing.T) {
	file := writeMail(t, 400)
	withdrawals := filepath.Join(t.TempDir(), "withdrawals.jsonl")
	if err := os.WriteFile(withdrawals, []byte(`{"id":"a","label":"spam","text":"cheap pills"}
{"id":"b","label":"ham","text":"lunch on friday"}
{"id":"c","label":"spam","action":"relearn","of":"b","text":"lunch on friday"}
{"id":"d","action":"unlearn","of":"a","text":"cheap pills"}
{"id":"e","action":"unlearn","of":"a","text":"cheap pills"}
{"id":"b","label":"ham","text":"lunch on friday"}
not an event
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"plain", []string{file}},
		{"two sources", []string{"--source", "good=.7", "--source", "other=.3", file}},
		{"shuffle and limit", []string{"--shuffle", "5", "--limit", "300", "--from", "100", file}},
		{"withdrawals", []string{withdrawals}},
		{"synthetic mail that changes", []string{"--generate", "900", "--mail-seed", "4", "--new-policy", "400", "--new-campaign", "500"}},
		{"a bad feed", []string{"--generate", "900", "--mail-seed", "4", "--bad-feed", "300"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"--json", "--table-bits", "14"}, c.args...)
			want := parseResult(t, mustOutput(t, "hamlet", append([]string{"eval"}, args...)...))
			got := parseResult(t, mustOutput(t, "hamlet", append([]string{"up", "--once"}, args...)...))
			if c.name == "a bad feed" { // eval alone knows the true labels
				want, got = result{ModelSHA256: want.ModelSHA256}, result{ModelSHA256: got.ModelSHA256}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("eval and up differ (-eval +up):\n%s", d)
			}
		})
	}
}

// eval and up both fail on a source without a single good event.
func TestNothingToLearnFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(file, []byte("{}\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"eval", file}, {"up", "--once", file}} {
		if _, stderr, status := output(t, "hamlet", args...); status != 1 || !strings.Contains(stderr, "nothing to learn from") {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
}

// An ingest that is stopped in mid-stream ends in order.
func TestStopIngest(t *testing.T) {
	model, file := modelName(t), writeMail(t, 500)
	p := start(t, "ingest", ingestFlags(model, file, "--rate", "5", "--http", "127.0.0.1:0")...) // 100 s long
	addr := p.httpAddr()
	await(t, "events are sent", func() bool { return metric(addr, "hamlet_ingest_events_total") > 0 })
	p.stop()
}

// The example configuration serves all three services, and hamlet.
func TestExampleConfiguration(t *testing.T) {
	model, file := modelName(t), writeMail(t, 20)
	const example = "../../../../deploy/hamlet.yaml"
	// This error comes only after every value of the file was read.
	for _, c := range []struct {
		name, wrong string
		args        []string
	}{
		{"ingest", "--deadline", []string{"--token", "x"}},
		{"learner", "--save-every", nil},
		{"scorer", "--poll-interval", nil},
	} {
		_, stderr, status := output(t, c.name, append(c.args, "--config", example, c.wrong, "0s")...)
		if want := c.name + ": " + c.wrong + ": 0s is"; status != 2 || !strings.HasPrefix(stderr, want) {
			t.Errorf("%s: status %d, %s\nwant 2 and %q", c.name, status, stderr, want)
		}
	}
	// The services start with this test's servers.
	own := []string{"--config", example, "--model", model, "--http", "127.0.0.1:0"}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"ingest", []string{"--kafka", kafkaAddr, "--replication", "1", "--token", "x"}},
		{"learner", []string{"--kafka", kafkaAddr, "--replication", "1", "--redis", redisAddr, "--nats", natsURL}},
		{"scorer", []string{"--redis", redisAddr, "--nats", natsURL}},
	} {
		p := start(t, c.name, append(own, c.args...)...)
		p.says(regexp.MustCompile(`"msg":"http","addr":"([^"]+)"`))
		p.stop()
	}
	mustOutput(t, "hamlet", "eval", "--config", example, file)
}
