package now

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/algos/algotest/dataset"
	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/scorer"
	"hamlet/cmd/internal/web/access"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// BenchmarkOpenPages asks a scorer about real mail, four messages at a time, while ten readers
// have the page Now open, and while nobody has, in turns of three seconds and more. Scorer,
// askers, NATS, console and readers are this process, so all that the pages cost counts. It
// reports the median messages a second of processor time of each, and the median of the turns'
// ratios: what else the machine does changes the time of day, and not this.
//
//	go test -run - -bench OpenPages -benchtime 20x ./cmd/internal/operate/now
func BenchmarkOpenPages(b *testing.B) {
	const readers, askers = 10, 4
	mails, r := taught(b, 1500)
	server, err := embedded.StartNATS(embedded.NATSOptions{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	connect := func() *natsgo.Conn {
		conn, err := nats.Connect(nats.Config{URL: server.URL()})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(conn.Close)
		return conn
	}
	store := open(b, r)
	serve(b, connect(), store)
	var clients [askers]*nats.Client
	for k := range clients {
		if clients[k], err = nats.NewClient(connect(), ""); err != nil {
			b.Fatal(err)
		}
	}
	ask := func(atLeast time.Duration) (perSecond float64) {
		var all sync.WaitGroup
		var asked [askers]int
		begin, end := processorTime(b), time.Now().Add(atLeast)
		for k := range askers {
			all.Go(func() {
				for i := k; time.Now().Before(end); i += askers {
					if _, err := clients[k].Ask(b.Context(), questions.Question{Body: mails[i%len(mails)], ContentType: questions.Mail}); err != nil {
						b.Error(err)
						return
					}
					asked[k]++
				}
			})
		}
		all.Wait()
		total := 0
		for _, n := range asked {
			total += n
		}
		return float64(total) / (processorTime(b) - begin).Seconds()
	}
	ask(time.Second)
	watching := connect()
	const turn = 3 * time.Second
	watched := func() float64 {
		leave := look(b, readers, Config{Model: "default", NATS: watching, Store: store})
		defer leave()
		return ask(turn)
	}
	var with, without, ratios []float64
	for i := 0; b.Loop(); i++ {
		var one, other float64
		if i%2 == 0 {
			one = watched()
			other = ask(turn)
		} else {
			other = ask(turn)
			one = watched()
		}
		with, without, ratios = append(with, one), append(without, other), append(ratios, one/other)
	}
	for _, all := range [][]float64{with, without, ratios} {
		slices.Sort(all)
	}
	b.ReportMetric(with[len(with)/2], "with-msgs/cpu-s")
	b.ReportMetric(without[len(without)/2], "without-msgs/cpu-s")
	b.ReportMetric(ratios[len(ratios)/2], "with/without")
	b.ReportMetric(0, "ns/op")
}

// look opens the page's stream of events for n readers, and returns when each has its first
// fragments. leave closes all.
func look(b *testing.B, n int, cfg Config) (leave func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	f, site := New(cfg), newSite(b)
	site.Add(Page(site, f))
	handler := site.Handler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(access.WithUser(r.Context(), access.User{Name: "ann", Role: access.Look})))
	}))
	var all, first sync.WaitGroup
	all.Go(func() { _ = f.Run(ctx) })
	for range n {
		first.Add(1)
		all.Go(func() {
			done := sync.OnceFunc(first.Done)
			defer done()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+"/live?page=/", nil)
			if err != nil {
				b.Error(err)
				return
			}
			w, err := http.DefaultClient.Do(r)
			if err != nil || w.StatusCode != http.StatusOK {
				b.Error(w, err)
				return
			}
			defer w.Body.Close()
			lines := bufio.NewScanner(w.Body)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), "data: ") {
					done()
				}
			}
		})
	}
	first.Wait()
	return func() {
		cancel()
		site.Close()
		all.Wait()
		web.Close()
	}
}

// taught returns the first messages of SpamAssassin, and a Redis with a model that learnt them.
func taught(b *testing.B, n int) (mails [][]byte, r *miniredis.Miniredis) {
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
	r = miniredis.RunT(b)
	store := open(b, r)
	lease, err := store.Seize(b.Context(), "w")
	if err != nil {
		b.Fatal(err)
	}
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := store.Save(b.Context(), &state.Checkpoint{Schema: 1, Numerics: m.Numerics(), Config: m.Config().JSON(),
		Epoch: lease.Epoch, Events: m.Events(), Position: state.Position{Next: int64(m.Events())}, Model: bytes, Saved: time.Now().UTC()}); err != nil {
		b.Fatal(err)
	}
	return mails, r
}

func open(b *testing.B, r *miniredis.Miniredis) *redis.Store {
	b.Helper()
	store, err := redis.New(redis.Config{Addr: r.Addr()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	return store
}

// serve runs a scorer with a journal until the benchmark ends.
func serve(b *testing.B, conn *natsgo.Conn, store *redis.Store) {
	b.Helper()
	journal, err := nats.NewJournal(conn, nats.JournalConfig{})
	if err != nil {
		b.Fatal(err)
	}
	questions, err := nats.NewService(conn, nats.ServiceConfig{})
	if err != nil {
		b.Fatal(err)
	}
	s := scorer.New(scorer.Config{Questions: questions, Store: store, Journal: journal})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	<-s.Listening()
}
