package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The programs of examples do what they say against hamlet up. HAMLET_BIN names hamlet;
// without it the test is skipped. HAMLET_EXAMPLES names a folder with the packages that the
// examples need: venv, of Python, and node_modules. Without it those over HTTP run alone. Those
// over Kafka run if HAMLET_KAFKA names one with passwords (deploy/servers start --acl): up then has
// its log there.
func TestExamples(t *testing.T) {
	hamlet := os.Getenv("HAMLET_BIN")
	if hamlet == "" {
		t.Skip("HAMLET_BIN names no hamlet")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	packages := os.Getenv("HAMLET_EXAMPLES")
	python := "python3"
	if packages != "" {
		python = packages + "/venv/bin/python"
	}
	kafka := packages != "" && os.Getenv("HAMLET_KAFKA") != ""
	if !kafka {
		t.Log("there is no Kafka: the examples that label over one do not run")
	}
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "HAMLET_NATS") || strings.HasPrefix(variable, "HAMLET_REDIS") ||
			!kafka && strings.HasPrefix(variable, "HAMLET_KAFKA")
	})
	env = append(env, "XDG_RUNTIME_DIR="+t.TempDir(), "HAMLET_TOKEN=secret", "NODE_PATH="+packages+"/node_modules")

	// Labels that go bad raise an alarm, which the examples read. Synthetic mail is the
	// laboratory's; over HTTP a hamlet without it will do.
	events, source := 1500, []string{"--generate", "1500", "--bad-feed", "700"}
	if packages == "" {
		events = 50
		texts := filepath.Join(t.TempDir(), "texts.txt")
		if err := os.WriteFile(texts, []byte(strings.Repeat("spam\tYou won a prize\nham\tMinutes of the meeting\n", events/2)), 0o600); err != nil {
			t.Fatal(err)
		}
		source = []string{"--format", "text", texts}
	}
	if kafka {
		source = append(source, "--demo")
	}
	up := exec.CommandContext(ctx, hamlet, append([]string{"up", "--http", "127.0.0.1:0", "--listen-nats", "127.0.0.1:0", "--token", "secret"}, source...)...)
	up.Env = env
	said, err := os.CreateTemp(t.TempDir(), "up")
	if err != nil {
		t.Fatal(err)
	}
	up.Stderr, up.Stdout = said, io.Discard
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	defer func() {
		_ = up.Process.Signal(os.Interrupt)
		if err := <-ended; err != nil {
			t.Errorf("up ended with %v: %s", err, read(t, said.Name()))
		}
	}()
	for !strings.Contains(read(t, said.Name()), "serving on ") {
		select {
		case err := <-ended:
			ended <- err
			t.Fatal("up does not serve")
		case <-ctx.Done():
			t.Fatalf("up does not serve: %s", read(t, said.Name()))
		case <-time.After(50 * time.Millisecond):
		}
	}
	door := regexp.MustCompile(`http://[0-9.:]+`).FindString(read(t, said.Name()))
	env = append(env, "HAMLET_HTTP="+door)
	address := regexp.MustCompile(`nats://([0-9.:]+)`).FindStringSubmatch(read(t, said.Name()))[1] // others may run
	out := run(t, ctx, env, hamlet, "env", "--for", "sh", address)
	for _, m := range regexp.MustCompile(`(?m)^export (\w+)='(.*)'$`).FindAllStringSubmatch(out, -1) {
		env = append(env, m[1]+"="+m[2])
	}

	examples := map[string]string{"label_http": `^1\n$`}
	if packages != "" {
		examples["ask_nats"] = `^(spam|ham|unsure) 0\.\d+ \[`
		examples["alerts"] = `(?m)^default\.0\.\d+ 1 suspected unknown$(.|\n)*^default\.0\.\d+ \d raised label-noise$`
	}
	if kafka {
		examples["label_kafka"] = `^\d+\n$`
	}
	for name, wanted := range examples {
		for _, command := range [][]string{{python, "examples/" + name + ".py"}, {"node", "examples/" + name + ".cjs"}} {
			if out := run(t, ctx, env, command...); !regexp.MustCompile(wanted).MatchString(out) {
				t.Errorf("%s prints %q, want %s", command[1], out, wanted)
			}
		}
	}
	// The labels are learnt: two over HTTP, and two over Kafka.
	want := events + 2
	if kafka {
		want += 2
	}
	for learnt(t, ctx, door) < want {
		select {
		case <-ctx.Done():
			t.Fatalf("%d events are learnt, want %d", learnt(t, context.Background(), door), want)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func run(t *testing.T, ctx context.Context, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = env
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, &said)
	}
	return string(out)
}

// learnt returns how many events the model has learnt.
func learnt(t *testing.T, ctx context.Context, door string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, door+"/v1/info", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer secret")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var info struct {
		Events int `json:"events"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&info); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(fmt.Errorf("%s: %w", answer.Status, err))
	}
	return info.Events
}
