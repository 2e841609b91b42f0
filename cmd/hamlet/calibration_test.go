package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/report"
)

// A probability is worth its name if labels refitted on the log-odds give them
// back. Measured 2026-11-21 by this test, slope, intercept and ECE:
//
//	SpamAssassin, time order   .910   .22   .14 %
//	sms                       1.083   .24   .66 %
//	spambase, --shuffle 1      .999  −.01   .67 %   (its head alone: 1.072, −.06, 1.60 %)
//	spam-drift                1.053  −.29   .26 %
//
// The standard error of a slope is .03 to .06.
func TestCalibration(t *testing.T) {
	for _, s := range []struct {
		name string
		args []string
		ece  float64 // at most; 1: only the slope is asked for
	}{
		{"spamassassin", []string{"--index", "spamassassin/index.csv", "spamassassin/spamassassin.tar.gz"}, 0.01},
		{"sms", []string{"sms/SMSSpamCollection"}, 0.01},
		{"spambase", []string{"--shuffle", "1", "spambase/spambase.data"}, 1},
		{"spam-drift", []string{"spam-drift/spam-stream.svm.gz"}, 1},
	} {
		t.Run(s.name, func(t *testing.T) {
			got := evaluate(t, s.args...)
			t.Logf("slope %.3f, intercept %+.3f, ECE %.2f %%", got.CalibrationSlope, got.CalibrationIntercept, 100*got.ECE)
			if !(got.CalibrationSlope >= 0.85 && got.CalibrationSlope <= 1.15) {
				t.Errorf("slope %.3f of %d events, want .85 to 1.15", got.CalibrationSlope, got.Events)
			}
			if !(float64(got.ECE) <= s.ece) {
				t.Errorf("ECE %.4f, want at most %v", got.ECE, s.ece)
			}
		})
	}
}

// One source of two flips 30 % of its labels: what is doubtful is nearly all its
// own, and about as much as it flipped. Measured 2026-11-21: 290 of its 1128
// labels, of which some 338 are flipped, and 21 of the other's 4446.
func TestDoubtfulSources(t *testing.T) {
	got := evaluate(t, "--flip", ".3", "--seed", "1", "--source", "good=.8", "--source", "bad=.2", "--flip-source", "bad", "sms/SMSSpamCollection")
	t.Logf("%d doubtful: %v", got.Doubtful, got.Sources)
	if len(got.Sources) != 2 || got.Sources[0].Source != "bad" || got.Sources[0].Doubtful+got.Sources[1].Doubtful != got.Doubtful {
		t.Fatalf("%d doubtful, sources %v: want bad before good, and both to add up", got.Doubtful, got.Sources)
	}
	bad, good := got.Sources[0], got.Sources[1]
	if bad.Learnt+good.Learnt != got.Events {
		t.Errorf("%d labels were learnt of %d events", bad.Learnt+good.Learnt, got.Events)
	}
	if share := float64(bad.Doubtful) / float64(bad.Learnt); share < 0.2 || share > 0.35 {
		t.Errorf("bad: %.3f of the labels are doubtful, want about .3", share)
	}
	if share := float64(good.Doubtful) / float64(good.Learnt); share > 0.01 {
		t.Errorf("good: %.3f of the labels are doubtful, want next to none", share)
	}
}

// evaluate runs hamlet eval; an argument with a slash is a file of the public data.
func evaluate(t *testing.T, args ...string) (r report.Result) {
	t.Helper()
	line := []string{"eval", "--json"}
	for _, a := range args {
		if strings.Contains(a, "/") {
			a = filepath.Join(data, a)
			if _, err := os.Stat(a); err != nil {
				t.Skipf("the data set is not there: %v", err)
			}
		}
		line = append(line, a)
	}
	var out bytes.Buffer
	if err := run(t.Context(), line, cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}
