package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/algos/eval"
	"hamlet/cmd/internal/cli"
)

// A probability is worth its name if labels refitted on the log-odds give them
// back. Measured 2026-11-21 by this test, slope, intercept and ECE:
//
//	SpamAssassin, time order   .910   .22   .14 %
//	sms                       1.083   .24   .66 %
//	spambase, --shuffle 1     1.072  −.06  1.60 %
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
			args := []string{"eval", "--json"}
			for _, a := range s.args {
				if strings.Contains(a, "/") {
					a = filepath.Join(data, a)
					if _, err := os.Stat(a); err != nil {
						t.Skipf("the data set is not there: %v", err)
					}
				}
				args = append(args, a)
			}
			var out bytes.Buffer
			if err := run(context.Background(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}); err != nil {
				t.Fatal(err)
			}
			var got eval.Summary
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
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
