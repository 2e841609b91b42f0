package sources_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/text"
	"hamlet/algos/trust"
	"hamlet/cmd/internal/operate/sources"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/topics"
)

// run runs `hamlet sources` with the arguments.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir()) // no `hamlet up` runs
	var g struct {
		Sources sources.Command `cmd:""`
		cli.ProgramFlags
	}
	var stdout, stderr bytes.Buffer
	command, err := settings.Parse("hamlet", "", &g, append([]string{"sources"}, args...), cli.IO{Out: &stdout, Err: &stderr})
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(command.Command(), " ")
	err = g.Sources.Run(t.Context(), cli.Subcommand(rest), cli.IO{Out: &stdout, Err: &stderr})
	return stdout.String(), err
}

// learnt returns a model that has learnt n texts, alternately of the sources. A liar calls
// each the other thing.
func learnt(t *testing.T, n int, from ...string) *model.Model {
	t.Helper()
	m, err := model.New(model.Config{TableBits: 8, TextExperts: []string{text.Lean}, Alarms: model.Alarms{Off: true}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		words := fmt.Sprint("minutes of the meeting ", i%7)
		if i%2 == 0 {
			words = fmt.Sprint("cheap pills ", i%7)
		}
		source := from[i/2%len(from)]
		if i < 200 {
			source = from[0]
		}
		ex := model.Example{ID: fmt.Sprint(i), Source: source, Spam: (i%2 == 0) != (source == "liar"),
			Body: model.Body{Message: &feature.Message{Body: []byte(words), BodyBytes: len(words)}}}
		if _, err := m.Apply(&ex); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// The liar is accused, and a source that has only a role is listed.
func TestSources(t *testing.T) {
	server := miniredis.RunT(t)
	store, err := redis.New(redis.Config{Addr: server.Addr(), Model: "default"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := run(t, "--redis", server.Addr()); err == nil || !strings.Contains(err.Error(), "no model default was saved") {
		t.Errorf("nothing is saved: %v", err)
	}
	m := learnt(t, 400, "desk", "liar", strings.Repeat("long", 20))
	if err := m.SetRole("nobody", trust.Anchor); err != nil {
		t.Fatal(err)
	}
	lease, err := store.Seize(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Save(t.Context(), &state.Checkpoint{Schema: 1, Numerics: m.Numerics(), Config: m.Config().JSON(), Epoch: lease.Epoch,
		Events: m.Events(), Position: state.Position{Next: 9}, Model: b, Saved: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, "--redis", server.Addr(), "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Partitions []struct{ Events uint64 }
		Known      int
		Sources    []struct {
			Source, Role   string
			Late, New      bool
			Labels         uint64
			Rate           float64 `json:"flip_rate"`
			Lo, Hi, Weight float64
			Parts          []struct {
				Partition int
				Body      string
				Labels    uint64
				Accused   uint64
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if len(got.Partitions) != 1 || got.Known != 4 || len(got.Sources) != 4 || got.Partitions[0].Events != 400 {
		t.Fatalf("%+v", got)
	}
	desk, liar, long, nobody := got.Sources[0], got.Sources[1], got.Sources[2], got.Sources[3]
	if desk.Source != "desk" || desk.Labels != 266 || desk.Weight != 1 || desk.Rate > 0.1 || desk.Role != "ordinary" || desk.Late || desk.New {
		t.Errorf("desk: %+v", desk)
	}
	if liar.Source != "liar" || liar.Labels != 68 || liar.Weight != 0 || liar.Role != "ordinary" || !(liar.Lo > 0.5 && liar.Lo < liar.Rate && liar.Hi > liar.Rate) {
		t.Errorf("liar: %+v", liar)
	}
	if len(liar.Parts) != 1 || liar.Parts[0].Accused == 0 || liar.Parts[0].Accused > 400 || liar.Parts[0].Body != "text" {
		t.Errorf("liar: %+v", liar.Parts)
	}
	if long.Source != strings.Repeat("long", 16)+"…" || nobody.Source != "nobody" || nobody.Role != "anchor" || nobody.Labels != 0 {
		t.Errorf("%+v\n%+v", long, nobody)
	}

	out, err = run(t, "--redis", server.Addr(), "--limit", "2")
	lines := strings.Split(out, "\n")
	if err != nil || len(lines) != 7 || !strings.HasPrefix(lines[1], "desk ") || !strings.Contains(lines[2], "liar ") || !strings.Contains(lines[2], "ordinary") ||
		!strings.Contains(lines[2], "event ") || !strings.HasPrefix(lines[3], "nobody ") || !strings.HasPrefix(lines[4], "and 1 with fewer labels") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// The operator's word is the record that a learner reads.
func TestSetIsARecord(t *testing.T) {
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	cfg := kafka.Config{Brokers: []string{k.Addr()}}
	topic := stream.EventsTopic("mine")
	if err := cfg.Ensure(t.Context(), topic, 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]string{{"set", "a@example.org", "muted"}, {"set", "a", "boss"}, {"set", "", "muted"}, {"set", "a"}, {"--limit", "-1"}} {
		if _, err := run(t, append(bad, "--model", "mine")...); cli.Status(err) != cli.StatusUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
	out, err := run(t, "set", "user reports", "muted", "--kafka", k.Addr(), "--model", "mine")
	if err != nil || !strings.Contains(out, "user reports is muted for labels from now on: written to hamlet.events.mine.") {
		t.Fatalf("%v: %s", err, out)
	}
	log, err := kafka.NewLog(cfg, topic)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r, ok, err := follow.Last(t.Context(), follow.Topic(log, cfg), 10, nil)
	if err != nil || !ok || !stream.IsStanding(r.Headers) {
		t.Fatalf("%v, %v", ok, err)
	}
	s, err := stream.DecodeStandingRecord(r.Headers, r.Value)
	if err != nil || s.Source != "user reports" || s.Role != stream.Muted || s.ID == "" || s.Time.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
	out, err = run(t, "set", "user reports", "ordinary", "--kafka", k.Addr(), "--model", "mine", "--json")
	if err != nil || !strings.Contains(out, `"topic":"hamlet.events.mine"`) || !strings.Contains(out, `"role":"ordinary"`) {
		t.Errorf("%v: %s", err, out)
	}
	topics.Make(t, cfg, stream.EventsTopic("four"), 4)
	_, err = run(t, "set", "user reports", "muted", "--kafka", k.Addr(), "--model", "four")
	if !errors.Is(err, kafka.ErrPartitions) || !strings.Contains(err.Error(), "hamlet log merge --from four --to NEW") {
		t.Errorf("in a topic of several partitions: %v", err)
	}
}
