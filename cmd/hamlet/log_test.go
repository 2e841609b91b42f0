package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/program"
	"hamlet/cmd/internal/show/report"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/topics"
)

// A learner makes the model that eval --kafka finds in the cluster, and eval --log in what hamlet
// log export wrote, and in what was imported from it.
func TestEvalReplaysALog(t *testing.T) {
	const n, patience = 200, 2 * time.Minute
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	r, err := servertest.StartRedis(servertest.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cfg := kafka.Config{Brokers: []string{k.Addr()}}
	if err := cfg.Ensure(t.Context(), stream.EventsTopic("m"), 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	log, err := kafka.NewLog(cfg, stream.EventsTopic("m"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for i := range n {
		e := stream.Event{ID: fmt.Sprint("e", i), Source: "s", Tenant: "t", Label: stream.Ham, Body: stream.Body{Kind: stream.Text, Text: fmt.Sprint("lunch ", i%7)}}
		if i%3 == 0 {
			e.Label, e.Body.Text = stream.Spam, fmt.Sprint("prize ", i%5)
		}
		value, headers, err := e.EncodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Append(t.Context(), stream.Record{Key: fmt.Append(nil, i), Value: value, Headers: headers}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- program.Learner(ctx, []string{"--kafka", k.Addr(), "--redis", r.Addr(), "--model", "m", "--table-bits", "14",
			"--save-every", "50ms"}, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	}()
	store, err := redis.New(redis.Config{Addr: r.Addr(), Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var head *state.Checkpoint
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for ; head == nil || head.Events < n; <-poll.C {
		if len(ended) > 0 {
			t.Fatalf("the learner ended: %v", <-ended)
		}
		head, _, _ = store.Load(t.Context(), state.Head) // none at first
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	say := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return out.String()
	}
	wantModel := func(args ...string) {
		t.Helper()
		var result struct {
			Model string `json:"model_sha256"`
		}
		out := say(append([]string{"eval", "--table-bits", "14", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &result); err != nil || result.Model != fmt.Sprintf("%x", head.ModelSHA256) {
			t.Errorf("%q: eval prints %s, the learner saved %x: %v", args, out, head.ModelSHA256, err)
		}
	}
	wantModel("--kafka", k.Addr(), "--model", "m")
	dir := t.TempDir()
	for _, name := range []string{"log.jsonl", "log.zst"} {
		file := filepath.Join(dir, name)
		if got := say("log", "export", file, "--kafka", k.Addr(), "--model", "m"); !strings.HasPrefix(got, "200 records") {
			t.Errorf("export: %s", got)
		}
		wantModel("--log", file)
		wantModel("--order", file) // the flag of 0.1.0
		if got := say("log", "import", file, "--kafka", k.Addr(), "--model", "copy"); !strings.HasPrefix(got, "200 records") {
			t.Errorf("import: %s", got)
		}
		wantModel("--kafka", k.Addr(), "--model", "copy")
	}

	// The services' keys of a file and variables do not turn eval into a replay.
	config := filepath.Join(dir, "hamlet.yaml")
	source := filepath.Join(dir, "one.jsonl")
	if err := errors.Join(os.WriteFile(config, []byte("kafka: [\"127.0.0.1:1\"]\nmodel: m\n"), 0o600),
		os.WriteFile(source, []byte(`{"id":"1","label":"spam","text":"prize"}`+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HAMLET_KAFKA", "127.0.0.1:1")
	if got := say("eval", source, "--config", config, "--json"); !strings.Contains(got, `"events":1`) {
		t.Errorf("eval of a source beside the services' file: %s", got)
	}
	wantModel("--kafka", k.Addr(), "--config", config)
	if err := os.WriteFile(config, []byte("eval:\n  kafka: [\"127.0.0.1:1\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	topics.Make(t, cfg, stream.EventsTopic("four"), 4)
	for want, args := range map[string][]string{
		"eval.kafka: this is for the command line alone": {"--config", config, source},
		"give one of them":             {"--kafka", k.Addr(), "--log", source},
		"is in place of a source":      {"--kafka", k.Addr(), source},
		"--shuffle is about a source":  {"--kafka", k.Addr(), "--shuffle", "1"},
		"this is no log":               {"--log", source},
		"there is no topic":            {"--kafka", k.Addr(), "--model", "other"},
		"hamlet log merge --from four": {"--kafka", k.Addr(), "--model", "four"},
	} {
		err := run(t.Context(), append([]string{"eval"}, args...), cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("eval %q: %v, want %q", args, err, want)
		}
	}
}

// up makes the model that eval finds in the cluster. It counts all events once, and goes on
// where it was.
func TestUpGoesOn(t *testing.T) {
	t.Parallel()
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	r, err := servertest.StartRedis(servertest.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	learnt := 0
	for i, n := range []int{150, 30} {
		var events strings.Builder
		for j := range n {
			fmt.Fprintf(&events, `{"id":"%d/%d","tenant":"t%d","label":"%s","text":"words of %d"}`+"\n", i, j, j%16, []string{"spam", "ham"}[j%2], j)
		}
		file := filepath.Join(t.TempDir(), "events.jsonl")
		if err := os.WriteFile(file, []byte(events.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		args := []string{"up", file, "--experts=lean", "--table-bits=14", "--once", "--json", "--kafka", k.Addr(), "--redis", r.Addr(), "--log-level=error"}
		if err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}); err != nil {
			t.Fatal(err)
		}
		var got, replayed report.Result
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		args = []string{"eval", "--kafka", k.Addr(), "--experts=lean", "--table-bits=14", "--json"}
		if err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &replayed); err != nil {
			t.Fatal(err)
		}
		if got.Summary.Events != n || got.ResumedAt != learnt || got.ModelSHA256 == "" || got.ModelSHA256 != replayed.ModelSHA256 {
			t.Errorf("run %d: %d events, resumed at %d, %s; want %d, %d, %s", i, got.Summary.Events, got.ResumedAt, got.ModelSHA256, n, learnt, replayed.ModelSHA256)
		}
		learnt += n
	}
}
