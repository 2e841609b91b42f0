package scorer

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/algos/algotest/dataset"
	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/example"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// BenchmarkRoundTrip sends real mail in turn to a scorer with a model of the default
// size and to a subscription that echoes it. Both use one server and the same
// connections. It reports the median and 99th percentile of each, and the cost of
// parsing and predicting alone.
func BenchmarkRoundTrip(b *testing.B) {
	mails, m := taught(b, 1500)
	r := miniredis.RunT(b)
	save(b, m, r)
	url := startNATS(b)
	serving, asking := connect(b, url), connect(b, url)
	start(b, Config{Questions: over(serving), Store: openStore(b, r)})
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
		if _, err := c.Ask(ctx, questions.Question{Body: raw, ContentType: questions.Mail}); err != nil {
			b.Fatal(err)
		}
		scored := time.Now()
		if _, err := asking.RequestWithContext(ctx, "echo", raw); err != nil {
			b.Fatal(err)
		}
		echoed := time.Now()
		body, _, err := example.Body("", &stream.Body{Kind: stream.Mail, Mail: raw})
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
	folder := dataset.Path(b, "spamassassin")
	labelled, err := source.Open(source.Config{
		Index: filepath.Join(folder, "index.csv"), Paths: []string{filepath.Join(folder, "spamassassin.tar.gz")}, Limit: n,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer labelled.Close()
	m, err := model.New(model.Config{})
	if err != nil {
		b.Fatal(err)
	}
	var mails [][]byte
	for item, err := range labelled.Events() {
		if err != nil {
			b.Fatal(err)
		}
		body, _, err := example.Body("", &item.Event.Body)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.Apply(&model.Example{ID: item.Event.ID, Spam: item.Truth == stream.Spam, Body: body}); err != nil {
			b.Fatal(err)
		}
		mails = append(mails, item.Event.Body.Mail)
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
	lease, err := store.Seize(patience(b), "w")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := store.Save(patience(b), &state.Checkpoint{Schema: 1, Numerics: m.Numerics(), Config: m.Config().JSON(),
		Epoch: lease.Epoch, Events: m.Events(), Position: state.Position{Next: int64(m.Events())}, Model: bytes, Saved: time.Now().UTC()}); err != nil {
		b.Fatal(err)
	}
}
