package scorer

import (
	"archive/tar"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/algos/model"
	"hamlet/cmd/internal/example"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/nats"
)

// BenchmarkRoundTrip asks a scorer with a model of the default size about real
// mail, and a bare subscription that echoes it, in turn: on one server, over
// the same connections, in the same milliseconds. It reports the median and the
// 99th percentile of each, beside what parsing and predicting alone cost.
func BenchmarkRoundTrip(b *testing.B) {
	mails, m := taught(b, 1500)
	r := miniredis.RunT(b)
	save(b, m, r)
	url := startNATS(b)
	serving, asking := connect(b, url), connect(b, url)
	start(b, Config{Conn: serving, Store: openStore(b, r)})
	if _, err := serving.QueueSubscribe("echo", "echo", func(m *natsgo.Msg) {
		if err := m.Respond(m.Data); err != nil {
			b.Error(err)
		}
	}); err != nil {
		b.Fatal(err)
	}
	if err := serving.Flush(); err != nil {
		b.Fatal(err)
	}
	c, err := nats.NewClient(asking, "")
	if err != nil {
		b.Fatal(err)
	}
	predictor, ctx := m.NewPredictor(), b.Context()
	var scores, echoes, alone []time.Duration
	for i := 0; b.Loop(); i++ {
		raw := mails[i%len(mails)]
		begin := time.Now()
		if _, err := c.Score(ctx, raw, nats.TypeMail, false); err != nil {
			b.Fatal(err)
		}
		scored := time.Now()
		if _, err := asking.RequestWithContext(ctx, "echo", raw); err != nil {
			b.Fatal(err)
		}
		echoed := time.Now()
		body, err := example.Body(&stream.Body{Kind: stream.Mail, Mail: raw})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := predictor.Predict(&body); err != nil {
			b.Fatal(err)
		}
		scores = append(scores, scored.Sub(begin))
		echoes = append(echoes, echoed.Sub(scored))
		alone = append(alone, time.Since(echoed))
	}
	for name, took := range map[string][]time.Duration{"score": scores, "echo": echoes, "parse+predict": alone} {
		slices.Sort(took)
		for q, label := range map[float64]string{0.5: "-p50-µs", 0.99: "-p99-µs"} {
			b.ReportMetric(float64(took[int(q*float64(len(took)-1))].Nanoseconds())/1e3, name+label)
		}
	}
}

// taught returns the first n messages of the SpamAssassin corpus, reduced, and a
// model of the default size that has learnt them.
func taught(b *testing.B, n int) ([][]byte, *model.Model) {
	b.Helper()
	folder := filepath.Join(repository(b), "..", "shared", "data", "spamassassin")
	index, err := os.Open(filepath.Join(folder, "index.csv"))
	if errors.Is(err, fs.ErrNotExist) {
		b.Skip("the SpamAssassin corpus is not in ../shared/data/spamassassin beside the repository")
	}
	if err != nil {
		b.Fatal(err)
	}
	defer index.Close()
	rows, err := csv.NewReader(index).ReadAll()
	if err != nil {
		b.Fatal(err)
	}
	spam := map[string]bool{}
	for _, row := range rows {
		spam[row[1]] = row[0] == "spam"
	}
	packed, err := os.Open(filepath.Join(folder, "spamassassin.tar.gz"))
	if err != nil {
		b.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		b.Fatal(err)
	}
	m, err := model.New(model.Config{})
	if err != nil {
		b.Fatal(err)
	}
	var mails [][]byte
	for archive := tar.NewReader(unpacked); len(mails) < n; {
		header, err := archive.Next()
		if err != nil {
			b.Fatal(err)
		}
		isSpam, known := spam[header.Name]
		if !known {
			continue
		}
		raw, err := io.ReadAll(archive)
		if err != nil {
			b.Fatal(err)
		}
		if raw, err = mail.Reduce(raw); err != nil {
			b.Fatal(err)
		}
		body, err := example.Body(&stream.Body{Kind: stream.Mail, Mail: raw})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.Apply(&model.Example{ID: header.Name, Spam: isSpam, Body: body}); err != nil {
			b.Fatal(err)
		}
		mails = append(mails, raw)
	}
	return mails, m
}

func save(b *testing.B, m *model.Model, r *miniredis.Miniredis) {
	b.Helper()
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		b.Fatal(err)
	}
	store := openStore(b, r)
	epoch, err := store.Take(patience(b), 0)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := store.Save(patience(b), 0, &state.Checkpoint{Schema: 1, Numerics: m.Numerics(), Config: m.Config().JSON(),
		Epoch: epoch, Events: m.Events(), Position: state.Position{Next: int64(m.Events())}, Model: bytes, Saved: time.Now().UTC()}); err != nil {
		b.Fatal(err)
	}
}

// repository returns the folder that holds go.mod.
func repository(b *testing.B) string {
	b.Helper()
	dir, err := os.Getwd()
	if err != nil {
		b.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			b.Fatal("there is no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}
