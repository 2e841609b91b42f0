package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"hamlet/stream"
	"hamlet/stream/questions"
)

// A job is one request for a worker.
type job struct {
	endpoint string
	reply    string
	header   micro.Headers
	from     requestHeader
	refusal  *questions.Refusal // what is wrong with the headers that from is read from
	data     []byte
	arrived  time.Time
	started  time.Time // zero while it waits
	messages int
}

// endpointStats are what $SRV.STATS shows of an endpoint in addition to micro's figures,
// which end where a request enters the queue.
type endpointStats struct {
	Answered    uint64        `json:"answered"`    // with a verdict
	Refused     uint64        `json:"refused"`     // 400, 413
	Unavailable uint64        `json:"unavailable"` // 503
	Faults      uint64        `json:"faults"`      // 500, panics among them
	Took        time.Duration `json:"took_ns"`     // all together
}

// take returns an endpoint's handler. micro calls it for one message at a time, so it
// only queues the message, or refuses it if the queue is full. It answers Info itself,
// so that an overloaded service still says what it serves. To answer all here, without the
// queue, was no faster for one connection: BenchmarkRoundTrip had medians of 83 to 86 µs with
// the queue and 84 to 87 without, and of 64 to 67 for the echo (five turns, 29 November 2026).
func (s *Service) take(endpoint string) micro.Handler {
	return micro.HandlerFunc(func(r micro.Request) {
		j := job{endpoint: endpoint, reply: r.Reply(), header: r.Headers(), data: r.Data(), arrived: time.Now()}
		if j.reply == "" {
			return // a publication: nobody waits for an answer
		}
		j.from, j.refusal = parseHeader(natsgo.Header(j.header))
		s.inFlight.Add(1)
		if endpoint == questions.Info {
			s.do(&j)
			return
		}
		if len(j.data) > s.cfg.MaxBytes {
			s.refuse(&j, &questions.Refusal{Code: questions.TooLarge, Text: fmt.Sprintf("the request has %d bytes, "+
				"more than %d: reduce the mail first, or ask about fewer messages at once", len(j.data), s.cfg.MaxBytes)})
			return
		}
		if !s.enqueue(j) {
			s.refuse(&j, questions.Overload("too many requests wait already; ask again later or run more scorers"))
		}
	})
}

// enqueue puts j into the queue, if it fits. It may run concurrently with stop.
func (s *Service) enqueue(j job) bool {
	s.queueMu.RLock()
	defer s.queueMu.RUnlock()
	if s.closed {
		return false
	}
	size := int64(len(j.data))
	if s.queued.Add(size) <= int64(s.cfg.QueueBytes) {
		select {
		case s.queue <- j:
			return true
		default:
		}
	}
	s.queued.Add(-size)
	return false
}

// work answers requests until the queue is closed and empty.
func (s *Service) work() {
	for j := range s.queue {
		s.queued.Add(-int64(len(j.data)))
		s.do(&j)
	}
}

func (s *Service) do(j *job) {
	j.started = time.Now()
	answer, err := s.answer(j)
	if most := s.conn.MaxPayload(); err == nil && most > 0 && int64(len(answer)) > most { // 0: never connected
		err = &questions.Refusal{Code: questions.TooLarge, Text: fmt.Sprintf("the answer has %d bytes, "+
			"the server carries %d: ask about fewer messages at once", len(answer), most)}
	}
	if err != nil {
		s.refuse(j, err)
		return
	}
	s.send(j, questions.OK, &natsgo.Msg{Subject: j.reply, Data: answer})
}

