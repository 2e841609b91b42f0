package eventlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/predictions"
	"hamlet/stream/servertest"
)

// The last records of each topic are readable: in a running hamlet up, in the folder of a stopped one, and in
// Kafka. What is another model's is left out, and what cannot be decoded is shown with its reason.
func TestShow(t *testing.T) {
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	dir := t.TempDir()
	files, err := machine.Open(t.Context(), dir, machine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for _, logs := range []stream.Logs{kafka.Config{Brokers: []string{k.Addr()}}, files} {
		fillToShow(t, logs)
	}
	shows(t, "Kafka", "--kafka", k.Addr())

	serving, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- files.Serve(serving) }()
	shows(t, "a running hamlet up", "--data", dir)
	stop()
	if err := errors.Join(<-served, files.Close()); err != nil {
		t.Fatal(err)
	}
	shows(t, "a stopped hamlet up", "--data", dir)
}

// fillToShow writes events, letters, receipts and predictions of the models m and other.
func fillToShow(t *testing.T, logs stream.Logs) {
	t.Helper()
	for _, name := range []string{stream.EventsTopic("m"), stream.DeadLetterTopic, stream.ReceiptTopic, predictions.Topic("m")} {
		if err := logs.Ensure(t.Context(), name, 1, time.Hour); err != nil {
			t.Fatal(err)
		}
		log, err := logs.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		add := func(value []byte, headers ...stream.Header) {
			t.Helper()
			if err := log.Append(t.Context(), stream.Record{Value: value, Headers: headers}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 50 {
			model := "m"
			if i%10 != 0 {
				model = "other"
			}
			e := stream.Event{ID: fmt.Sprint("e", i), Source: "s", Tenant: "t", Label: stream.Spam, Body: stream.Body{Kind: stream.Text, Text: "prize"}}
			value, headers, err := e.EncodeRecord()
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case name == stream.DeadLetterTopic:
				d := stream.DeadLetter{Reason: "too odd", Topic: stream.EventsTopic(model), Offset: int64(i)}
				add(value, d.AppendHeaders(headers)...)
			case name == stream.ReceiptTopic:
				receipt := stream.Receipt{ID: e.ID, Model: model, Outcome: stream.OutcomeWithdrawn}
				if value, err = receipt.AppendJSON(nil); err != nil {
					t.Fatal(err)
				}
				add(value)
			case name == predictions.Topic("m"):
				b := predictions.Block{Model: "m", Events: stream.EventsTopic("m"), Learnt: int64(i) + 1, Predictions: []predictions.Prediction{{Offset: int64(i), Spam: true, LogOdds: 1.5}}}
				if value, err = b.AppendBinary(nil); err != nil {
					t.Fatal(err)
				}
				add(value)
			default:
				add(value, headers...)
			}
		}
		if name == stream.EventsTopic("m") {
			add([]byte("no event"))
			add([]byte{0xff})
		}
	}
}

// shows wants what fillToShow wrote.
func shows(t *testing.T, where string, server ...string) {
	t.Helper()
	show := func(args string) (string, error) {
		var g struct {
			Log Command `cmd:""`
		}
		var out bytes.Buffer
		stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}
		command, err := settings.Parse("hamlet", "", &g, append(append([]string{"log", "show"}, server...), strings.Fields(args)...), stdio)
		if err != nil {
			return "", err
		}
		_, rest, _ := strings.Cut(command.Command(), " ")
		err = g.Log.Run(t.Context(), cli.Subcommand(rest), cli.IO{Out: &out, Err: io.Discard})
		return out.String(), err
	}
	for _, c := range []struct {
		args string
		want []string // of each line a part, oldest first
	}{
		{"events --model m -n 4", []string{`"id":"e48"`, `"label":"spam"`, `"text":"no event"`, `"base64":"/w=="`}},
		{"dead-letters --model m -n 2", []string{`"reason":"too odd","topic":"hamlet.events.m","partition":0,"offset":30},"event":{"id":"e30"`, `"offset":40},"event":{"id":"e40"`}},
		{"dead-letters --model m", []string{`"e0"`, `"e10"`, `"e20"`, `"e30"`, `"e40"`}},
		{"receipts --model m -n 3", []string{`"receipt":{"id":"e20"`, `"e30"`, `"outcome":"withdrawn"`}},
		{"receipts --model none", nil},
		{"predictions --model m -n 1", []string{`"of":[{"offset":49,"label":"spam","log_odds":1.5}]`}},
	} {
		out, err := show(c.args)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if out == "" {
			lines = nil
		}
		if err != nil || len(lines) != len(c.want) {
			t.Errorf("%s: %s: %v, %d lines, want %d:\n%s", where, c.args, err, len(lines), len(c.want), out)
			continue
		}
		for i, line := range lines {
			if !json.Valid([]byte(line)) || !strings.Contains(line, c.want[i]) {
				t.Errorf("%s: %s: line %d has no %s:\n%s", where, c.args, i, c.want[i], line)
			}
		}
	}
	for args, want := range map[string]string{
		"alerts":                     "hamlet alarms shows them",
		"nonsense":                   "is not a topic: say events, dead-letters, receipts or predictions",
		"events --model m -n 0":      "-n: 0 is not in 1…1000",
		"events --model none":        "there is no topic hamlet.events.none",
		"predictions --model no -n1": "there is no topic hamlet.predictions.no",
	} {
		if out, err := show(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s: %v, want %s\n%s", where, args, err, want, out)
		}
	}
	if out, err := show("receipts --model m -n 1 --json"); err != nil || !strings.HasPrefix(out, `{"topic":"hamlet.receipts","records":[{"offset":40`) {
		t.Errorf("%s: %v, %s", where, err, out)
	}
}
