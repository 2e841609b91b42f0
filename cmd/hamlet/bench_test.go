package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/process/cli"
)

// data is where the public data sets lie, beside the checkout.
const data = "../../../shared/data"

// BenchmarkUpBesideEval streams the same mail through hamlet up, brokers and
// all, and through hamlet eval, in turns, and reports the median of the ratio of
// their events per second. The times are those that the commands print.
//
//	go test -run - -bench UpBesideEval -benchtime 5x ./cmd/hamlet
func BenchmarkUpBesideEval(b *testing.B) {
	for _, s := range []struct {
		name string
		args []string
	}{
		{"spamassassin", []string{"--index", filepath.Join(data, "spamassassin/index.csv"), filepath.Join(data, "spamassassin/spamassassin.tar.gz")}},
		{"generator", []string{generated(b, 20_000)}},
	} {
		b.Run(s.name, func(b *testing.B) {
			if strings.HasPrefix(s.args[0], "--index") {
				if _, err := os.Stat(s.args[1]); err != nil {
					b.Skipf("the data set is not there: %v", err)
				}
			}
			var ups, evals, ratios []float64
			for range b.N {
				eval := speed(b, append([]string{"eval", "--json"}, s.args...))
				up := speed(b, append([]string{"up", "--once", "--json", "--log-level", "error"}, s.args...))
				evals, ups, ratios = append(evals, eval), append(ups, up), append(ratios, up/eval)
			}
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
