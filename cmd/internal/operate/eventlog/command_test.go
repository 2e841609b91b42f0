package eventlog

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream/kafka"
)

// run runs hamlet log.
func run(t *testing.T, addr, args string) (string, error) {
	t.Helper()
	var g struct {
		Log Command `cmd:""`
	}
	var out bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}
	all := append([]string{"log", "--kafka", addr}, strings.Fields(args)...)
	command, err := settings.Parse("hamlet", "", &g, all, stdio)
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(command.Command(), " ")
	err = g.Log.Run(t.Context(), cli.Subcommand(rest), cli.IO{Out: &out, Err: io.Discard})
	return out.String(), err
}

// A log is exported, imported and merged, and each refusal says what leads out of it.
func TestCommand(t *testing.T) {
	r := newRig(t)
	addr := r.kafka.Brokers[0]
	for model, partitions := range map[string]int{
		"one": 1, "four": 4, "ordered": 3, "lost": 1, "empty": 1, "lostfour": 4,
	} {
		r.topic("hamlet.events."+model, partitions)
	}
	r.topic("hamlet.order.ordered", 1)
	r.publish("hamlet.events.one", 0, numbered(0, 20)...)
	for p := range 4 {
		r.publish("hamlet.events.four", p, numbered(5*p, 5*p+5)...)
	}
	for _, topic := range []string{"hamlet.events.lost", "hamlet.events.lostfour"} {
		r.publish(topic, 0, numbered(0, 5)...)
		r.deleteBelow(topic, 0, 2)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "log.zst")
	foreign := filepath.Join(dir, "foreign")
	if err := os.WriteFile(foreign, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"export " + file + " --model one", "20 records of topic hamlet.events.one are in " + file + "\n"},
		{"export " + file + " --model one --json", `{"model":"one","file":"` + file + `","records":20}` + "\n"},
		{"import " + file + " --model copy --retention -1s", "20 records are in topic hamlet.events.copy\n"},
		{"import " + file + " --model copy", "20 records are in topic hamlet.events.copy, 20 of them from before\n"},
		{"merge --from four --to merged --retention -1s", "20 records are in topic hamlet.events.merged\n"},
		{"merge --from one --to copy --json",
			`{"model":"copy","topic":"hamlet.events.copy","records":20,"before":20,"after":0}` + "\n"},
		{"merge --from lostfour --to left --accept-lost-beginning --retention -1s",
			"3 records are in topic hamlet.events.left\n"},
	} {
		if got, err := run(t, addr, c.args); err != nil || got != c.want {
			t.Errorf("%s: %v\n%swant %s", c.args, err, got, c.want)
		}
	}
	want := digest(t, r.log("one").Records(t.Context()))
	for _, model := range []string{"copy", "merged"} { // the times of four are those of one
		if got := digest(t, r.log(model).Records(t.Context())); got != want {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
	for _, c := range []struct {
		args string
		want []string
	}{
		{"export x --model four", []string{"has 4 partitions", "hamlet log merge --from four --to NEW"}},
		{"export x --model ordered", []string{"has 3 partitions",
			"hamlet order export FILE --model ordered", "hamlet log import FILE --model NEW"}},
		{"export x --model lost", []string{"begins at offset 2",
			"hamlet log merge --from lost --to NEW --accept-lost-beginning"}},
		{"export x --model none", []string{"there is no topic hamlet.events.none", "--model"}},
		{"import " + foreign + " --model new", []string{"foreign: this is no log"}},
		{"import " + file + " --model four", []string{"has 4 partitions", "name a new model"}},
		{"import " + file + " --model left", []string{"another record", "delete the topic"}},
		{"import " + file + " --model new --retention 1m", []string{"record 1 is of",
			"keeps records for 1m0s", "--retention"}},
		{"merge --from ordered --to new", []string{"one model has learnt",
			"hamlet order export FILE --model ordered", "--accept-lost-beginning"}},
		{"merge --from lostfour --to new", []string{
			"partition 0 of topic hamlet.events.lostfour begins at offset 2", "--accept-lost-beginning"}},
		{"merge --from none --to new", []string{"there is no topic"}},
		{"merge --from one --to one", []string{"name a new one"}},
		{"merge --from one --to ONE", []string{"a name is"}},
	} {
		_, err := run(t, addr, c.args)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", c.args, err, want)
			}
		}
	}
	if got, err := run(t, addr, "export "+file+" --model empty"); err != nil || !strings.HasPrefix(got, "0 records") {
		t.Errorf("an empty log: %v, %s", err, got)
	}
	if got, err := run(t, addr, "import "+file+" --model empty2"); err != nil || !strings.HasPrefix(got, "0 records") {
		t.Errorf("an empty file: %v, %s", err, got)
	}
}

// Kafka tells a user without the right to see hamlet.order.M that it may not, whether that topic
// exists or not. Then it is not known what leads out, and nothing is merged.
func TestOrderThatAUserMayNotSee(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	addr := fake.ListenAddrs()[0]
	r := &rig{t, kafka.Config{Brokers: []string{addr}}}
	r.topic("hamlet.events.four", 4)
	r.publish("hamlet.events.four", 1, numbered(0, 5)...)
	fake.ControlKey(int16(kmsg.Metadata), func(request kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		asked := request.(*kmsg.MetadataRequest)
		if len(asked.Topics) != 1 || *asked.Topics[0].Topic != "hamlet.order.four" {
			return nil, nil, false
		}
		host, port, _ := net.SplitHostPort(addr)
		response, broker, topic := asked.ResponseKind().(*kmsg.MetadataResponse),
			kmsg.NewMetadataResponseBroker(), kmsg.NewMetadataResponseTopic()
		broker.Host = host
		_, _ = fmt.Sscan(port, &broker.Port)
		topic.Topic, topic.ErrorCode = asked.Topics[0].Topic, kerr.TopicAuthorizationFailed.Code
		response.ControllerID = broker.NodeID
		response.Brokers = append(response.Brokers, broker)
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
	for _, args := range []string{"merge --from four --to new", "export x --model four"} {
		_, err := run(t, addr, args)
		for _, want := range []string{"it is not known whether one model", "hamlet.order.four", "Describe"} {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "log merge") {
				t.Errorf("%s: %v, want %q and no way out", args, err, want)
			}
		}
	}
	got, err := run(t, addr, "merge --from four --to new --accept-lost-beginning --retention -1s")
	if err != nil || got != "5 records are in topic hamlet.events.new\n" {
		t.Errorf("with all accepted: %v, %s", err, got)
	}
}
