package machine

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"hamlet/state"
	"hamlet/stream"
)

// A Client uses the directory of another program over its socket. Its methods may be called
// concurrently. What the other program does not answer is [stream.ErrAway] and [state.ErrTransient].
type Client struct {
	path string
	http *http.Client

	mu sync.Mutex
	// givenUp are Appends that their callers wait for no more, by the log's name. Each channel closes
	// with the answer.
	givenUp map[string][]<-chan struct{}
}

// Dial connects to the program that has a directory open.
func Dial(ctx context.Context, path string) (*Client, error) {
	c, err := NewClient(path)
	if err == nil {
		err = c.Ping(ctx)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// NewClient returns a client that connects when it is used, to whatever program has the directory then.
func NewClient(path string) (*Client, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return &Client{path: path, givenUp: map[string][]<-chan struct{}{}, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
			err = short(path, func(dir string) (err error) {
				var dialer net.Dialer
				conn, err = dialer.DialContext(ctx, "unix", filepath.Join(dir, socketName))
				return err
			})
			return conn, err
		},
		MaxIdleConnsPerHost: 8,
	}}}, nil
}

// Close ends the connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Open implements [stream.Logs].
func (c *Client) Open(name string) (stream.Topic, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	return &remoteLog{c, name}, nil
}

// Ping implements [stream.Logs].
func (c *Client) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := call[none](ctx, c, "ping", true)
	return err
}

// Partitions implements [stream.Logs].
func (c *Client) Partitions(ctx context.Context, name string) (int, error) {
	return call[int](ctx, c, "partitions", onLog{name})
}

// Ensure implements [stream.Logs].
func (c *Client) Ensure(ctx context.Context, name string, replication int, retention time.Duration) error {
	_, err := call[none](ctx, c, "ensure", ensures{name, replication, retention})
	return err
}

// Retention implements [stream.Logs].
func (c *Client) Retention(ctx context.Context, name string) (time.Duration, bool, error) {
	r, err := call[retains](ctx, c, "retention", onLog{name})
	return r.Keep, r.Bounded, err
}

// Skip implements [Machine].
func (c *Client) Skip(ctx context.Context, log string, from, to int64) error {
	_, err := call[none](ctx, c, "skip", skips{log, from, to})
	return err
}

// Logger implements [stream.Logs].
func (c *Client) Logger() *slog.Logger { return nil }

// Patience implements [stream.Logs].
func (c *Client) Patience() time.Duration { return 10 * time.Second }

// A remoteLog is a log of the other program.
type remoteLog struct {
	c    *Client
	name string
}

// Name implements [stream.Topic].
func (l *remoteLog) Name() string { return "log " + l.name }

// Close implements [stream.Topic].
func (l *remoteLog) Close() error { return nil }

// Bounds implements [stream.Log].
func (l *remoteLog) Bounds(ctx context.Context) (stream.Bounds, error) {
	return call[stream.Bounds](ctx, l.c, "bounds", onLog{l.name})
}

// Read implements [stream.Log].
func (l *remoteLog) Read(ctx context.Context, from int64, most stream.Limit,
	wait time.Duration) ([]stream.Record, int64, error) {
	r, err := call[hasRead](ctx, l.c, "read", reads{l.name, from, most, wait})
	return r.Records, r.End, err
}

// Since implements [stream.Log].
func (l *remoteLog) Since(ctx context.Context, t time.Time) (int64, error) {
	return call[int64](ctx, l.c, "since", since{l.name, t})
}

// Append implements [stream.Appender]. What the other program has been sent it may still be writing
// when ctx ends. So a later Append of this client waits for the answer first: its records come behind.
func (l *remoteLog) Append(ctx context.Context, records ...stream.Record) error {
	if err := l.settle(ctx); err != nil {
		return l.c.away(err)
	}
	send, err := prepare[none](l.c, "append", appends{l.name, records})
	if err != nil {
		return err
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, err = send(context.WithoutCancel(ctx))
	}()
	select {
	case <-answered:
		return err
	case <-ctx.Done():
		l.c.mu.Lock()
		defer l.c.mu.Unlock()
		l.c.givenUp[l.name] = append(l.c.givenUp[l.name], answered)
		return l.c.away(context.Cause(ctx))
	}
}

