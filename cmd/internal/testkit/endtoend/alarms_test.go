package endtoend

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/cmd/internal/service/alert"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/servertest/loopback"
)

// denseNames are the columns of writeNoisy's file.
const denseNames = "x0,x1,x2,x3,x4,x5,x6,x7"

// writeNoisy writes n rows of numbers as CSV. From row from on, 40 % of the ham is
// labelled spam. The classes differ by 1.6 standard deviations in four of eight
// columns.
func writeNoisy(t *testing.T, n, from int) string {
	t.Helper()
	random := rand.New(rand.NewPCG(11, 12))
	b := bytes.NewBufferString(denseNames + ",label\n")
	for i := range n {
		spam := random.IntN(2) == 1
		for j := range 8 {
			x := random.NormFloat64()
			if j < 4 && spam {
				x += 1.6
			}
			fmt.Fprintf(b, "%.4f,", x)
		}
		label := "ham"
		if flip := random.Float64() < .4; spam || flip && i >= from {
			label = "spam"
		}
		fmt.Fprintln(b, label)
	}
	path := filepath.Join(t.TempDir(), "noisy.csv")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// evalAlerts returns what eval says of a source's alarms, and the model's hash.
func evalAlerts(t *testing.T, args ...string) ([]stream.Alert, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "alerts.jsonl")
	model := parseResult(t, mustOutput(t, "hamlet", append([]string{"eval", "--json", "--alerts", path}, args...)...)).ModelSHA256
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var alerts []stream.Alert
	for line := range strings.Lines(string(b)) {
		a, err := stream.DecodeAlert([]byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if a.Model != "" {
			t.Errorf("eval's alert has a model: %s", line)
		}
		alerts = append(alerts, a)
	}
	return alerts, model
}

// publishedAlerts returns the transitions that the stream of alerts holds of a model, in
// order. Those that name a kind must stand under it too.
func publishedAlerts(t *testing.T, model string) []stream.Alert {
	t.Helper()
	conn, err := nats.Connect(natsAs(admin))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), nats.AlertStream)
	if err != nil {
		t.Fatal(err)
	}
	var alerts []stream.Alert
	var named []string
	state := s.CachedInfo().State
	for seq := state.FirstSeq; state.Msgs > 0 && seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		a, err := stream.DecodeAlert(m.Data)
		if err != nil {
			t.Fatalf("%s: %v", m.Data, err)
		}
		if a.Model != model {
			continue
		}
		if got := m.Header.Get("Nats-Msg-Id"); got != m.Subject+"/"+a.MessageID() || a.Time.IsZero() {
			t.Errorf("message %q under %s: %s", got, m.Subject, m.Data)
		}
		switch m.Subject {
		case nats.IncidentSubject(model):
			alerts = append(alerts, a)
		case nats.AlertSubject(a.Kind, model):
			named = append(named, a.MessageID())
		default:
			t.Errorf("under %s: %s", m.Subject, m.Data)
		}
	}
	var want []string
	for i := range alerts {
		if stream.NamesKind(alerts[i].State) {
			want = append(want, alerts[i].MessageID())
		}
	}
	if !slices.Equal(named, want) {
		t.Errorf("under their kinds stand %v, of the incidents %v", named, want)
	}
	return alerts
}

