//go:build !race

// The race detector makes this ten times slower and finds nothing here that the
// tests of the packages do not.

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
)

// updateGolden makes the golden file again: go test ./cmd/hamlet -run Golden -update-golden.
// A change of the mathematics does that in one commit of its own.
var updateGolden = flag.Bool("update-golden", false, "write testdata/golden/models.tsv")

const (
	goldenFile = "testdata/golden/models.tsv"
	goldenData = "../../../shared/data/"
)

// goldenCommands are evals that together reach every part of a model: each kind of
// source, ensembles, a second head, every site, half-lives, sweeps, withdrawals,
// flips, alarms. DATA stands for the data folder, TEMP for files the test writes.
var goldenCommands = []string{
	"--index DATA/spamassassin/index.csv DATA/spamassassin/spamassassin.tar.gz",
	"--index DATA/spamassassin/index.csv DATA/spamassassin/spamassassin.tar.gz --shuffle 1 --flip .1 --seed 5 --skip-headers from-line,return-path,delivered-to,received,delivery-date",
	"--index DATA/spamassassin/index.csv DATA/spamassassin/spamassassin.tar.gz --limit 2000 --ensembles viboost,logit-trees --second-head .99 --set spam_share=true --delay 50",
	"DATA/sms/SMSSpamCollection",
	"DATA/sms/SMSSpamCollection --experts lean",
	"DATA/sms/SMSSpamCollection --shuffle 2 --set text_head.site=jj --set text_head.half_life=2000 --set text_head.refresh=500 --table-bits 16 --set text_experts=text-words,lean-opening-4grams",
	"DATA/sms/SMSSpamCollection --flip .3 --flip-from 2000 --source good=.8 --source bad=.2 --flip-source bad --set trust_by=all --ensembles bhboost --set duplicate_window=100",
	"DATA/spambase/spambase.data --shuffle 7",
	"DATA/spambase/spambase.data --shuffle 7 --ensembles none --set vector_head.site=jj --set vector_head.refresh=500 --set label_trust=none",
	"DATA/spambase/spambase.data --shuffle 7 --ensembles none --set vector_head.site=exact-rvga --set vector_head.half_life=500 --no-alarms",
	"DATA/spambase/spambase.data --shuffle 7 --second-head .97 --flip .2 --flip-from 2600 --flip-kind spam --set window=1000 --set rebuild=250",
	"DATA/spambase/spambase.data --shuffle 3 --limit 1500 --ensembles logit-trees,realadaboost,poeboost.ds,poeboost.cs,adaboost,bhboost,viboost,bblr",
	"DATA/ionosphere/ionosphere.data --positive g --shuffle 1",
	"DATA/wine-red/winequality-red.csv --label quality --positive 6",
	"DATA/spam-drift/spam-stream.svm.gz",
	"DATA/spam-drift/spam-stream.svm.gz --limit 3000 --ensembles viboost,bblr --second-head .99 --flip .1 --flip-from 1500",
	"DATA/w8a/w8a.t.gz --limit 3000 --dense 1,2,3",
	"--generate 4000 --bad-feed 2000 --new-campaign 3000",
	"TEMP/withdrawals.jsonl",
	"TEMP/withdrawals.jsonl --ensembles adaboost --second-head .98",
}

// withdrawals writes texts and vectors of which some are unlearnt and relearnt.
func withdrawals(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(goldenData + "sms/SMSSpamCollection")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	write := func(event map[string]any) {
		line, err := json.Marshal(event) // keys are sorted
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	type learnt struct {
		id, label string
		body      any
		name      string
	}
	var before []learnt
	for i, line := range strings.Split(strings.TrimSpace(string(raw)), "\n")[:1500] {
		label, text, _ := strings.Cut(strings.TrimRight(line, "\r"), "\t")
		e := learnt{id: fmt.Sprint("e", i), label: label, body: text, name: "text"}
		if i%3 == 2 {
			e.name, e.body = "vector", map[string]float64{
				"length": float64(len(text)), "digits": float64(strings.Count(text, "0")), "w" + fmt.Sprint(len(text)%40): 1,
			}
		}
		write(map[string]any{"id": e.id, "label": e.label, "source": []string{"a", "b"}[i%2], e.name: e.body})
		before = append(before, e)
		if i%7 == 6 {
			of := before[len(before)-1-i%5]
			event := map[string]any{"id": fmt.Sprint("u", i), "of": of.id, "source": "a", of.name: of.body, "action": "unlearn", "label": of.label}
			if i%2 == 0 {
				event["action"], event["label"] = "relearn", map[string]string{"spam": "ham", "ham": "spam"}[of.label]
			}
			write(event)
		}
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// No bit of a model, a prediction or an alert changes but on purpose, on any processor. A line of the
// golden file has the first 16 digits of the SHA-256 of each: of the model's bytes, of
// eval's --scores, of its --alerts.
func TestGolden(t *testing.T) {
	if _, err := os.Stat(goldenData); err != nil {
		t.Skipf("the data folder is missing: %v", err)
	}
	temp := t.TempDir()
	withdrawals(t, filepath.Join(temp, "withdrawals.jsonl"))
	place := strings.NewReplacer("DATA/", goldenData, "TEMP", temp)

	var got bytes.Buffer
	got.WriteString("model\tscores\talerts\thamlet eval …\n")
	for i, command := range goldenCommands {
		scores, alerts := filepath.Join(temp, "scores"), filepath.Join(temp, "alerts")
		saved := filepath.Join(temp, fmt.Sprint("model", i))
		args := append([]string{"eval", "--json", "--scores", scores, "--alerts", alerts, "--save", saved}, strings.Fields(place.Replace(command))...)
		if err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}); err != nil {
			t.Fatalf("hamlet eval %s: %v", command, err)
		}
		fmt.Fprintf(&got, "%s\t%s\t%s\t%s\n", digest(t, saved), digest(t, scores), digest(t, alerts), command)
		restored(t, saved)
	}

	if *updateGolden {
		if err := os.MkdirAll(filepath.Dir(goldenFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(goldenFile, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	if len(gotLines) != len(wantLines) {
		t.Errorf("%d lines, the golden file has %d", len(gotLines), len(wantLines))
	}
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Errorf("line %d\n got %s\nwant %s", i+1, gotLines[i], wantLines[i])
		}
	}
}

func digest(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// restored checks that a saved model is restored to the same bytes.
func restored(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Restore(b)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if again, err := m.AppendBinary(nil); err != nil || !bytes.Equal(again, b) {
		t.Errorf("%s: restored and saved again it has other bytes (%v)", path, err)
	}
}
