package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
)

// BenchmarkBesideTheHead streams spambase four times over, 57 columns and so 60
// inputs beside the constant, through hamlet up and its Kafka: without alarms and
// ensembles, with the alarms, and with the ensemble alone, in turns. It reports the
// median processor time that each adds to an event, and what it is in parts of all
// that an event costs without.
//
//	go test -run - -bench BesideTheHead -benchtime 5x ./cmd/hamlet
func BenchmarkBesideTheHead(b *testing.B) {
	rows, err := os.ReadFile(filepath.Join(data, "spambase/spambase.data"))
	if err != nil {
		b.Skipf("the data set is not there: %v", err)
	}
	stream := filepath.Join(b.TempDir(), "stream.csv")
	if err := os.WriteFile(stream, bytes.Repeat(rows, 4), 0o600); err != nil {
		b.Fatal(err)
	}
	trustAll := filepath.Join(b.TempDir(), "hamlet.yaml")
	if err := os.WriteFile(trustAll, []byte("model: {label_trust: all}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	events := 4 * bytes.Count(rows, []byte("\n"))
	cost := func(args ...string) float64 {
		args = append([]string{"up", "--once", "--json", "--log-level", "error", "--shuffle", "1", stream}, args...)
		var out bytes.Buffer
		before := processTime()
		if err := run(context.Background(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}); err != nil {
			b.Fatal(err)
		}
		spent := processTime() - before
		if !strings.Contains(out.String(), fmt.Sprintf(`"events":%d`, events)) {
			b.Fatalf("not %d events: %s", events, out.String())
		}
		return float64(spent.Microseconds()) / float64(events)
	}
	var without, watch, rebuilds, watchRatio, rebuildRatio []float64
	for range b.N {
		none := cost("--no-alarms", "--ensembles", "none", "--config", trustAll)
		alarms := cost("--ensembles", "none", "--config", trustAll)
		ensembles := cost("--no-alarms", "--ensembles", "logit-trees")
		without = append(without, none)
		watch, watchRatio = append(watch, alarms-none), append(watchRatio, (alarms-none)/none)
		rebuilds, rebuildRatio = append(rebuilds, ensembles-none), append(rebuildRatio, (ensembles-none)/none)
	}
	b.ReportMetric(median(without), "µs/event-without")
	b.ReportMetric(median(watch), "µs/event-watch")
	b.ReportMetric(median(rebuilds), "µs/event-rebuilds")
	b.ReportMetric(median(watchRatio), "watch/without")
	b.ReportMetric(median(rebuildRatio), "rebuilds/without")
	b.ReportMetric(0, "ns/op")
}
