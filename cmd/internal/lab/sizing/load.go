package sizing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hamlet/cmd/internal/data/source"
	"hamlet/stream"
	"hamlet/stream/questions"
)

// A post is mail to label and mail to ask about, cycled as often as it takes.
type post struct {
	items []stream.Event
	label atomic.Int64 // labels that were made
}

// mostItems bounds the mail in memory; more is cycled.
const mostItems = 10_000

// readPost reads mail of a source.
func readPost(ctx context.Context, items iter.Seq2[source.Item, error]) (*post, error) {
	p := &post{}
	for item, err := range items {
		var rejection *source.Rejection
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &rejection):
			continue
		case err != nil:
			return nil, err
		case item.Event.Body.Kind != stream.Mail || item.Event.Label == 0:
			continue
		}
		p.items = append(p.items, item.Event)
		if len(p.items) == mostItems {
			break
		}
	}
	if len(p.items) < 2 {
		return nil, errors.New("the source has less than two labelled mails")
	}
	return p, nil
}

// next returns the next label as a line of JSON, under an id of its own.
func (p *post) next() ([]byte, error) {
	n := p.label.Add(1)
	e := p.items[int(n)%len(p.items)]
	e.ID = fmt.Sprintf("day-%d", n)
	line, err := e.AppendJSON(nil)
	return append(line, '\n'), err
}

// teach sends n labels in batches, as fast as ingest takes them.
func (p *post) teach(ctx context.Context, addr string, n int) error {
	const batch = 50
	for done := 0; done < n; done += batch {
		var body []byte
		for range min(batch, n-done) {
			line, err := p.next()
			if err != nil {
				return err
			}
			body = append(body, line...)
		}
		if err := send(ctx, addr, body); err != nil {
			return err
		}
	}
	return nil
}

// token is what ingest wants; both listen on loopback.
const token = "day"

// send sends labels until ingest has taken them: it answers 503 while Kafka is slow.
func send(ctx context.Context, addr string, body []byte) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/events",
			bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/x-ndjson")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("labels: %w", err)
		}
		said, _ := io.ReadAll(response.Body)
		response.Body.Close()
		switch response.StatusCode {
		case http.StatusAccepted:
			return nil
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		default:
			return fmt.Errorf("labels: ingest answers %s: %s", response.Status, bytes.TrimSpace(said))
		}
	}
}

// answers count what became of questions.
type answers struct {
	answered, refused int64
	seconds           []float64 // how long an answer took, sorted
}

// ask asks n questions over HTTP, inFlight at a time, and sends labels in step with them. The
// first error of another kind than a refusal ends it.
func (p *post) ask(ctx context.Context, gateway, ingest string, n, labels, inFlight int,
	progress func(int)) (answers, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		next, sent, answered, refused atomic.Int64
		mu                            sync.Mutex
		seconds                       []float64
		wg                            sync.WaitGroup
	)
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: inFlight}}
	defer client.CloseIdleConnections()
	for range inFlight {
		wg.Go(func() {
			var own []float64
			for i := next.Add(1); i <= int64(n) && ctx.Err() == nil; i = next.Add(1) {
				begun := time.Now()
				ok, err := question(ctx, client, gateway, p.items[int(i*7919)%len(p.items)].Body.Mail)
				if err != nil {
					cancel(err)
					return
				}
				own = append(own, time.Since(begun).Seconds())
				if ok {
					answered.Add(1)
				} else {
					refused.Add(1)
				}
				// Labels due by now.
				for due := i * int64(labels) / int64(n); ; {
					was := sent.Load()
					if was >= due {
						break
					}
					if !sent.CompareAndSwap(was, was+1) {
						continue
					}
					line, err := p.next()
					if err == nil {
						err = send(ctx, ingest, line)
					}
					if err != nil {
						cancel(err)
						return
					}
				}
				progress(int(i))
			}
			mu.Lock()
			seconds = append(seconds, own...)
			mu.Unlock()
		})
	}
	wg.Wait()
	slices.Sort(seconds)
	return answers{answered.Load(), refused.Load(), seconds}, context.Cause(ctx)
}

// question asks about one message. It is false if hamlet refuses for now.
func question(ctx context.Context, client *http.Client, gateway string, message []byte) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+gateway+"/v1/score",
		bytes.NewReader(message))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", questions.Mail)
	response, err := client.Do(request)
	if err != nil {
		return false, fmt.Errorf("a question: %w", err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return false, fmt.Errorf("a question: %w", err)
	case response.StatusCode == http.StatusOK:
		return true, nil
	case response.StatusCode == http.StatusServiceUnavailable:
		return false, nil
	default:
		return false, fmt.Errorf("a question: the gateway answers %s: %s", response.Status, bytes.TrimSpace(said))
	}
}
