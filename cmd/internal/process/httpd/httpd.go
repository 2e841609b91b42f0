// Package httpd serves what every service has over HTTP: /metrics for Prometheus,
// /healthz (the process lives), /readyz (it can do its work) and the service's own. The
// first three may have an address of their own.
//
//	s, err := httpd.New(httpd.Config{Addr: ":9101", Registry: httpd.NewRegistry(), Ready: ready, Log: log})
//	err = s.Run(ctx)
package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"hamlet/stream/openfiles"
)

// A Config describes one server.
type Config struct {
	Addr     string      // host:port; port 0 takes any; empty: only Metrics is served
	TLS      *tls.Config // at Addr; nil: plain text
	Metrics  string      // host:port of /metrics, /healthz and /readyz, in plain text; empty: Addr
	Apart    bool        // Addr has the Handlers alone: without Metrics nobody serves metrics
	Registry *prometheus.Registry
	Ready    func() error            // nil: ready from the start; the error says what is missing
	Standing func() string           // what /readyz adds where it is ready; nil or "": nothing
	Handlers map[string]http.Handler // further patterns, as http.ServeMux has them
	Log      *slog.Logger
}

// NewRegistry returns a registry that holds the process's and Go's own metrics.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Timeouts, so that a client that stalls does not hold a connection for ever. A
// handler may set deadlines of its own.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	writeTimeout  = 2 * time.Minute // ingest waits for a request and for Kafka, 70 s in all
	drainTimeout  = 5 * time.Second // of requests under way at the end
	firstTimeout  = time.Second     // of that, for the first request of a connection that was just taken
)

// Bounds of what clients make the server hold.
const (
	maxConns  = 4096     // of one address, if the limit of open files allows it; more wait in the kernel's queue
	maxHeader = 32 << 10 // bytes of a request's header; net/http adds 4 KiB. More is answered 431
)

// A Server listens from New on and serves during Run.
type Server struct {
	cfg      Config
	listener net.Listener               // at Addr; nil without one
	metrics  net.Listener               // at Metrics; nil without one
	below    map[net.Listener]*listener // of these two
}

// An AddressError says that an address cannot be taken.
type AddressError struct {
	Addr    string
	Metrics bool // it is Config.Metrics
	Err     error
}

func (e *AddressError) Error() string { return fmt.Sprintf("http on %s: %v", e.Addr, e.Err) }
func (e *AddressError) Unwrap() error { return e.Err }

// Choose adds to err with which flag the user chooses another address, if that is what is wrong.
func Choose(err error, addrFlag, metricsFlag string) error {
	taken, ok := errors.AsType[*AddressError](err)
	if !ok {
		return err
	}
	flag := addrFlag
	if taken.Metrics {
		flag = metricsFlag
	}
	return fmt.Errorf("%w; choose another address with %s", err, flag)
}

// New takes the addresses, so that a port in use is known before anything starts.
func New(cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, below: map[net.Listener]*listener{}}
	if cfg.Addr != "" {
		l, err := listen(cfg.Addr, openfiles.Connections(maxConns), cfg.Log)
		if err != nil {
			return nil, &AddressError{Addr: cfg.Addr, Err: err}
		}
		s.listener = l
		if cfg.TLS != nil {
			s.listener = tls.NewListener(s.listener, cfg.TLS)
		}
		s.below[s.listener] = l
	}
	if cfg.Metrics != "" {
		l, err := listen(cfg.Metrics, openfiles.Connections(maxConns), cfg.Log)
		if err != nil {
			_ = s.Close()
			return nil, &AddressError{Addr: cfg.Metrics, Metrics: true, Err: err}
		}
		s.metrics = l
		s.below[l] = l
	}
	return s, nil
}

// SetReady replaces Config.Ready and Config.Standing before Run.
func (s *Server) SetReady(ready func() error, standing func() string) {
	s.cfg.Ready, s.cfg.Standing = ready, standing
}

// Addr returns the address that the server listens on, if Config.Addr is one.
func (s *Server) Addr() string { return address(s.listener) }

// MetricsAddr returns the address of the metrics, if Config.Metrics is one.
func (s *Server) MetricsAddr() string { return address(s.metrics) }

func address(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}

// Run serves until ctx ends, then lets requests under way finish for a while.
func (s *Server) Run(ctx context.Context) error {
	own := http.NewServeMux() // Handlers
	for pattern, h := range s.cfg.Handlers {
		own.Handle(pattern, h)
	}
	var handler http.Handler = own
	if h := s.cfg.Handlers["/"]; s.cfg.Apart && h != nil && len(s.cfg.Handlers) == 1 {
		handler = h // it sees every path as the client wrote it
	}
	if s.metrics == nil {
		if !s.cfg.Apart {
			s.addMetrics(own)
		}
		return s.serve(ctx, s.listener, handler)
	}
	g, ctx := errgroup.WithContext(ctx)
	if s.listener != nil {
		g.Go(func() error { return s.serve(ctx, s.listener, handler) })
	}
	metrics := http.NewServeMux()
	s.addMetrics(metrics)
	g.Go(func() error { return s.serve(ctx, s.metrics, metrics) })
	return g.Wait()
}

// addMetrics adds what every service has.
func (s *Server) addMetrics(mux *http.ServeMux) {
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.cfg.Ready != nil {
			if err := s.cfg.Ready(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		if s.cfg.Standing != nil {
			if standing := s.cfg.Standing(); standing != "" {
				fmt.Fprintln(w, "ready:", standing)
				return
			}
		}
		fmt.Fprintln(w, "ready")
	})
}

// serve serves a handler at one address until ctx ends.
func (s *Server) serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           began(handler),
		ConnContext:       withBegin,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		first, cancelFirst := context.WithTimeout(drain, firstTimeout)
		defer cancelFirst()
		if l := s.below[listener]; l != nil {
			l.stop(first)
		}
		if err := server.Shutdown(drain); err != nil {
			_ = server.Close()
		}
	})()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("http on %s: %w", address(listener), err)
	}
	<-stopped
	return nil
}

// Close frees the addresses of a server that never ran.
func (s *Server) Close() error {
	var errs []error
	for _, l := range []net.Listener{s.listener, s.metrics} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}
