package source

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hamlet/algos/algotest/dataset"
	"hamlet/stream"
)

type counted struct {
	events, spam, rejected, dense int
	digest                        string // of all ids and times
}

func count(t *testing.T, cfg Config) counted {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := counted{dense: len(s.Dense())}
	digest := sha256.New()
	for item, err := range s.Events() {
		var r *Rejection
		switch {
		case errors.As(err, &r):
			c.rejected++
			t.Logf("rejected %v", err)
		case err != nil:
			t.Fatal(err)
		default:
			c.events++
			fmt.Fprintln(digest, item.Event.ID, item.Event.Time.UnixNano())
			if item.Truth == stream.Spam {
				c.spam++
			}
		}
	}
	if s.Rejected() != c.rejected {
		t.Errorf("Rejected() = %d, want %d", s.Rejected(), c.rejected)
	}
	c.digest = hex.EncodeToString(digest.Sum(nil)[:4])
	return c
}

// The rows and positives of data/README.md, and the ids that their events have had
// since the first version: an id hashes an item's place, label and body.
func TestDataSets(t *testing.T) {
	for _, tt := range []struct {
		path string
		cfg  Config
		want counted
	}{
		{"spambase/spambase.data", Config{}, counted{4601, 1813, 0, 57, "3169f03d"}},
		{"ionosphere/ionosphere.data", Config{Positive: "g", Drop: "2"}, counted{351, 225, 0, 33, "c6f5a5e9"}},
		{"wdbc/wdbc.data", Config{Label: "2", Positive: "M", Drop: "1"}, counted{569, 212, 0, 30, "54b17edd"}},
		{"breast-cancer-wisconsin/breast-cancer-wisconsin.data", Config{Positive: "4", Drop: "1"}, counted{683, 239, 16, 9, "0f0710c3"}},
		{"pima/pima-indians-diabetes.data", Config{}, counted{768, 268, 0, 8, "30d7f053"}},
		{"letter-ab/letter-ab.data", Config{Label: "1", Positive: "A"}, counted{1555, 789, 0, 16, "c07d823b"}},
		{"wine-red/winequality-red.csv", Config{Label: "quality", Positive: "7,8"}, counted{1599, 217, 0, 11, "9a232ae5"}},
		{"heart/heart.dat", Config{Positive: "2"}, counted{270, 120, 0, 13, "d6a7c760"}},
		{"liver/bupa.data", Config{Positive: "2"}, counted{345, 200, 0, 6, "2998ff84"}},
		{"w8a/w8a.gz", Config{}, counted{49749, 1479, 0, 0, "bcc8e9c4"}},
		{"w8a/w8a.t.gz", Config{}, counted{14951, 454, 0, 0, "196b3958"}},
		{"spam-drift/spam-stream.svm.gz", Config{}, counted{9324, 2387, 0, 0, "befb20f4"}},
		{"sms/SMSSpamCollection", Config{}, counted{5574, 747, 0, 0, "a6ad7b00"}},
	} {
		t.Run(filepath.Dir(tt.path), func(t *testing.T) {
			tt.cfg.Paths = []string{dataset.Path(t, tt.path)}
			if got := count(t, tt.cfg); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// SpamAssassin's mail: by its index, and by time of delivery as its collectors'
// own servers stamped it.
func TestSpamAssassin(t *testing.T) {
	dir := dataset.Path(t, "spamassassin")
	cfg := Config{Index: filepath.Join(dir, "index.csv"), Paths: []string{filepath.Join(dir, "spamassassin.tar.gz")}}
	if got, want := count(t, cfg), (counted{6046, 1896, 0, 0, "820ea673"}); got != want {
		t.Errorf("by index.csv: got %+v, want %+v", got, want)
	}
	if got, want := count(t, Config{Spam: cfg.Paths}), (counted{6046, 6046, 0, 0, "4d4ddcb9"}); got != want {
		t.Errorf("by time of delivery: got %+v, want %+v", got, want)
	}

	times, err := os.ReadFile(filepath.Join(dir, "times.csv"))
	if err != nil {
		t.Fatal(err)
	}
	delivered := map[string]string{} // path to time, where it came from a Received header
	for line := range strings.Lines(string(times)) {
		if f := strings.Split(strings.TrimSpace(line), ","); f[4] == "received" {
			delivered[f[0]] = f[3]
		}
	}
	f, err := os.Open(filepath.Join(dir, "index-received.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// Every message is found, also if the index has another order than the archive.
	cfg.Index = f.Name()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if n, known := s.Total(); n != 6046 || !known {
		t.Errorf("Total() = %d, %v", n, known)
	}
	lines := bufio.NewScanner(f)
	same, n := 0, 0
	for item, err := range s.Events() {
		if err != nil {
			t.Fatal(err)
		}
		lines.Scan()
		label, path, _ := strings.Cut(lines.Text(), ",")
		if item.Truth.String() != label {
			t.Fatalf("event %d is %v, the index says %s", item.Ordinal, item.Truth, label)
		}
		n++
		if want := delivered[path]; want == "" || item.Event.Time.Format(time.RFC3339) == want {
			same++
		} else {
			t.Logf("%s: delivered %v, want %s", path, item.Event.Time, want)
		}
	}
	if n != 6046 || same < n-30 {
		t.Errorf("%d of %d events have the time of delivery of times.csv", same, n)
	}
}
