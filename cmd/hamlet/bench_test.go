package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/process/cli"
)

// data is where the public data sets lie, beside the checkout.
const data = "../../../shared/data"

// BenchmarkUpBesideEval streams the same mail through hamlet up --once, with log and
// models in files, and through hamlet eval, in turns, and reports the median of the ratio of
// their events per second. The times are those that the commands print. On a busy machine
// the processor time compares better: eval's beside up's, with start and end.
//
//	go test -run - -bench UpBesideEval -benchtime 5x ./cmd/hamlet
func BenchmarkUpBesideEval(b *testing.B) {
	for _, s := range []struct {
		name string
		args []string
	}{
		{"spamassassin", []string{"--index", filepath.Join(data, "spamassassin/index.csv"), filepath.Join(data, "spamassassin/spamassassin.tar.gz")}},
		{"sms", []string{filepath.Join(data, "sms/SMSSpamCollection")}},
		{"generator", []string{generated(b, 20_000)}},
	} {
		b.Run(s.name, func(b *testing.B) {
			if _, err := os.Stat(s.args[len(s.args)-1]); err != nil {
				b.Skipf("the data set is not there: %v", err)
			}
			var ups, evals, ratios, cpu []float64
			for range b.N {
				debug.SetGCPercent(100) // up has set its own
				begun := processTime()
				eval := speed(b, append([]string{"eval", "--json"}, s.args...))
				between := processTime()
				up := speed(b, append([]string{"up", "--once", "--json", "--log-level", "error"}, s.args...))
				evals, ups, ratios = append(evals, eval), append(ups, up), append(ratios, up/eval)
				cpu = append(cpu, float64(between-begun)/float64(processTime()-between))
			}
			b.ReportMetric(median(cpu), "eval/up-cpu")
			b.ReportMetric(median(evals), "eval-events/s")
			b.ReportMetric(median(ups), "up-events/s")
			b.ReportMetric(median(ratios), "up/eval")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// generated writes n synthetic mails as JSON Lines.
func generated(b *testing.B, n int) string {
	b.Helper()
	items, err := synthetic.Items(synthetic.Config{}, n, source.FlipConfig{})
	if err != nil {
		b.Fatal(err)
	}
	var lines []byte
	for item, err := range items {
		if err != nil {
			b.Fatal(err)
		}
		if lines, err = item.Event.AppendJSON(lines); err != nil {
			b.Fatal(err)
		}
		lines = append(lines, '\n')
	}
	path := filepath.Join(b.TempDir(), "generated.jsonl")
	if err := os.WriteFile(path, lines, 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func speed(b *testing.B, args []string) float64 {
	b.Helper()
	var out bytes.Buffer
	if err := run(context.Background(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}); err != nil {
		b.Fatal(err)
	}
	var r struct {
		EventsPerSecond float64 `json:"events_per_second"`
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		b.Fatal(err)
	}
	return r.EventsPerSecond
}