// answer returns the reply. A panic becomes an error: one message must not end the
// service for all others.
func (s *Service) answer(j *job) (reply []byte, e *questions.Refusal) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error("scoring service: panic", "endpoint", j.endpoint, "panic", questions.OneLine(fmt.Sprint(p)),
				"stack", string(debug.Stack()), "trace", j.from.trace.ID())
			reply, e = nil, &questions.Refusal{Code: questions.Internal,
				Text: "internal error: the scorer panicked over this request and lives on; its log says where"}
		}
	}()
	ctx, cancel := context.WithDeadline(context.Background(), j.arrived.Add(s.cfg.Timeout))
	defer cancel()
	if ctx.Err() != nil {
		return nil, s.late()
	}
	if j.refusal != nil {
		return nil, j.refusal
	}
	ctx = questions.WithArrival(stream.WithTrace(ctx, j.from.trace), questions.Arrival{Door: j.from.door, At: j.arrived})
	if j.endpoint == questions.Info {
		info, err := s.scorer.Info(ctx)
		if err != nil {
			return nil, s.asError(j, err)
		}
		b, err := json.Marshal(info)
		return encoded(b, err), nil
	}
	contentType := header(natsgo.Header(j.header), "Content-Type")
	asked, refused := questions.Decode(contentType, j.from.tenant, j.data, s.cfg.MaxBatch)
	if refused != nil {
		return nil, refused
	}
	j.messages = len(asked.Events)
	if j.messages == 1 && j.from.words > 0 {
		ctx = questions.WithArrival(ctx, questions.Arrival{Door: j.from.door, At: j.arrived, Words: j.from.words})
	}
	verdicts, err := s.scorer.Score(ctx, asked.Events, j.endpoint == questions.Explain)
	if err != nil {
		return nil, s.asError(j, err)
	}
	if len(verdicts) != len(asked.Events) {
		panic(fmt.Sprintf("nats: %d verdicts for %d requests", len(verdicts), len(asked.Events)))
	}
	return encode(verdicts, asked.Batch), nil
}

// verdictSize is the space for a verdict in JSON, in bytes. Most need 350.
const verdictSize = 512

// encode returns the JSON of verdicts: an array of a batch, else one.
func encode(verdicts []stream.Verdict, batch bool) []byte {
	b := make([]byte, 0, verdictSize*len(verdicts)+len("[]"))
	if batch {
		b = append(b, '[')
	}
	for i := range verdicts {
		if i > 0 {
			b = append(b, ',')
		}
		b = encoded(verdicts[i].AppendJSON(b))
	}
	if batch {
		b = append(b, ']')
	}
	return b
}

func encoded(b []byte, err error) []byte {
	if err != nil {
		panic(fmt.Sprintf("nats: reply: %v", err)) // a NaN in a verdict is our bug
	}
	return b
}

func (s *Service) late() *questions.Refusal {
	return questions.Overload("no answer within %v; ask again later or run more scorers", s.cfg.Timeout)
}

// asError gives a scorer's error its code. An error that is not for the client is logged
// and becomes a 500 without details.
func (s *Service) asError(j *job, err error) *questions.Refusal {
	var e *questions.Refusal
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return s.late()
	}
	s.cfg.Log.Error("scoring service: request failed",
		append(j.from.trace.LogAttrs(), "endpoint", j.endpoint, "error", err)...)
	return &questions.Refusal{Code: questions.Internal, Text: "internal error: the scorer's log says what it was"}
}

// refuse answers j with an error.
func (s *Service) refuse(j *job, e *questions.Refusal) {
	m := &natsgo.Msg{Subject: j.reply, Header: natsgo.Header{
		micro.ErrorHeader:     []string{questions.OneLine(e.Text)},
		micro.ErrorCodeHeader: []string{strconv.Itoa(e.Code)},
	}}
	s.send(j, e.Code, m)
}

// send counts an answer and then publishes it, so that a client with an answer finds it
// counted.
func (s *Service) send(j *job, code int, m *natsgo.Msg) {
	s.count(j, code)
	if err := s.conn.PublishMsg(m); err != nil {
		s.cfg.Log.Warn("scoring service: answer lost",
			append(j.from.trace.LogAttrs(), "endpoint", j.endpoint, "error", err)...)
	} else if j.from.trace != "" {
		s.cfg.Log.Debug("scoring service: answered", "trace", j.from.trace.ID(),
			"endpoint", j.endpoint, "code", code, "took", time.Since(j.arrived))
	}
	s.inFlight.Add(-1)
}

func (s *Service) count(j *job, code int) {
	took := time.Since(j.arrived)
	s.statsMu.Lock()
	stats := s.stats[j.endpoint]
	switch code {
	case questions.OK:
		stats.Answered++
	case questions.Internal:
		stats.Faults++
	case questions.Unavailable:
		stats.Unavailable++
	default:
		stats.Refused++
	}
	stats.Took += took
	s.statsMu.Unlock()
	waited := took
	if !j.started.IsZero() {
		waited = j.started.Sub(j.arrived)
	}
	s.observe(questions.Observation{
		Endpoint: j.endpoint, Door: j.from.door, Code: code, Messages: j.messages, Waited: waited, Took: took,
	})
}

// endpointStats is micro's StatsHandler, whose result micro writes as JSON.
func (s *Service) endpointStats(e *micro.Endpoint) any {
	s.statsMu.Lock()
	defer s.statsMu.Unlock()
	return *s.stats[e.Name]
}
