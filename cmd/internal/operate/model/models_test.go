package model_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/trust"
	operate "hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
	"hamlet/state/redis"
)

// A rig is a Redis in which models are saved by hand.
type rig struct {
	t      *testing.T
	server *miniredis.Miniredis
	dir    string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{t: t, server: miniredis.RunT(t), dir: t.TempDir()}
}

func (r *rig) store(name string) *redis.Store {
	r.t.Helper()
	store, err := redis.New(redis.Config{Addr: r.server.Addr(), Model: name, Keep: 5})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { store.Close() })
	return store
}

// made returns a model that has learnt n messages of two sources. Those of the source bad
// have the wrong label.
func made(t *testing.T, n int, change func(*model.Config)) *model.Model {
	t.Helper()
	cfg := model.Config{TableBits: 8, DuplicateWindow: 100, TextExperts: []string{"header-words"}}
	if change != nil {
		change(&cfg)
	}
	m, err := model.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		body := fmt.Sprintf("minutes of meeting %d", i%7)
		spam := i%2 == 0
		if spam {
			body = fmt.Sprintf("cheap pills %d", i%7)
		}
		ex := model.Example{ID: fmt.Sprint(i), Source: "desk", Spam: spam,
			Body: model.Body{Tenant: "t", Message: &feature.Message{Body: []byte(body), BodyBytes: len(body)}}}
		if i%5 == 0 {
			ex.Source, ex.Spam = "bad", !spam
		}
		if _, err := m.Apply(&ex); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func checkpoint(t *testing.T, m *model.Model, next int64) *state.Checkpoint {
	t.Helper()
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &state.Checkpoint{Schema: 1, Numerics: m.Numerics(), Config: m.Config().JSON(), Events: m.Events(),
		Position: state.Position{Next: next}, Model: b, Saved: time.Now().Add(-90 * time.Minute)}
}

// save saves a checkpoint as a learner does.
func (r *rig) save(name string, c *state.Checkpoint) {
	r.t.Helper()
	store := r.store(name)
	var err error
	lease, err := store.Seize(r.t.Context(), "w")
	if err != nil {
		r.t.Fatal(err)
	}
	c.Epoch, c.Writer = lease.Epoch, lease.Writer
	if _, err := store.Save(r.t.Context(), c); err != nil {
		r.t.Fatal(err)
	}
}

// run runs `hamlet model` with the arguments. DIR in them is the rig's folder.
func (r *rig) run(args string) (string, error) {
	r.t.Helper()
	var g struct {
		Model operate.Command `cmd:""`
	}
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	args = strings.ReplaceAll(args, "DIR", r.dir)
	command, err := settings.Parse("hamlet", "", &g, append([]string{"model", "--redis", r.server.Addr()}, strings.Fields(args)...), stdio)
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(command.Command(), " ")
	err = g.Model.Run(r.t.Context(), cli.Subcommand(rest), cli.IO{Out: &out, Err: &errs})
	if errs.Len() > 0 {
		r.t.Errorf("%s: standard error %q", args, errs.String())
	}
	return out.String(), err
}

// must runs a command that succeeds and prints what the patterns match.
func (r *rig) must(args string, want ...string) string {
	r.t.Helper()
	out, err := r.run(args)
	if err != nil {
		r.t.Fatalf("%s: %v", args, err)
	}
	for _, pattern := range want {
		if !regexp.MustCompile(pattern).MatchString(out) {
			r.t.Errorf("%s: printed %q, want %q in it", args, out, pattern)
		}
	}
	return out
}

// fails runs a command that ends with a status and says what is wanted.
func (r *rig) fails(args string, status int, want string) {
	r.t.Helper()
	out, err := r.run(args)
	if cli.Status(err) != status || err == nil || !strings.Contains(err.Error()+out, want) {
		r.t.Errorf("%s: %v, status %d, printed %q; want %q and %d", args, err, cli.Status(err), out, want, status)
	}
}

// object runs a command with --json.
func (r *rig) object(args string) map[string]any {
	r.t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.must(args+" --json")), &v); err != nil {
		r.t.Fatalf("%s: %v", args, err)
	}
	return v
}

