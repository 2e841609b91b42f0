package tokens

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxNames bounds the series of a metric. Further tokens are counted together.
const maxNames = 100

// Labels of what no token of a file sent. No token can have such a name.
const (
	ByOperator = "(operator)" // with the one token of the flag
	ByTenant   = "(tenant)"   // with a tenant's token
	ByNobody   = "(unknown)"  // without a token that is known
	byOthers   = "(others)"   // with tokens beyond maxNames
)

// Metrics count requests and events by token. A nil *Metrics counts nothing.
type Metrics struct {
	requests, events *prometheus.CounterVec

	mu    sync.Mutex
	known map[string]bool // at most maxNames; guarded by mu
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hamlet_token_requests_total",
			Help: "Requests to POST /v1/events, by the token's name and status."}, []string{"token", "code"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hamlet_token_events_total",
			Help: "Events that came over HTTP and that Kafka has acknowledged, by the token's name."}, []string{"token"}),
		known: map[string]bool{},
	}
	registry.MustRegister(m.requests, m.events)
	return m
}

// Count counts a request by a token, whose answer has the code and of which Kafka has the
// events.
func (m *Metrics) Count(name string, code, events int) {
	if m == nil {
		return
	}
	name = m.label(name)
	m.requests.WithLabelValues(name, strconv.Itoa(code)).Inc()
	m.events.WithLabelValues(name).Add(float64(events))
}

func (m *Metrics) label(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known[name] {
		if len(m.known) == maxNames {
			return byOthers
		}
		m.known[name] = true
	}
	return name
}
