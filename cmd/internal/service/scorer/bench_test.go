package scorer

import (
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
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

// BenchmarkRoundTrip sends real mail in turn to a scorer with a model of the default size, to a subscription that
// echoes it, and to one that parses it, predicts and answers as many bytes. All use one server and the same
// connections. It reports the median and 99th percentile of each, and the cost of parsing and predicting alone.
//
// What runs before counts: the network's code is slow where a prediction has just filled the caches, and parsing is fast
// where the same mail has just been parsed. So every second mail meets the four in the opposite order, and the
// subscription and the scorer have models of their own. The scorer's own work is score − bare. "there" is what parsing and
// predicting take in bare's subscription.
func BenchmarkRoundTrip(b *testing.B) {
	mails, m := taught(b, 1500)
	r := miniredis.RunT(b)
	save(b, m, r)
	url := startNATS(b)
	serving, asking := connect(b, url), connect(b, url)
	start(b, Config{Questions: over(serving), Store: openStore(b, r)})
	subscribe := func(subject string, answer func(raw []byte) ([]byte, error)) func(raw []byte) error {
		if _, err := serving.QueueSubscribe(subject, subject, func(m *natsgo.Msg) {
			data, err := answer(m.Data)
			if err == nil {
				err = m.Respond(data)
			}
			if err != nil {
				b.Error(err)
			}
		}); err != nil {
			b.Fatal(err)
		}
		return func(raw []byte) error {
			_, err := asking.RequestWithContext(b.Context(), subject, raw)
			return err
		}
	}
	compute := func(p *model.Predictor) func(raw []byte) error {
		return func(raw []byte) error {
			body, _, err := example.Body("", &stream.Body{Kind: stream.Mail, Mail: raw})
			if err == nil {
				_, err = p.Predict(&body)
			}
			return err
		}
	}
	text, err := m.AppendBinary(nil)
	if err != nil {
		b.Fatal(err)
	}
	again, err := model.Restore(text)
	if err != nil {
		b.Fatal(err)
	}
	bare, answer := compute(again.NewPredictor()), make([]byte, 350)
	var there []time.Duration
	c, err := nats.NewClient(asking, "")
	if err != nil {
		b.Fatal(err)
	}
	ways := []*struct {
		name string
		do   func(raw []byte) error
		took []time.Duration
	}{
		{name: "score", do: func(raw []byte) error {
			_, err := c.Ask(b.Context(), questions.Question{Body: raw, ContentType: questions.Mail})
			return err
		}},
		{name: "echo", do: subscribe("echo", func(raw []byte) ([]byte, error) { return raw, nil })},
		{name: "parse+predict", do: compute(m.NewPredictor())},
		{name: "bare", do: subscribe("bare", func(raw []byte) ([]byte, error) {
			begin := time.Now()
			err := bare(raw)
			there = append(there, time.Since(begin))
			return answer, err
		})},
	}
	if err := serving.Flush(); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		for _, way := range ways {
			begin := time.Now()
			if err := way.do(mails[i%len(mails)]); err != nil {
				b.Fatal(err)
			}
			way.took = append(way.took, time.Since(begin))
		}
		slices.Reverse(ways)
	}
	slices.Sort(there)
	b.ReportMetric(float64(there[len(there)/2].Nanoseconds())/1e3, "there-p50-µs")
	for _, way := range ways {
		slices.Sort(way.took)
		for q, label := range map[float64]string{0.5: "-p50-µs", 0.99: "-p99-µs"} {
			b.ReportMetric(float64(way.took[int(q*float64(len(way.took)-1))].Nanoseconds())/1e3, way.name+label)
		}
	}
}

// BenchmarkInFlight asks for real mail over one connection, 64 questions of a mail at a time, and questions of
// 64 mails as JSON, four at a time, in turns; and it parses and predicts as many on all processors. It reports how many
// a second each way gives, and the part of the last that the first two are.
func BenchmarkInFlight(b *testing.B) {
	const many, batches = 64, 4
	mails, m := taught(b, 1500)
	r := miniredis.RunT(b)
	save(b, m, r)
	url := startNATS(b)
	start(b, Config{Questions: over(connect(b, url)), Store: openStore(b, r)})
	c, err := nats.NewClient(connect(b, url), "")
	if err != nil {
		b.Fatal(err)
	}
	var lists [][]byte
	for list := range slices.Chunk(mails[:len(mails)/many*many], many) {
		data := []byte{'['}
		for i, raw := range list {
			if i > 0 {
				data = append(data, ',')
			}
			e := stream.Event{Body: stream.Body{Kind: stream.Mail, Mail: raw}}
			if data, err = e.AppendJSON(data); err != nil {
				b.Fatal(err)
			}
		}
		if data = append(data, ']'); len(data) < 1<<20 { // what a NATS carries
			lists = append(lists, data)
		}
	}
	// each calls do for 0 to n−1 in so many goroutines, and returns how many mails a second that is.
	each := func(n, goroutines, mails int, do func(i int) error) float64 {
		var next atomic.Int64
		var all sync.WaitGroup
		begin := time.Now()
		for range goroutines {
			all.Go(func() {
				for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
					if err := do(i); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		return float64(n*mails) / time.Since(begin).Seconds()
	}
	ask := func(data []byte, kind string) error {
		_, err := c.Ask(b.Context(), questions.Question{Body: data, ContentType: kind})
		return err
	}
	predictors := sync.Pool{New: func() any { return m.NewPredictor() }}
	var single, listed, alone, ofSingle, ofListed []float64
	for b.Loop() {
		n := len(lists) * many
		single = append(single, each(n, many, 1, func(i int) error { return ask(mails[i], questions.Mail) }))
		listed = append(listed, each(len(lists), batches, many, func(i int) error { return ask(lists[i], questions.JSON) }))
		alone = append(alone, each(n, runtime.GOMAXPROCS(0), 1, func(i int) error {
			body, _, err := example.Body("", &stream.Body{Kind: stream.Mail, Mail: mails[i]})
			if err != nil {
				return err
			}
			p := predictors.Get().(*model.Predictor)
			defer predictors.Put(p)
			_, err = p.Predict(&body)
			return err
		}))
		k := len(alone) - 1
		ofSingle, ofListed = append(ofSingle, single[k]/alone[k]), append(ofListed, listed[k]/alone[k])
	}
	for name, v := range map[string][]float64{
		"single/s": single, "batch/s": listed, "alone/s": alone, "single/alone": ofSingle, "batch/alone": ofListed,
	} {
		slices.Sort(v)
		b.ReportMetric(v[len(v)/2], name)
	}
	b.ReportMetric(0, "ns/op")
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