func TestList(t *testing.T) {
	r := newRig(t)
	r.must("list", "There is no model yet")
	if v := r.object("list"); len(v["models"].([]any)) != 0 {
		t.Errorf("no models in JSON: %v", v)
	}
	m := made(t, 20, nil)
	r.save("spam", checkpoint(t, m, 20))
	r.save("spam", checkpoint(t, m, 25))
	r.save("clean", checkpoint(t, made(t, 10, nil), 10))
	if err := r.store("spam").Pin(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	numerics := regexp.QuoteMeta(m.Numerics())
	r.must("list", `(?m)^clean +1 +10 +1h +\d\.\d MB +`+numerics+` +1 +–$\n^spam +1 +20 +1h .* 1 +1$`)
	if out := r.must("list clean"); strings.Contains(out, "spam") {
		t.Errorf("one model: %s", out)
	}
	spam := r.object("list spam")["models"].([]any)[0].(map[string]any)
	if spam["model"] != "spam" || spam["events"] != 20.0 || len(spam["partitions"].([]any)) != 1 {
		t.Errorf("in JSON: %v", spam)
	}
	r.fails("list other", cli.StatusFailed, "the store keeps no model other")
	r.fails("list A", cli.StatusUsage, "is not a name of a model")
}

func TestShow(t *testing.T) {
	r := newRig(t)
	m := made(t, 100, func(cfg *model.Config) { cfg.Standing = "none" })
	if err := m.SetRole("bad", trust.Muted); err != nil {
		t.Fatal(err)
	}
	r.save("default", checkpoint(t, m, 100))
	later := made(t, 110, nil)
	r.save("default", checkpoint(t, later, 110))
	r.must("show", `default\n +version +2, answers come from 2\n +kept +2, 1\n`, `settings .*table_bits = 8`,
		`events +110, \d+\.\d % spam`, `sources +desk: ordinary, 88 labels of text, flip rate`, `alarms +none`)
	r.must("show default@1", `version +1, answers come from 2`, `standing = none`, `bad: muted, 20 labels`)
	v := r.object("show default default@1")["models"].([]any)
	one := v[1].(map[string]any)
	if len(v) != 2 || one["events"] != 100.0 || one["config"].(map[string]any)["standing"] != "none" || len(one["sources"].([]any)) != 2 {
		t.Errorf("in JSON: %v", v)
	}
	r.fails("show default@9", cli.StatusFailed, "no checkpoint")
	r.fails("show default@0", cli.StatusUsage, "numbered from 1")
	r.fails("show other", cli.StatusFailed, "the store keeps no model other")
}

// A model that hamlet 0.1.0 learnt from several partitions does not hide the others.
func TestListWithAModelOfPartitions(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"alpha", "each", "news", "spam"} {
		r.save(name, checkpoint(t, made(t, 20, nil), 20))
	}
	manifest := []byte(r.server.HGet("hamlet:{news}:0:version:1", "manifest"))
	manifest[11] = 3 // the version that 0.1.0 wrote
	r.server.HSet("hamlet:{news}:0:version:1", "manifest", string(manifest))
	if _, err := r.server.SAdd("hamlet:{each}:0:partitions", "1"); err != nil {
		t.Fatal(err)
	}
	r.must("list", `(?m)^alpha +1 +20 .*\neach +– +– .*\nnews +– +– .*\nspam +1 +20 `,
		`Model each is not read: .*hamlet log merge --from each.*'hamlet:\{each\}:\*'`,
		`Model news is not read: .*hamlet order export.*'hamlet:\{news\}:\*'`)
	all := r.object("list")["models"].([]any)
	if news := all[2].(map[string]any); len(all) != 4 || len(news["partitions"].([]any)) != 0 || news["error"] == nil {
		t.Errorf("in JSON: %v", all)
	}
	r.fails("list spam news", cli.StatusFailed, "'hamlet:{news}:*'")
}

// The page of a migration compares the hash that eval prints with that of a model in Redis.
func TestThePageTellsWhereTheHashIs(t *testing.T) {
	page, err := os.ReadFile("../../../../deploy/SERVICES.md")
	if err != nil {
		t.Fatal(err)
	}
	told := regexp.MustCompile(`# model_sha256 …\n *hamlet model (.+?) +# …`).FindSubmatch(page)
	if told == nil {
		t.Fatal("the page names no command behind that which prints model_sha256")
	}
	r := newRig(t)
	c := checkpoint(t, made(t, 20, nil), 20)
	r.save("one", c)
	r.must(string(told[1]), fmt.Sprintf("sha256 +%x\n", c.ModelSHA256))
}

func (r *rig) write(name string, b []byte) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), b, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// A promoted model is named where the model is shown in whose place it answers.
func TestPromotedModelIsNamed(t *testing.T) {
	r := newRig(t)
	store := r.store("spam")
	r.save("spam", checkpoint(t, made(t, 20, nil), 20))
	if err := store.Promote(t.Context(), state.Promotion{Model: "cand", Since: time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC), By: "somebody"}); err != nil {
		t.Fatal(err)
	}
	r.must("list spam", "Answers of spam come from model cand since 2026-11-23T20:00:00Z.")
	r.must("show spam", "promoted", "model cand, which answers in its place since 2026-11-23T20:00:00Z")
	r.must("list spam --json", `"answers":{"model":"cand","since":"2026-11-23T20:00:00Z","by":"somebody"}`)
	r.must("show spam --json", `"answers":{"model":"cand"`)
	if err := store.Promote(t.Context(), state.Promotion{Model: "spam"}); err != nil {
		t.Fatal(err)
	}
	if out := r.must("list spam"); strings.Contains(out, "cand") {
		t.Error(out)
	}
}
