// Package httpd serves what every service has over HTTP: /metrics for Prometheus,
// /healthz (the process lives), /readyz (it can do its work) and the service's own.
//
//	s, err := httpd.New(httpd.Config{Addr: ":9101", Registry: httpd.NewRegistry(), Ready: ready, Log: log})
//	err = s.Run(ctx)
package httpd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A Config describes one server.
type Config struct {
	Addr     string // host:port; port 0 takes any
	Registry *prometheus.Registry
	Ready    func() error            // nil: ready from the start; the error says what is missing
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
)

// A Server listens from New on and serves during Run.
type Server struct {
	cfg      Config
	listener net.Listener
}

// New takes the address, so that a port in use is known before anything starts.
func New(cfg Config) (*Server, error) {
	l, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("http on %s: %w; choose another address with --http", cfg.Addr, err)
	}
	return &Server{cfg, l}, nil
}

// SetReady replaces Config.Ready before Run.
func (s *Server) SetReady(ready func() error) { s.cfg.Ready = ready }

// Addr returns the address that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until ctx ends, then lets requests under way finish for a while.
func (s *Server) Run(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.cfg.Ready != nil {
			if err := s.cfg.Ready(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ready")
	})
	for pattern, h := range s.cfg.Handlers {
		mux.Handle(pattern, h)
	}
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if err := server.Shutdown(drain); err != nil {
			_ = server.Close()
		}
	})()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("http on %s: %w", s.Addr(), err)
	}
	<-stopped
	return nil
}

// Close frees the address of a server that never ran.
func (s *Server) Close() error { return s.listener.Close() }