// After kill −9 of a learner that rebuilds ensembles, computes SNRs and raises alarms,
// the model is eval's and JetStream has each of eval's alerts once.
func TestKillLearnerDuringRebuilds(t *testing.T) {
	const n, from, kills = 4000, 2500, 6
	model, file := modelName(t), writeNoisy(t, n, from)
	config := filepath.Join(t.TempDir(), "hamlet.yaml")
	if err := os.WriteFile(config, []byte("model: {rebuild: 250}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--ensembles", "logit-trees,adaboost", "--second-head", "0.99", "--config", config}
	want, sha256 := evalAlerts(t, append(flags, "--table-bits", "14", file)...)
	raised := 0
	for i := range want {
		want[i].Model = model
		if want[i].Kind == stream.AlertLabelNoise && want[i].State == stream.AlertRaised {
			raised++
		}
	}
	if raised == 0 {
		t.Fatalf("labels that went bad raise no alarm, so that this shows nothing: %+v", want)
	}

	flags = learnerFlags(model, append(flags, "--dense", denseNames, "--nats", natsURL, "--save-every", "20ms")...)
	doomed := flags
	pending := 0      // kills after which the saved model had a rebuild begun and not in effect
	live, at := 0, 0. // kills while events came, and the offset that was saved last
	for k := range kills {
		goal := from/2 + k*(n-from/2)/kills
		learner := start(t, "learner", doomed...)
		addr := learner.httpAddr()
		await(t, "the learner goes on where the last one saved", func() bool {
			return metric(addr, "hamlet_learner_next_offset") >= at
		})
		// However late this process is, the log ends between two rebuilds.
		end := goal + 300
		ingest := start(t, "ingest", ingestFlags(model, file, "--rate", "600", "--limit", fmt.Sprint(end))...)
		await(t, fmt.Sprintf("offset %v is reached, and a model between two rebuilds is saved", goal), func() bool {
			if metric(addr, "hamlet_learner_next_offset") < float64(goal) || !isActive(addr) {
				return false
			}
			c, err := checkpoint(t, model)
			return err == nil && c.Events >= 250 && c.Events%250 != 0
		})
		learner.kill()
		c, err := checkpoint(t, model)
		if err != nil {
			t.Fatal(err)
		}
		if c.Events >= 250 && c.Events%250 != 0 { // begun at one multiple, due at the next
			pending++
		}
		if at = float64(c.Position.Next); at < float64(end) {
			live++
		}
		<-ingest.done
	}
	if live == 0 {
		t.Error("no learner was killed while events came")
	}
	if pending == 0 {
		t.Error("no learner was killed between a rebuild's beginning and its effect")
	}
	ingest := start(t, "ingest", ingestFlags(model, file)...)
	learner := start(t, "learner", flags...)
	addr := learner.httpAddr()
	await(t, "the learner has read all", func() bool { return metric(addr, "hamlet_learner_next_offset") == n && isActive(addr) })
	last := want[len(want)-1]
	state := 0.0
	if last.State == stream.AlertRaised || last.State == stream.AlertSuspected {
		state = 1
	}
	await(t, fmt.Sprintf("the metric of %s is %v, and the windows take bytes", last.Kind, state), func() bool {
		return metric(addr, "hamlet_alarm", `kind="`+last.Kind+`"`, `body="vector"`) == state && metric(addr, "hamlet_window_bytes") > 0
	})
	learner.stop()
	<-ingest.done
	if got := savedSHA256(t, model); got != sha256 {
		t.Errorf("after %d kills the model is %s, eval's is %s", kills, got, sha256)
	}
	got := publishedAlerts(t, model)
	for i := range got {
		got[i].Time = want[0].Time // that of publication
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("alerts (-eval +published):\n%s", d)
	}
}

// hamlet up publishes and shows eval's alerts.
func TestUpPublishesAlerts(t *testing.T) {
	const n, from = 2600, 1700
	model, file := modelName(t), writeNoisy(t, n, from)
	want, sha256 := evalAlerts(t, "--table-bits", "14", file)
	if len(want) == 0 {
		t.Fatal("the stream raises no alarm")
	}
	out, stderr, status := output(t, "hamlet", "up", "--once", "--json", "--model", model, "--nats", natsURL, "--table-bits", "14", file)
	if status != 0 || parseResult(t, out).ModelSHA256 != sha256 {
		t.Fatalf("up: status %d, %s\n%s", status, out, stderr)
	}
	got := publishedAlerts(t, model)
	for i := range got {
		got[i].Model, got[i].Time = "", want[0].Time
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("alerts (-eval +published):\n%s", d)
	}
	for _, a := range want {
		if line := alert.Sentence(&a); strings.Count(stderr, line) != 1 {
			t.Errorf("up does not say %q once:\n%s", line, stderr)
		}
	}
	if !strings.Contains(stderr, "'hamlet.alerts.incident.>'") {
		t.Errorf("up does not say where alerts are to be heard:\n%s", stderr)
	}
}

// A learner without NATS learns, and saves until an alert waits. A learner whose NATS
// has no JetStream fails with advice.
func TestLearnerWithoutJetStream(t *testing.T) {
	model, file := modelName(t), writeMail(t, 100)
	mustOutput(t, "ingest", ingestFlags(model, file)...)
	learner := start(t, "learner", learnerFlags(model, "--nats", "nats://"+loopback.Hold(t), "--save-every", "20ms")...)
	learner.httpAddr()
	await(t, "the learner has saved", func() bool {
		c, err := checkpoint(t, model)
		return err == nil && c.Position.Next == 100
	})
	learner.stop()
	if !strings.Contains(learner.log(), "alerts wait for NATS") {
		t.Errorf("the learner does not say that NATS is down:\n%s", learner.log())
	}

	plain, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	plain.Start()
	defer func() { plain.Shutdown(); plain.WaitForShutdown() }()
	if !plain.ReadyForConnections(patience) {
		t.Fatal("the nats server doesn't listen")
	}
	for _, command := range [][]string{
		append([]string{"learner"}, learnerFlags(model, "--nats", plain.ClientURL())...),
		{"up", "--once", "--nats", plain.ClientURL(), file},
	} {
		name, args := command[0], command[1:]
		if name == "up" {
			name, args = "hamlet", command
		}
		_, stderr, status := output(t, name, args...)
		if status != 1 || !strings.Contains(stderr, "JetStream switched off") || !strings.Contains(stderr, "--no-publish-alerts") {
			t.Errorf("%s: status %d, %s", command[0], status, stderr)
		}
	}
	_, stderr, status := output(t, "hamlet", "up", "--once", "--table-bits", "14", "--no-publish-alerts", "--nats", plain.ClientURL(), file)
	if status != 0 {
		t.Errorf("up --no-publish-alerts: status %d, %s", status, stderr)
	}
}
