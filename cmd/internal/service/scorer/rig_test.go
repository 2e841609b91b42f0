package scorer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/servertest/leak"
	"hamlet/stream/servertest/loopback"
)

func TestMain(m *testing.M) { leak.Main(m) }

func patience(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// startNATS runs a NATS server in this process, on a free port.
func startNATS(t testing.TB) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the nats server doesn't listen")
	}
	return s.ClientURL()
}

func connect(t testing.TB, url string) *natsgo.Conn {
	t.Helper()
	conn, err := nats.Connect(nats.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// over brings questions about the default model over conn.
func over(conn *natsgo.Conn) *nats.Service { return overOf(conn, "") }

// overOf brings questions about a model over conn.
func overOf(conn *natsgo.Conn, model string) *nats.Service {
	service, err := nats.NewService(conn, nats.ServiceConfig{Model: model})
	if err != nil {
		panic(err)
	}
	return service
}

// restartable runs a Redis that can be closed and started again on its port.
func restartable(t testing.TB) *miniredis.Miniredis {
	t.Helper()
	r := miniredis.NewMiniRedis()
	if err := r.StartAddr(loopback.Hold(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func openStore(t testing.TB, r *miniredis.Miniredis) *redis.Store {
	t.Helper()
	store, err := redis.New(redis.Config{Addr: r.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return store
}

// start runs a scorer until the test ends.
func start(t testing.TB, cfg Config) *Scorer {
	t.Helper()
	cfg.PollInterval = 5 * time.Millisecond
	s := New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	select {
	case <-s.Listening():
	case <-patience(t).Done():
		t.Fatal("the scorer doesn't listen")
	}
	return s
}

func ask(t testing.TB, url string) *nats.Client {
	t.Helper()
	c, err := nats.NewClient(connect(t, url), "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fixedRules are those of a scorer by default.
var fixedRules = newRules(&Config{SpamAt: SpamAt, HamAt: HamAt})

// The message that all tests ask about.
const question = "You have won a prize, claim your prize now"

func questionBody() *model.Body {
	return &model.Body{Message: &feature.Message{Body: []byte(question), BodyBytes: len(question)}}
}

// servedOf returns a model as it is served after it was saved.
func servedOf(t testing.TB, m *model.Model) *snapshot {
	t.Helper()
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSnapshot("default", 1, &state.Checkpoint{Events: m.Events(), Numerics: m.Numerics(), Model: b, ModelSHA256: sha256.Sum256(b)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A teacher is a learner without a log: it teaches a model and saves it.
type teacher struct {
	t         testing.TB
	store     *redis.Store
	epoch     int64
	model     *model.Model
	position  state.Position
	predictor *model.Predictor
	numerics  string // that it says it is of; "": the model's

	mu       sync.Mutex
	expected map[string]model.Prediction // of the question, by the model's SHA-256
	last     string
}

func newTeacher(t testing.TB, store *redis.Store) *teacher {
	t.Helper()
	m, err := model.New(model.Config{TableBits: 10, DuplicateWindow: 100})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := store.Seize(patience(t), "w")
	if err != nil {
		t.Fatal(err)
	}
	return &teacher{t: t, store: store, epoch: lease.Epoch, model: m,
		predictor: m.NewPredictor(), expected: map[string]model.Prediction{}}
}

// learn teaches n more messages, spam and ham in turn.
func (l *teacher) learn(n int) {
	l.t.Helper()
	for range n {
		i := int(l.model.Events())
		text := fmt.Sprintf("agenda of meeting %d is attached", i)
		if i%2 == 0 {
			text = fmt.Sprintf("claim prize %d now, you have won", i)
		}
		id := fmt.Sprint(i)
		ex := model.Example{ID: id, Source: "test", Spam: i%2 == 0,
			Body: model.Body{Tenant: "test", Message: &feature.Message{Body: []byte(text), BodyBytes: len(text)}}}
		if _, err := l.model.Apply(&ex); err != nil {
			l.t.Fatal(err)
		}
		l.position = l.position.Advance(l.position.Next, nil, []byte(id))
	}
}

// save records the model's prediction for the question, saves the model, and returns
// its SHA-256.
func (l *teacher) save() string {
	l.t.Helper()
	b, err := l.model.AppendBinary(nil)
	if err != nil {
		l.t.Fatal(err)
	}
	c := &state.Checkpoint{Schema: 1, Numerics: cmp.Or(l.numerics, l.model.Numerics()), Config: l.model.Config().JSON(), Epoch: l.epoch,
		Events: l.model.Events(), Position: l.position, Model: b, Saved: time.Now().UTC()}
	sum := sha256.Sum256(b)
	name := hex.EncodeToString(sum[:])
	prediction, err := l.predictor.Predict(questionBody())
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	l.expected[name], l.last = prediction, name
	l.mu.Unlock()
	if _, err := l.store.Save(patience(l.t), c); err != nil {
		l.t.Fatal(err)
	}
	return name
}

// check compares a verdict with what the model that it names says.
func (l *teacher) check(v stream.Verdict) {
	l.t.Helper()
	l.mu.Lock()
	want, known := l.expected[v.Model.SHA256]
	l.mu.Unlock()
	if !known {
		l.t.Errorf("an answer names the model %s, which nobody saved", v.Model.SHA256)
		return
	}
	lo, hi := want.Interval(1.6448536269514722)
	if v.LogOdds != want.LogOdds || v.P != want.P() || v.Interval != [2]float64{lo, hi} {
		l.t.Errorf("model %.8s answered p %v, log-odds %v, interval %v; it says %v, %v, [%v %v]",
			v.Model.SHA256, v.P, v.LogOdds, v.Interval, want.P(), want.LogOdds, lo, hi)
	}
}