// settle waits for the answers to Appends to the log that were given up.
func (l *remoteLog) settle(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.c.mu.Lock()
	waiting := slices.Clone(l.c.givenUp[l.name])
	l.c.mu.Unlock()
	for _, answered := range waiting {
		select {
		case <-answered:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	settled := func(c <-chan struct{}) bool { return slices.Contains(waiting, c) }
	l.c.givenUp[l.name] = slices.DeleteFunc(l.c.givenUp[l.name], settled)
	return nil
}

// Store implements [Machine].
func (c *Client) Store(model string) (state.Store, error) { return &remoteStore{c, model}, nil }

// A remoteStore is a store of the other program.
type remoteStore struct {
	c     *Client
	model string
}

// ask calls a method of the store.
func ask[R, A any](ctx context.Context, s *remoteStore, name string, arg A) (R, error) {
	return call[R](ctx, s.c, "model/"+name, onModel[A]{s.model, arg})
}

// do calls a method that returns an error alone.
func do[A any](ctx context.Context, s *remoteStore, name string, arg A) error {
	_, err := ask[none](ctx, s, name, arg)
	return err
}

func (s *remoteStore) Save(ctx context.Context, c *state.Checkpoint) (int64, error) {
	sent := *c
	var err error
	if sent.Model, err = c.Bytes(); err != nil {
		return 0, err
	}
	sent.Source = nil
	c.ModelSHA256, c.Length = sha256.Sum256(sent.Model), int64(len(sent.Model))
	return ask[int64](ctx, s, "save", &sent)
}

func (s *remoteStore) Load(ctx context.Context, which state.Pointer) (*state.Checkpoint, int64, error) {
	r, err := ask[numbered[state.Checkpoint]](ctx, s, "load", which)
	return r.Value, r.Number, err
}

func (s *remoteStore) LoadVersion(ctx context.Context, version int64) (*state.Checkpoint, error) {
	r, err := ask[numbered[state.Checkpoint]](ctx, s, "version", version)
	return r.Value, err
}

func (s *remoteStore) Manifest(ctx context.Context, which state.Pointer) (*state.Manifest, int64, error) {
	r, err := ask[numbered[manifest]](ctx, s, "manifest", which)
	return (*state.Manifest)(r.Value), r.Number, err
}

func (s *remoteStore) Heading(ctx context.Context, which state.Pointer) (state.Heading, error) {
	return ask[state.Heading](ctx, s, "heading", which)
}

func (s *remoteStore) Versions(ctx context.Context) ([]state.VersionInfo, error) {
	return ask[[]state.VersionInfo](ctx, s, "versions", none(true))
}

func (s *remoteStore) Layout(context.Context) error { return nil }

func (s *remoteStore) Lease(ctx context.Context) (state.Lease, error) {
	return ask[state.Lease](ctx, s, "lease", none(true))
}

func (s *remoteStore) Holder(ctx context.Context) (state.Lease, error) { return s.Lease(ctx) }

func (s *remoteStore) Acquire(ctx context.Context, seen state.Lease, writer string) (state.Lease, error) {
	return ask[state.Lease](ctx, s, "acquire", acquires{seen, writer})
}

func (s *remoteStore) Seize(ctx context.Context, writer string) (state.Lease, error) {
	return ask[state.Lease](ctx, s, "seize", writer)
}

func (s *remoteStore) Beat(ctx context.Context, mine state.Lease) (state.Lease, error) {
	return ask[state.Lease](ctx, s, "beat", mine)
}

func (s *remoteStore) Release(ctx context.Context, mine state.Lease) (state.Lease, error) {
	return ask[state.Lease](ctx, s, "release", mine)
}

func (s *remoteStore) StepBack(ctx context.Context, mine state.Lease, to int64) error {
	return do(ctx, s, "step-back", stepsBack{mine, to})
}

func (s *remoteStore) Pin(ctx context.Context, version int64) error {
	return do(ctx, s, "pin", version)
}

func (s *remoteStore) Unpin(ctx context.Context) error { return do(ctx, s, "unpin", none(true)) }

func (s *remoteStore) Pinned(ctx context.Context) (int64, error) {
	return ask[int64](ctx, s, "pinned", none(true))
}

func (s *remoteStore) MarkReplaced(ctx context.Context, version int64) error {
	return do(ctx, s, "mark-replaced", version)
}

func (s *remoteStore) Promote(ctx context.Context, p state.Promotion) error {
	return do(ctx, s, "promote", promotion(p))
}

func (s *remoteStore) Promotion(ctx context.Context) (state.Promotion, error) {
	p, err := ask[promotion](ctx, s, "promotion", none(true))
	return state.Promotion(p), err
}

func (s *remoteStore) Beside(model string) (state.Store, error) { return s.c.Store(model) }

func (s *remoteStore) Models(ctx context.Context) ([]string, error) {
	return ask[[]string](ctx, s, "models", none(true))
}

func (s *remoteStore) Ping(ctx context.Context) error { return s.c.Ping(ctx) }

func (s *remoteStore) Close() error { return nil }
